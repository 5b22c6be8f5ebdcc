// launchLocalRanks: starts the ranks of a run as processes of this machine, watches them and collects what they hand back.
//
// Whatever happens, it returns with no child left: a rank that fails, is killed or hangs ends the others; so does SIGINT, SIGTERM or
// SIGHUP to this process. Should this process itself be killed, the kernel kills the ranks.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/ranks/progress_board.h"
#include "calibrate/ranks/rank_env.h"
#include "calibrate/ranks/shaped_link.h"
#include "model/base/result.h"

namespace ringside {

struct LaunchOptions {
    /// A rank that reports nothing new for this long hangs; 0: wait for ever.
    std::chrono::milliseconds timeout{60'000};
    /// Between the polite signal to end and the one that cannot be refused.
    std::chrono::milliseconds grace{3'000};
    /// Of rank 0's store; 0: a free one. Opened before the ranks start, so that nobody can take it in between.
    int port = 0;
    /// Where the ranks live; null: in this network, on loopback. Rank r goes to node r / ranksPerNode.
    const ShapedLink* link = nullptr;
    int ranksPerNode = 1;
};

/// What a rank's body is given.
class LocalRank {
public:
    LocalRank(RankEnv env, ProgressBoard& board) : env_(std::move(env)), board_(board) {}
    const RankEnv& env() const { return env_; }
    /// "I begin this task": proof of life, and what is named should the rank die. From any thread; no system call.
    void progress(std::string_view task, std::int64_t step = -1);

private:
    RankEnv env_;
    ProgressBoard& board_;
    std::mutex mutex_;
};

/// The text that the rank hands back (JSON, say; tens of MB are fine), or why it gave up.
using RankBody = std::function<Result<std::string>(LocalRank&)>;

/// What the ranks handed back, by rank. REQUIRES: this process has one thread.
/// Otherwise the error of the rank that failed first, with its own code; a rank that was killed, left or hung is a runtime failure
/// that names it and its last task.
Result<std::vector<std::string>> launchLocalRanks(int ranks, const LaunchOptions& options, const RankBody& body);

}  // namespace ringside
