// Player: plays a Schedule in virtual time. Overlap, stalls and exposed communication come out of the order of streams and
// dependencies; nothing here knows what a bucket or an optimizer is.
//
// Rules (docs/models/player.md):
//  - The host thread issues tasks in program order; each costs it its launch time. It waits only at a HostSync. A kernel of
//    several launches begins with the first, but never waits between them.
//  - A device stream runs its tasks in issue order, one at a time.
//  - The collectives of a communicator run in issue order, whatever streams they are on.
//  - A collective starts when every rank of its group has reached it; a rank that got there early occupies its
//    multiprocessors while it waits, as NCCL's kernels do.
//  - A push is done when it has arrived at the server, a pull when its answer has; messages share the server's ports.
//  - A kernel slows down while a collective runs on its device, and speeds up again when it ends. On CPUs a collective slows
//    down too while a kernel runs on one of its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/result.h"
#include "model/base/units.h"
#include "sim/player/async_workers.h"
#include "sim/player/perturbation.h"
#include "sim/player/prices.h"
#include "sim/schedule/schedule.h"

namespace ringside {

struct TaskTimes {
    Time issued;  ///< when the host handed it over (host tasks: when it began)
    Time start;   ///< collectives: when this rank got there
    Time end;
};

struct Timeline {
    std::vector<std::vector<TaskTimes>> classes;  ///< [class][task]
    Time stepTime;    ///< repeated micro-steps included
    Time steadyBegin, steadyPeriod;  ///< the micro-step that stands for several: when it began and how long it took
    bool steadyConverged = true;     ///< the one before it took as long: repeating it is exact
    std::vector<std::size_t> runAhead;  ///< [class] tasks that the host issued to a stream ahead of the one that ran; 0: as many as it could
    std::vector<ServerSlice> server; ///< what each parameter server does meanwhile
    std::optional<AsyncOutcome> async;  ///< where workers do not wait for each other; `classes` then shows a mean iteration
    std::uint64_t events = 0;

    /// How long a step takes in the mean over many.
    double meanStepSeconds() const { return async ? async->iterationSeconds : stepTime.seconds(); }
};

/// `perturbation`: one drawn step of a perturbed schedule, whose ranks must be unfolded.
struct PlayOptions {
    const Perturbation* perturbation = nullptr;
    std::uint64_t sample = 0;
    bool localStep = false;  ///< one of the steps between two that carry out the periodic tasks
    /// Pushes and pulls do not go to a server but end at these times, or at once: [2·work] a push, [2·work + 1] a pull.
    const std::vector<Time>* messageEnds = nullptr;
};

/// A pure function of its arguments. Fails (as bad input naming the stuck task) where ranks wait for each other forever,
/// which a Schedule that passes validateSchedule cannot make happen.
Result<Timeline> play(const Schedule& schedule, const Prices& prices, const PlayOptions& options = {});

}  // namespace ringside
