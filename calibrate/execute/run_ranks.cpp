#include "calibrate/execute/run_ranks.h"

#include <mutex>

#include <sys/prctl.h>

#include <fmt/format.h>

#include "calibrate/comm/gloo_communicator.h"
#include "calibrate/comm/prompt_thread.h"
#include "calibrate/execute/awake_cores.h"
#include "calibrate/execute/rank_cores.h"
#include "calibrate/ranks/launch.h"

namespace ringside {
namespace {

/// Timers of this process fire when they are due, not up to 50 µs later (paced kernels, time-outs).
void wakeOnTime() { prctl(PR_SET_TIMERSLACK, 1UL); }

/// All threads of the rank, those of the collectives too, on cores of its own. Called before any of them exists.
void takeCores(RankContext& context, const RunRanksOptions& options) {
    // Over a shaped link each local rank is the first of its node, but all are on this machine.
    const bool forked = options.localRanks > 0;
    const int place = forked ? context.env.rank : context.env.localRank, ranks = forked ? options.localRanks : context.env.localSize;
    const std::optional<int> first = ranks > 0 ? firstCoreOf(allowedCores(), place, ranks, options.threads) : std::nullopt;
    if (first && stayOnCores(*first, options.threads)) context.firstCore = *first;
    if (forked && context.firstCore < 0) PromptScope::forbid();
}

Result<std::string> runAsRank(const RankEnv& env, const RunRanksOptions& options, const GlooWorldOptions& gloo, const RankWork& work, std::function<void(const std::string&)> progress) {
    wakeOnTime();
    RankContext context{env, nullptr, -1, std::move(progress)};
    takeCores(context, options);
    const AwakeCores awake(context.firstCore, context.firstCore < 0 ? 0 : options.threads);
    std::unique_ptr<CommWorld> world;
    if (env.size > 1) {
        TRY(world, makeGlooWorld(gloo));
        context.world = world.get();
    }
    return work(context);
}

Result<std::optional<std::vector<std::string>>> runLocal(const RunRanksOptions& options, const RankWork& work) {
    LaunchOptions launch;
    launch.timeout = options.timeout;
    launch.port = options.port;
    std::unique_ptr<ShapedLink> link;
    if (options.linkBitsPerSecond) {
        TRY(link, ShapedLink::create({options.localRanks, *options.linkBitsPerSecond}));
        launch.link = link.get();
    }
    TRY(std::vector<std::string> results, launchLocalRanks(options.localRanks, launch, [&](LocalRank& rank) -> Result<std::string> {
            GlooWorldOptions gloo;
            gloo.env = rank.env();
            gloo.timeout = options.timeout;
            if (link) gloo.hostname = link->address(rank.env().rank);
            return runAsRank(rank.env(), options, gloo, work, [&](const std::string& task) { rank.progress(task); });
        }));
    return std::optional(std::move(results));
}

/// What the rank began last, for the message should it fail.
class LastTask {
public:
    void begin(const std::string& task) {
        const std::lock_guard lock(mutex_);
        task_ = task;
    }
    std::string name() const {
        const std::lock_guard lock(mutex_);
        return task_;
    }

private:
    mutable std::mutex mutex_;
    std::string task_;
};

Result<std::optional<std::vector<std::string>>> runAsLaunched(const RankEnv& env, const RunRanksOptions& options, const RankWork& work) {
    std::shared_ptr<LaunchedRanks> ranks = options.launched;
    if (!ranks) {
        TRY(ranks, LaunchedRanks::join(env, options.timeout));
    }
    GlooWorldOptions gloo;
    gloo.env = env;
    gloo.store = ranks->storeOfNextRun();
    gloo.timeout = options.timeout;
    LastTask last;
    Result<std::string> mine = runAsRank(env, options, gloo, work, [&](const std::string& task) { last.begin(task); });
    if (!mine && mine.error().code == ErrorCode::RuntimeFailure && !last.name().empty()) {
        Error error = mine.error();
        error.message = fmt::format("rank {} failed: {}; its last task was '{}'", env.rank, error.message, last.name());
        mine = tl::unexpected<Error>(std::move(error));
    }
    return ranks->gather(*gloo.store, mine);
}

}  // namespace

Result<void> joinLaunchedRanks(RunRanksOptions& options) {
    TRY(const int ranks, rankCount(options));
    if (options.localRanks > 0 || ranks == 1) return {};
    TRY(const std::optional<RankEnv> env, rankEnvOfProcess());
    TRY(options.launched, LaunchedRanks::join(*env, options.timeout));
    return {};
}

Result<int> rankCount(const RunRanksOptions& options) {
    TRY(const std::optional<RankEnv> env, rankEnvOfProcess());
    if (options.localRanks > 0) {
        if (env && env->size > 1)
            return failure(ErrorCode::Usage, "--local-ranks", fmt::format("{} has started {} ranks already; leave --local-ranks out, or start the program by itself", env->launcher, env->size));
        return options.localRanks;
    }
    return env ? env->size : 1;
}

Result<std::optional<std::vector<std::string>>> runRanks(const RunRanksOptions& options, const RankWork& work) {
    TRY(const int ranks, rankCount(options));
    if (options.localRanks > 0) return runLocal(options, work);
    if (options.linkBitsPerSecond) return failure(ErrorCode::Usage, "--link", "shapes the links between local ranks; give --local-ranks too");
    TRY(const std::optional<RankEnv> env, rankEnvOfProcess());
    if (ranks > 1) return runAsLaunched(*env, options, work);
    TRY(std::string only, runAsRank(env.value_or(RankEnv{}), options, {}, work, {}));
    return std::optional(std::vector<std::string>{std::move(only)});
}

}  // namespace ringside
