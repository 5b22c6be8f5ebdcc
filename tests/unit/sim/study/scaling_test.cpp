// Scaling: the definitions with hand arithmetic, the batch rules, and studies over real predictions.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/study/scaling.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using testing::catalogs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::jsonOf;

TEST(SpeedUp, OfWeakScalingIsDevicesTimesTheRatioOfStepTimes) {
    // T1 = 1 s, T8 = 1.25 s, each device does the same work: E = 1/1.25 = 0.8, and 8 · 0.8 = 6.4 times the samples per second.
    const SpeedUp weak = speedUpOf(ScalingMode::Weak, 1, 1.0, 8, 1.25);
    EXPECT_DOUBLE_EQ(weak.efficiency, 0.8);
    EXPECT_DOUBLE_EQ(weak.speedup, 6.4);
}

TEST(SpeedUp, OfStrongScalingIsTheRatioOfStepTimes) {
    // T1 = 1 s, T8 = 0.25 s for the same global batch: S = 4, E = 4/8 = 0.5.
    const SpeedUp strong = speedUpOf(ScalingMode::Strong, 1, 1.0, 8, 0.25);
    EXPECT_DOUBLE_EQ(strong.speedup, 4);
    EXPECT_DOUBLE_EQ(strong.efficiency, 0.5);
}

TEST(SpeedUp, RefersToTheBaselinesDevices) {
    // From 8 to 32 devices the ideal is 4. Weak, 1 s to 1.25 s: E = 0.8, S = 3.2. Strong, 1 s to 0.5 s: S = 2, E = 2/4.
    EXPECT_DOUBLE_EQ(speedUpOf(ScalingMode::Weak, 8, 1.0, 32, 1.25).speedup, 3.2);
    EXPECT_DOUBLE_EQ(speedUpOf(ScalingMode::Strong, 8, 1.0, 32, 0.5).efficiency, 0.5);
}

TEST(SplitBatch, KeepsTheMicroBatchWhereItDivides) {
    const auto split = splitBatch(512, 8, 16);  // 64 per replica = 16 · 4
    ASSERT_TRUE(split);
    EXPECT_EQ(split->microBatch, 16);
    EXPECT_EQ(split->gradAccum, 4);
}

TEST(SplitBatch, LowersTheMicroBatchToTheLargestDivisor) {
    const auto split = splitBatch(96, 8, 5);  // 12 per replica: 5 does not divide it, 4 does
    ASSERT_TRUE(split);
    EXPECT_EQ(split->microBatch, 4);
    EXPECT_EQ(split->gradAccum, 3);
    EXPECT_EQ(splitBatch(512, 64, 16)->microBatch, 8);  // only 8 are left for each
}

TEST(SplitBatch, IsEmptyWhereReplicasWouldGetUnevenShares) { EXPECT_FALSE(splitBatch(100, 8, 4)); }

TEST(SplitBatch, AlwaysMakesUpTheGlobalBatch) {
    const bool held = rc::check("micro × accumulation × replicas = global batch", [] {
        const auto global = *rc::gen::inRange<std::int64_t>(1, 5000), replicas = *rc::gen::inRange<std::int64_t>(1, 65),
                   wanted = *rc::gen::inRange<std::int64_t>(1, 100);
        const auto split = splitBatch(global, replicas, wanted);
        RC_ASSERT(split.has_value() == (global % replicas == 0));
        if (!split) return;
        RC_ASSERT(split->microBatch * split->gradAccum * replicas == global);
        RC_ASSERT(split->microBatch <= wanted);
        for (std::int64_t larger = split->microBatch + 1; larger <= wanted; ++larger) RC_ASSERT(global / replicas % larger != 0);
    });
    EXPECT_TRUE(held);
}

ScalingRequest requestOf(const std::string& scenario, ScalingMode mode, std::vector<std::int64_t> devices) {
    ScalingRequest request;
    request.scenario = jsonOf(scenario);
    request.mode = mode;
    request.devices = std::move(devices);
    return request;
}

ScalingStudy studied(const ScalingRequest& request) {
    auto study = studyScaling(request, catalogs());
    if (!study) throw std::runtime_error(study.error().toString());
    return std::move(*study);
}

std::vector<std::int64_t> devicesOf(const ScalingStudy& study) {
    std::vector<std::int64_t> devices;
    for (const ScalingPoint& point : study.points) devices.push_back(point.devices);
    return devices;
}

