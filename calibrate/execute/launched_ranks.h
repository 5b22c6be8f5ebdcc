// LaunchedRanks: the processes that torchrun, srun or mpirun started, each a rank, over the store through which they meet.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/ranks/key_value_store.h"
#include "calibrate/ranks/rank_env.h"
#include "model/base/result.h"

namespace ringside {

class LaunchedRanks {
public:
    /// Fails (runtime failure) where rank 0 does not answer within the time-out, or its port is in use.
    static Result<std::shared_ptr<LaunchedRanks>> join(const RankEnv& env, std::chrono::milliseconds timeout);

    const RankEnv& env() const { return env_; }
    bool isFirst() const { return env_.rank == 0; }

    /// A part of the store for one run. REQUIRES: all ranks call it equally often.
    std::shared_ptr<KeyValueStore> storeOfNextRun();
    /// What rank 0 says; `word` counts there alone. REQUIRES: all ranks call it equally often.
    Result<std::string> agree(const std::string& word);

    /// How many of the ranks are on this machine, this one included. REQUIRES: all ranks call it, once.
    Result<int> ranksHere();

    /// What each rank made of a run comes together at rank 0: the results there, nothing elsewhere. Where a rank failed, all fail with
    /// their own error, and rank 0's also says what the others said, or which of them left without a word.
    Result<std::optional<std::vector<std::string>>> gather(KeyValueStore& store, const Result<std::string>& mine);

private:
    LaunchedRanks(RankEnv env, std::chrono::milliseconds timeout) : env_(std::move(env)), timeout_(timeout) {}

    RankEnv env_;
    std::chrono::milliseconds timeout_;
    std::shared_ptr<KeyValueStore> store_;
    int runs_ = 0, words_ = 0;
};

}  // namespace ringside
