// AsyncWorkers: workers that do not wait for each other: each runs its iterations at its own pace against parameter servers
// that apply every push as it comes. Simulated until the pace is steady; docs/models/parameter-server.md.
//
// An iteration is given by when its messages get ready if messages took no time. Workers start evenly spread over an
// iteration, which is where jitter brings them in the end.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/player/perturbation.h"
#include "sim/player/sync_server.h"

namespace ringside {

/// A push or pull within an iteration.
struct WorkerMessage {
    bool isPush = true;
    std::uint32_t key = 0;
    double bytes = 0;            ///< towards or from one server
    Time offset;                 ///< after the iteration's start, when nothing is waited for
    std::int32_t before = -1;    ///< the message before it on its stream
    std::int32_t after = -1;     ///< one that it needs: a pull its key's push (applied), or a push its key's pull
};

/// Workers of one speed.
struct WorkerGroup {
    std::vector<WorkerMessage> messages;
    Time length;                 ///< of an iteration whose messages take no time
    std::int64_t firstRank = 0, workers = 1;
    std::size_t nodeGroup = 0;
    double linkSlowdown = 1;
    double jitterShare = 1;      ///< jitter of an iteration over the jitter of one kernel: √Σt² / Σt of its kernels
};

struct AsyncOptions {
    std::int64_t staleness = -1;                 ///< clocks that a worker may be ahead of the slowest; −1: no limit
    const Perturbation* perturbation = nullptr;  ///< jitter and pauses of every iteration
    std::uint64_t sample = 0;
};

struct AsyncOutcome {
    double iterationSeconds = 0;  ///< workers over iterations per second: the mean, weighted by what each gets done
    double fastestSeconds = 0, slowestSeconds = 0;  ///< of a worker's mean iteration
    double meanStaleness = 0;     ///< updates of others between a worker's pull of a key and the application of its push
    std::int64_t maxStaleness = 0;
    bool steady = true;           ///< the pace had settled when the simulation ended

    bool operator==(const AsyncOutcome&) const = default;
};

struct AsyncRun {
    AsyncOutcome outcome;
    std::vector<std::vector<Time>> messageEnds;   ///< [group][message]: when it has arrived, in the mean, after the iteration's start
    std::vector<Time> gateTimes;                  ///< [group]: mean wait for the slowest before an iteration
    std::vector<ServerSlice> activity;            ///< of one server during an iteration of the first worker
};

/// More workers than this are simulated in lockstep teams.
constexpr std::int64_t kMostTeams = 512;
/// More messages than this per iteration (and direction) are joined by whoever writes WorkerGroup::messages.
constexpr std::size_t kMostWorkerMessages = 16;

/// A pure function of its arguments. O(teams × messages × iterations × log).
AsyncRun runAsyncWorkers(const std::vector<WorkerGroup>& groups, const ServerPrices& prices, const AsyncOptions& options);

}  // namespace ringside
