// runRanks: the same work on every rank of a run, however the ranks were started: forked here (--local-ranks), or each process a rank
// of torchrun, srun or mpirun. What the ranks hand back comes together at rank 0.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/comm/communicator.h"
#include "calibrate/execute/launched_ranks.h"
#include "calibrate/ranks/rank_env.h"
#include "model/base/result.h"

namespace ringside {

struct RunRanksOptions {
    int localRanks = 0;                         ///< fork so many; 0: what the launcher's variables say, or this process alone
    std::chrono::milliseconds timeout{60'000};  ///< for ranks to come, for an operation, and without progress
    int port = 0;                               ///< local ranks: of the store; 0: a free one
    int threads = 1;                            ///< cores of each rank: where there are enough, it stays on its own, with all its threads
    std::optional<double> linkBitsPerSecond;    ///< local ranks: each in a network namespace of its own, joined by links of this rate
    std::shared_ptr<LaunchedRanks> launched;    ///< of joinLaunchedRanks(), for more than one run; null: a run joins by itself
};

/// What a rank's work is given.
struct RankContext {
    RankEnv env;
    CommWorld* world = nullptr;  ///< null where there is one rank only
    int firstCore = -1;          ///< the rank's cores; −1: any
    std::function<void(const std::string&)> progress;
};

using RankWork = std::function<Result<std::string>(RankContext&)>;

/// What each rank handed back; nothing in a process that is not rank 0. REQUIRES with local ranks: this process has one thread.
Result<std::optional<std::vector<std::string>>> runRanks(const RunRanksOptions& options, const RankWork& work);

/// Before the first of several runs with these options: where a launcher started several ranks, they meet once for all of them.
Result<void> joinLaunchedRanks(RunRanksOptions& options);

/// How many ranks such a run will have. Fails where the launcher's variables contradict the options.
Result<int> rankCount(const RunRanksOptions& options);

}  // namespace ringside