const std::string kGpt2 = "{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'training': {'micro_batch': 4}}";

TEST(WeakScaling, GivesWhatTwoPredictionsGive) {
    const ScalingStudy study = studied(requestOf(kGpt2, ScalingMode::Weak, {8, 1, 2}));
    EXPECT_THAT(devicesOf(study), ElementsAre(1, 2, 8));
    const double one =
        testing::predictionOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'training': {'micro_batch': 4}, 'strategy': 'ddp'}").stepSeconds;
    const double eight =
        testing::predictionOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 8, 'training': {'micro_batch': 4}, 'strategy': 'ddp'}")
            .stepSeconds;
    EXPECT_EQ(study.baseline, 1);
    EXPECT_DOUBLE_EQ(study.points[2].stepSeconds, eight);
    EXPECT_DOUBLE_EQ(study.points[2].speedUp->efficiency, one / eight);
    EXPECT_DOUBLE_EQ(study.points[2].speedUp->speedup, 8 * one / eight);
    EXPECT_LT(study.points[2].speedUp->efficiency, 1);
    EXPECT_EQ(study.points[2].globalBatch, 32);  // 4 samples on each of 8
    for (const ScalingPoint& point : study.points) EXPECT_EQ(point.strategy, "ddp");
}

TEST(WeakScaling, SpeedUpIsTheRatioOfSamplesPerSecond) {
    const ScalingStudy study = studied(requestOf(kGpt2, ScalingMode::Weak, {1, 4, 16}));
    for (const ScalingPoint& point : study.points)
        EXPECT_NEAR(point.speedUp->speedup, point.samplesPerSecond / study.points.front().samplesPerSecond, 1e-9 * point.speedUp->speedup);
}

TEST(StrongScaling, KeepsTheGlobalBatchOfTheBaseline) {
    auto request =
        requestOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'training': {'micro_batch': 4, 'grad_accum': 16}}", ScalingMode::Strong, {1, 2, 8});
    const ScalingStudy study = studied(request);
    for (const ScalingPoint& point : study.points) {
        EXPECT_EQ(point.globalBatch, 64);  // 4 · 16 · 1
        EXPECT_EQ(point.microBatch, 4);
        EXPECT_EQ(point.gradAccum * point.devices, 16);
    }
    // S = T1/T8, E = S/8.
    EXPECT_DOUBLE_EQ(study.points[2].speedUp->speedup, study.points[0].stepSeconds / study.points[2].stepSeconds);
    EXPECT_DOUBLE_EQ(study.points[2].speedUp->efficiency, study.points[2].speedUp->speedup / 8);
}

TEST(StrongScaling, SkipsWhatCannotBeSplitAndSaysWhy) {
    const ScalingStudy study = studied(requestOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'training': {'micro_batch': 8, 'global_batch': 24}}",
                                                 ScalingMode::Strong, {1, 2, 16}));
    EXPECT_THAT(devicesOf(study), ElementsAre(1, 2));
    EXPECT_EQ(study.points[1].microBatch, 6);  // 12 per device: 8 does not divide it, 6 does
    EXPECT_EQ(study.points[1].gradAccum, 2);
    ASSERT_EQ(study.skipped.size(), 1U);
    EXPECT_EQ(study.skipped[0].devices, 16);
    EXPECT_THAT(study.skipped[0].reason, HasSubstr("a global batch of 24 cannot be split evenly over 16"));
}

TEST(Baseline, ThatWasNotAskedForIsPredictedAllTheSame) {
    auto request = requestOf(kGpt2, ScalingMode::Weak, {8, 16});
    request.baseline = 1;
    const ScalingStudy study = studied(request);
    EXPECT_THAT(devicesOf(study), ElementsAre(8, 16));
    ASSERT_EQ(study.baselines.size(), 1U);
    EXPECT_EQ(study.baselines[0].devices, 1);
    EXPECT_DOUBLE_EQ(study.points[0].speedUp->efficiency, study.baselines[0].stepSeconds / study.points[0].stepSeconds);
}

TEST(Baseline, IsTheFewestDevicesOtherwise) {
    const ScalingStudy study = studied(requestOf(kGpt2, ScalingMode::Weak, {16, 8}));
    EXPECT_EQ(study.baseline, 8);
    EXPECT_DOUBLE_EQ(study.points[0].speedUp->efficiency, 1);
}

