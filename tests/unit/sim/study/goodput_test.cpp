// Young, Daly, and the simulation that must agree with them.
#include "sim/study/goodput.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/study/failure_simulation.h"
#include "sim/study/plan_trial.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

TEST(Goodput, YoungsIntervalIsTheRootOfTwiceCheckpointTimesMtbf) {
    // C = 60 s, M = 24 h = 86,400 s: √(2 · 60 · 86,400) = √10,368,000 = 3,219.94 s.
    EXPECT_NEAR(youngInterval(60, 86400), 3219.94, 0.01);
}

TEST(Goodput, DalysIntervalCorrectsYoungs) {
    // C/(2M) = 60/172,800 = 1/2,880: 3,219.94 · (1 + √(1/2,880)/3 + 1/25,920) − 60
    //   = 3,219.94 · (1 + 0.0062113 + 0.0000386) − 60 = 3,180.06 s.
    EXPECT_NEAR(dalyInterval(60, 86400), 3180.06, 0.02);
    // A checkpoint that takes twice the MTBF or more: the interval is the MTBF.
    EXPECT_DOUBLE_EQ(dalyInterval(300, 100), 100);
}

TEST(Goodput, DalysIntervalIsTheBestOfItsNeighbours) {
    for (const double checkpoint : {1.0, 60.0, 600.0}) {
        const double best = goodputAt(dalyInterval(checkpoint, 86400), {checkpoint, 0}, 300, 86400);
        for (const double factor : {0.5, 0.8, 1.25, 2.0})
            EXPECT_GT(best, goodputAt(factor * dalyInterval(checkpoint, 86400), {checkpoint, 0}, 300, 86400)) << checkpoint << " × " << factor;
    }
}

TEST(Goodput, WithoutFailuresOnlyCheckpointsCost) {
    // M so long that nothing fails: 95/(95 + 5).
    EXPECT_NEAR(goodputAt(95, {5, 0}, 600, 1e15), 0.95, 1e-6);
}

TEST(Goodput, IsOneMinusTheLossesWhereTheyAreSmall) {
    // C/τ + (τ/2 + R)/M = 60/3,200 + (1,600 + 300)/86,400 = 0.01875 + 0.02199 = 0.0407; second order is below 0.0407².
    EXPECT_NEAR(goodputAt(3200, {60, 0}, 300, 86400), 1 - 0.0407, 0.0017);
}

TEST(Goodput, OfAJobFallsWithItsDevices) {
    // 16,384 devices: M = 50,677 h / 16,384 = 3.09 h, one failure every three hours, as the report says.
    const Goodput large = bestGoodput(16384, {30, 0}, {});
    EXPECT_NEAR(large.mtbfSeconds / 3600, 54.0 * 24 / 419, 1e-9);
    EXPECT_GT(large.goodput, 0.85);
    EXPECT_LT(large.goodput, 0.95);  // "more than 90 % effective training time"
    EXPECT_GT(bestGoodput(1024, {30, 0}, {}).goodput, large.goodput);
}

