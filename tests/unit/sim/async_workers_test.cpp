// Workers that do not wait for each other; docs/models/parameter-server.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/async_workers.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

Time us(std::int64_t n) { return Time::fromNanoseconds(n * 1000); }

/// One key of 1 MB: pushed at the end of 1 ms of compute, pulled when it has been applied.
WorkerGroup workers(std::int64_t count, Time compute = us(1000)) {
    WorkerGroup group;
    group.messages = {{true, 0, 1e6, compute, -1, -1}, {false, 0, 1e6, compute, -1, 0}};
    group.length = compute;
    group.workers = count;
    return group;
}

/// `gbPerS` each way, 10 GB/s per worker, no latency; applying takes `apply`.
ServerPrices server(double gbPerS, Time apply = {}) {
    ServerPrices prices;
    prices.remote.bytesPerS = gbPerS * 1e9;
    prices.remote.flowBytesPerS = {10e9};
    prices.sum = {Time()};
    prices.apply = {apply};
    return prices;
}

TEST(AsyncWorkers, OneWorkerTakesComputePushAndPull) {
    const AsyncRun run = runAsyncWorkers({workers(1)}, server(10, us(50)), {});
    // 1000 µs + 1 MB at 10 GB/s = 100 µs, apply 50 µs, 100 µs back.
    EXPECT_NEAR(run.outcome.iterationSeconds, 1250e-6, 1e-9);
    EXPECT_EQ(run.outcome.maxStaleness, 0);
    EXPECT_EQ(run.messageEnds[0][0], us(1100));
    EXPECT_EQ(run.messageEnds[0][1], us(1250));
}

TEST(AsyncWorkers, GradientsAreNMinusOneUpdatesOld) {
    for (const std::int64_t n : {2, 8, 64, 1000, 16384}) {
        const AsyncRun run = runAsyncWorkers({workers(n)}, server(1000, us(1)), {});
        EXPECT_NEAR(run.outcome.meanStaleness, static_cast<double>(n - 1), 0.05 * static_cast<double>(n)) << n;
    }
}

TEST(AsyncWorkers, AServerThatIsBusyAllTheTimeSetsThePace) {
    // 64 workers, each push takes 100 µs to apply: 6.4 ms per round of all of them, well above 1.2 ms.
    EXPECT_NEAR(runAsyncWorkers({workers(64)}, server(1000, us(100)), {}).outcome.iterationSeconds, 6.4e-3, 6.4e-5);
    // Its wire likewise: 64 MB in at 1 GB/s are 64 ms.
    const double wire = runAsyncWorkers({workers(64)}, server(1), {}).outcome.iterationSeconds;
    EXPECT_GE(wire, 64e-3);
    EXPECT_LE(wire, 1.2 * 64e-3) << "pushes that share the wire end together, so that it is idle for a moment now and then";
}

TEST(AsyncWorkers, ASlowWorkerSlowsNobodyElse) {
    const std::vector<WorkerGroup> groups = {workers(15), workers(1, us(4000))};
    const AsyncOutcome alike = runAsyncWorkers({workers(16)}, server(1000), {}).outcome, mixed = runAsyncWorkers(groups, server(1000), {}).outcome;
    EXPECT_NEAR(mixed.fastestSeconds, alike.iterationSeconds, 1e-6);
    EXPECT_NEAR(mixed.slowestSeconds, alike.iterationSeconds + 3e-3, 1e-5);
    // 15 workers at the old pace, one at its own: 16 / (15/1.2 + 1/4.2) of a millisecond.
    EXPECT_NEAR(mixed.iterationSeconds, 16 / (15 / alike.iterationSeconds + 1 / (alike.iterationSeconds + 3e-3)), 5e-5);
    EXPECT_GT(mixed.maxStaleness, 30) << "while the slow one computes, the others push three times each";
}

TEST(AsyncWorkers, BoundedStalenessHoldsTheFastAtTheSlowOnesPace) {
    const std::vector<WorkerGroup> groups = {workers(15), workers(1, us(4000))};
    double before = 1;
    for (const std::int64_t s : {0, 1, 4, 1000}) {
        AsyncOptions options;
        options.staleness = s;
        const AsyncOutcome outcome = runAsyncWorkers(groups, server(1000), options).outcome;
        EXPECT_LE(outcome.iterationSeconds, before * 1.001) << s;
        before = outcome.iterationSeconds;
        if (s > 4) continue;
        EXPECT_NEAR(outcome.iterationSeconds, 4.2e-3, 2e-4) << "in the long run nobody is faster than the slowest, s = " << s;
    }
    EXPECT_NEAR(before, runAsyncWorkers(groups, server(1000), {}).outcome.iterationSeconds, 0.02 * before) << "a bound that is never reached is none";
}