TEST(Strategies, EachHaveALineAgainstTheirOwnBaseline) {
    auto request = requestOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'strategy': {'name': 'ddp', 'bucket_mb': 10}}", ScalingMode::Weak, {1, 8});
    request.strategies = {"naive", "ddp"};  // naive has no buckets: the setting goes to ddp only
    const ScalingStudy study = studied(request);
    ASSERT_EQ(study.points.size(), 4U);
    EXPECT_TRUE(study.skipped.empty());
    EXPECT_EQ(study.points[0].strategy, "naive");
    EXPECT_EQ(study.points[2].strategy, "ddp");
    EXPECT_DOUBLE_EQ(study.points[1].speedUp->efficiency, study.points[0].stepSeconds / study.points[1].stepSeconds);
    EXPECT_GT(study.points[3].speedUp->efficiency, study.points[1].speedUp->efficiency);
}

TEST(Strategies, ThatCannotRunSomewhereAreSkippedThere) {
    auto request = requestOf(kGpt2, ScalingMode::Weak, {1, 8});
    request.strategies = {"single"};
    const ScalingStudy study = studied(request);
    EXPECT_THAT(devicesOf(study), ElementsAre(1));
    ASSERT_EQ(study.skipped.size(), 1U);
    EXPECT_NE(study.skipped[0].reason, "");
}

TEST(Cluster, GrowsByItsOwnKindOfNode) {
    const ScalingStudy study = studied(requestOf("{'model': 'gpt2', 'cluster': 'dgx-a100-2'}", ScalingMode::Weak, {4, 8, 32}));
    EXPECT_THAT(devicesOf(study), ElementsAre(4, 8, 32));
    const auto mixed = studyScaling(requestOf("{'model': 'gpt2', 'cluster': 'mixed-a100-h100'}", ScalingMode::Weak, {8, 16}), catalogs());
    ASSERT_FALSE(mixed);
    EXPECT_THAT(mixed.error().toString(), HasSubstr("several kinds of nodes"));
}

TEST(Study, DoesNotDependOnTheNumberOfThreads) {
    auto request = requestOf(kGpt2, ScalingMode::Weak, {1, 2, 4, 8, 12, 16});
    request.strategies = {"ddp", "naive"};
    request.threads = 1;
    const std::string one = toJson(studied(request)).dump();
    request.threads = 2;
    EXPECT_EQ(toJson(studied(request)).dump(), one);
}

TEST(Study, RefusesWhatItCannotUnderstand) {
    const auto refused = [](ScalingRequest request) {
        const auto study = studyScaling(request, catalogs());
        return study ? std::string("accepted") : study.error().toString();
    };
    EXPECT_THAT(refused(requestOf(kGpt2, ScalingMode::Weak, {})), HasSubstr("--devices"));
    EXPECT_THAT(refused(requestOf(kGpt2, ScalingMode::Weak, {0, 2})), HasSubstr("0 is not a device count"));
    auto unknown = requestOf(kGpt2, ScalingMode::Weak, {1});
    unknown.strategies = {"ddpp"};
    EXPECT_THAT(refused(unknown), HasSubstr("did you mean 'ddp'?"));
    EXPECT_THAT(refused(requestOf("{'model': 'gtp2', 'device': 'a100-80gb-sxm'}", ScalingMode::Weak, {1})), HasSubstr("did you mean 'gpt2'?"));
}

TEST(ScalingChart, HasALinePerStrategyTheIdealAndHollowPointsForWhatDoesNotFit) {
    auto request = requestOf("{'model': 'llama-3-8b', 'device': 'a100-80gb-sxm'}", ScalingMode::Weak, {1, 8});
    const ScalingStudy study = studied(request);
    ASSERT_EQ(study.points[1].verdict, MemoryVerdict::OutOfMemory);
    const Chart chart = chartOf(study, ScalingFigure::SpeedUp);
    ASSERT_EQ(chart.series.size(), 2U);
    EXPECT_TRUE(chart.series[0].points[1].hollow);
    EXPECT_TRUE(chart.series[1].reference);
    EXPECT_DOUBLE_EQ(chart.series[1].points.back().y, 8);  // ideal speed-up on 8 devices
    EXPECT_DOUBLE_EQ(chartOf(study, ScalingFigure::Efficiency).series[1].points.back().y, 1);
}

}  // namespace
}  // namespace ringside