TEST(Checkpoint, TakesItsBytesOverTheStorageRate) {
    const Cluster cluster = testing::scenarioOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 16}").cluster;
    // 2 nodes at 1 GB/s each: 18 GB take 9 s; at 4 GB/s 4.5 s; 7 s if that is said.
    EXPECT_DOUBLE_EQ(checkpointCost(18'000'000'000, cluster, {})->blockingSeconds, 9);
    EXPECT_DOUBLE_EQ(checkpointCost(18'000'000'000, cluster, {{}, 4.0, false})->blockingSeconds, 4.5);
    EXPECT_DOUBLE_EQ(checkpointCost(18'000'000'000, cluster, {7.0, 4.0, false})->blockingSeconds, 7);
}

TEST(Checkpoint, AnAsynchronousOneBlocksOnlyForTheCopyToTheHost) {
    Cluster cluster = testing::scenarioOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 16}").cluster;
    cluster.nodes.front().kind.device.pcieNcclGbPerS.reset();
    cluster.nodes.front().kind.device.pcieGbPerS = 25;
    // Each of 16 devices copies 18/16 GB = 1.125 GB at 25 GB/s: 45 ms; the write takes the 9 s it always did.
    const Result<CheckpointCost> cost = checkpointCost(18'000'000'000, cluster, {{}, {}, true});
    ASSERT_TRUE(cost);
    EXPECT_DOUBLE_EQ(cost->blockingSeconds, 0.045);
    EXPECT_DOUBLE_EQ(cost->writeSeconds, 9);
    EXPECT_GE(bestGoodput(16, *cost, {}).intervalSeconds, 9) << "the next checkpoint waits for the last to be written";
}

TEST(Checkpoint, HoldsParametersAndOptimizerState) {
    const Scenario scenario = testing::scenarioOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm'}");
    const Result<Workload> workload = buildWorkload(scenario.model, scenario.training);
    ASSERT_TRUE(workload);
    // bf16 autocast keeps fp32 parameters; AdamW two fp32 moments (and a step counter for each tensor): 12 bytes each.
    const double perParameter = static_cast<double>(checkpointBytes(*workload, scenario.training)) / static_cast<double>(parameterCount(*workload));
    EXPECT_NEAR(perParameter, 12, 0.001);
}

TEST(FailureSimulation, IsAFunctionOfItsSeed) {
    const FailureRun a = simulateFailures(3000, {60, 0}, 300, 86400, 1000, 5), b = simulateFailures(3000, {60, 0}, 300, 86400, 1000, 5);
    EXPECT_EQ(a.goodput, b.goodput);
    EXPECT_NE(a.goodput, simulateFailures(3000, {60, 0}, 300, 86400, 1000, 6).goodput);
    EXPECT_EQ(a.failures, 1000);
    // 1,000 failures a day apart: 8.64e7 s ± 1/√1,000 = 3.2 %; four of those.
    EXPECT_NEAR(a.seconds, 8.64e7, 8.64e7 * 0.128);
}

TEST(FailureSimulation, CountsWholeSegmentsOfEachLifeOnly) {
    // One failure, after x seconds: with segments of 100 s of work and 10 s of checkpoint, ⌊x/110⌋ of them are saved; with a
    // write of 50 s behind it the last is lost if x is within 50 s of its end.
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
        const FailureRun blocking = simulateFailures(100, {10, 0}, 0, 1000, 1, seed), writing = simulateFailures(100, {10, 50}, 0, 1000, 1, seed);
        const double whole = std::floor(blocking.seconds / 110), rest = blocking.seconds - 110 * whole;
        EXPECT_NEAR(blocking.goodput * blocking.seconds, 100 * whole, 1e-6);
        EXPECT_NEAR(writing.goodput * writing.seconds, 100 * (whole > 0 && rest < 50 ? whole - 1 : whole), 1e-6);
    }
}

TEST(FailureSimulation, EndsAlsoWhereNothingEverFails) {
    // A failure in 1e15 s and checkpoints every second: more segments than could be walked one by one.
    EXPECT_NEAR(simulateFailures(1, {0, 0}, 600, 1e15, 1000, 1).goodput, 1, 1e-6);
}

struct Regime {
    double checkpoint, write, restart, mtbf, tolerance;
};
class ClosedForm : public ::testing::TestWithParam<Regime> {};

TEST_P(ClosedForm, AgreesWithTheSimulation) {
    const auto [checkpoint, write, restart, mtbf, tolerance] = GetParam();
    const CheckpointCost cost{checkpoint, write};
    const double interval = std::max(dalyInterval(checkpoint, mtbf), write);
    const double closed = goodputAt(interval, cost, restart, mtbf);
    const double simulated = simulateFailures(interval, cost, restart, mtbf, 40'000, 11).goodput;
    EXPECT_NEAR(closed, simulated, tolerance) << "interval " << interval;
}
// Losses per failure spread about as much as their mean, so over 40,000 failures goodput is known to about (1 − g)/200:
// below 0.1 % where the MTBF is long. Blocking checkpoints agree to that noise in every regime, since the form is exact; an
// asynchronous write is first order.
INSTANTIATE_TEST_SUITE_P(Regimes, ClosedForm, ::testing::Values(Regime{60, 0, 300, 86400, 0.001}, Regime{5, 0, 600, 40000, 0.001}, Regime{120, 0, 900, 11000, 0.003},
                                                              Regime{600, 0, 1800, 7200, 0.005}, Regime{2, 60, 600, 86400, 0.001}, Regime{10, 300, 600, 40000, 0.01}));

TEST(FailureSimulation, ItsBestIntervalIsTheClosedForms) {
    const Goodput best = bestGoodput(2048, {60, 0}, {});
    double bestFactor = 0, most = 0;
    std::vector<std::pair<double, double>> curve;
    for (const double factor : {0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0}) {
        const double goodput = simulateFailures(factor * best.intervalSeconds, best.checkpoint, best.restartSeconds, best.mtbfSeconds, 20'000, 3).goodput;
        curve.emplace_back(factor, goodput);
        if (goodput > most) most = goodput, bestFactor = factor;
    }
    // The curve is flat at its top: 0.7 and 1.4 lose 6 % of a loss of a few per cent, which is the noise of the simulation.
    EXPECT_GE(bestFactor, 0.7);
    EXPECT_LE(bestFactor, 1.4);
    for (const auto& [factor, goodput] : curve) {
        if (factor <= 0.25 || factor >= 4) {
            EXPECT_LT(goodput, most - 0.01) << factor;
        }
    }
}

TEST(FailureSimulation, ThePlansCheckShowsBothFiguresAroundTheOptimum) {
    const Goodput best = bestGoodput(1024, {20, 0}, {});
    const std::vector<GoodputPoint> points = checkGoodput(best, 5000, 1);
    ASSERT_EQ(points.size(), 5U);
    EXPECT_DOUBLE_EQ(points[2].intervalSeconds, best.intervalSeconds);
    EXPECT_DOUBLE_EQ(points[2].closedForm, best.goodput);
    for (const GoodputPoint& point : points) EXPECT_NEAR(point.simulated, point.closedForm, 0.01);
    // An asynchronous write longer than the interval leaves the short ones out.
    EXPECT_EQ(checkGoodput(bestGoodput(1024, {0.01, 1000}, {}), 100, 1).size(), 3U);
}

}  // namespace
}  // namespace ringside