TEST(AsyncWorkers, BoundedStalenessRidesOutJitterThatAPaceWithoutLeadCannot) {
    Perturbation jitter;
    jitter.jitter = 0.3;
    const auto seconds = [&](std::int64_t staleness) {
        AsyncOptions options;
        options.staleness = staleness;
        options.perturbation = &jitter;
        return runAsyncWorkers({workers(32)}, server(1000), options).outcome.iterationSeconds;
    };
    // Without lead every iteration waits for the slowest of 32 draws: 1 + 0.3·2.07 ms and the messages; with lead it averages out.
    EXPECT_GT(seconds(0), 1.6e-3);
    EXPECT_LT(seconds(8), 1.35e-3);
    EXPECT_LE(seconds(8), seconds(2));
    EXPECT_LE(seconds(2), seconds(0));
}

TEST(AsyncWorkers, IsAPureFunction) {
    const AsyncOutcome a = runAsyncWorkers({workers(100)}, server(3, us(7)), {}).outcome, b = runAsyncWorkers({workers(100)}, server(3, us(7)), {}).outcome;
    EXPECT_EQ(a, b);
}

std::string gpt2(const std::string& strategy, const std::string& more = "") {
    return "{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'training':{'micro_batch':4},'strategy':" + strategy + more + "}";
}

TEST(Ssp, WithoutAnyLeadIsSynchronous) {
    EXPECT_EQ(predictionOf(gpt2("{'name':'ssp','staleness':0}")).stepSeconds, predictionOf(gpt2("'ps-servers'")).stepSeconds);
}

TEST(Ssp, WithAllTheLeadIsAsynchronous) {
    EXPECT_EQ(predictionOf(gpt2("{'name':'ssp','staleness':100000}")).stepSeconds, predictionOf(gpt2("'async-ps'")).stepSeconds);
}

TEST(AsyncPs, AStragglerCostsItsOwnShareOnly) {
    const std::string slow = ",'perturbation':{'stragglers':[{'rank':3,'compute':3}]}";
    // Few bytes per step matter less than compute: plenty of servers.
    const auto seconds = [&](const std::string& name, const std::string& more) { return predictionOf(gpt2("{'name':'" + name + "','servers':64}", more)).stepSeconds; };
    const double syncLoss = seconds("ps-servers", slow) / seconds("ps-servers", ""), asyncLoss = seconds("async-ps", slow) / seconds("async-ps", "");
    EXPECT_GT(syncLoss, 2);
    EXPECT_LT(asyncLoss, 1.15);  // one of eight workers gives a third of its share: 8 / (7 + 1/3) = 1.09
}

TEST(AsyncPs, ReportsStaleness) {
    const Scenario scenario = scenarioOf(gpt2("'async-ps'"));
    const Prediction prediction = predictionOf(scenario);
    ASSERT_TRUE(prediction.timeline.async);
    EXPECT_NEAR(prediction.timeline.async->meanStaleness, 7, 0.5);
    const Json json = toJson(scenario, prediction);
    EXPECT_NEAR(json["staleness"]["mean"].get<double>(), 7, 0.5);
    EXPECT_GE(json["staleness"]["max"].get<int>(), 7);
    EXPECT_NEAR(prediction.samplesPerSecond, 32 / prediction.stepSeconds, 1e-6);
    // What is drawn is a mean iteration: about as long as the mean.
    EXPECT_NEAR(prediction.timeline.stepTime.seconds(), prediction.stepSeconds, 0.05 * prediction.stepSeconds);
}

TEST(AsyncPs, SixteenThousandWorkersAreSimulatedLikeAFew) {
    const Prediction prediction = predictionOf("{'model':'llama-3-8b','device':'h100-sxm','devices':16384,'training':{'micro_batch':1,'seq_len':4096},'strategy':'async-ps'}");
    EXPECT_NEAR(prediction.timeline.async->meanStaleness, 16383, 200);
}

}  // namespace
}  // namespace ringside::testing
