#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/timeline_trace.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

using ::testing::HasSubstr;

const std::string kGpt2 = "{'model':'gpt2','device':'a100-80gb-sxm','devices':16,'training':{'micro_batch':8}}";

TEST(Prediction, ThroughputIsTheGlobalBatchOverTheStep) {
    const Prediction p = predictionOf(kGpt2);
    EXPECT_DOUBLE_EQ(p.samplesPerSecond * p.stepSeconds, 8 * 16);
    EXPECT_DOUBLE_EQ(p.tokensPerSecond, p.samplesPerSecond * 1024);
}

TEST(Prediction, MfuIsModelFlopsOverPeak) {
    // 6N + 12·L·h·s FLOPs per token with N = 124,439,808 (embedding tied, so it counts), L 12, h 768, s 1024; 312 TFLOPS each.
    const Prediction p = predictionOf(kGpt2);
    const double flopsPerToken = 6.0 * 124'439'808 + 12.0 * 12 * 768 * 1024;
    EXPECT_NEAR(p.mfu, flopsPerToken * p.tokensPerSecond / (16 * 312e12), 0.02 * p.mfu);
}

TEST(Prediction, TheBandLiesAroundTheMedianAndIsSymmetricInTheLogarithm) {
    const Prediction p = predictionOf(kGpt2);
    EXPECT_LT(p.p10Seconds, p.stepSeconds);
    EXPECT_GT(p.p90Seconds, p.stepSeconds);
    EXPECT_NEAR(p.p10Seconds * p.p90Seconds, p.stepSeconds * p.stepSeconds, 1e-12);
}

TEST(Prediction, SensitivitiesSayWhatMoreOfAResourceGives) {
    const Prediction p = predictionOf(scenarioOf(kGpt2), {});
    ASSERT_EQ(p.sensitivity.size(), 4U);
    for (const Sensitivity& s : p.sensitivity) EXPECT_NEAR(s.change, s.stepSeconds / p.stepSeconds - 1, 1e-12) << s.resource;
    EXPECT_LT(p.sensitivity[0].change, -0.01) << "compute matters here";
    EXPECT_GT(p.sensitivity[0].change, -0.1) << "10 % more cannot save more than 9.1 %";
}

TEST(Prediction, ThePathSumsToTheStep) {
    const Prediction p = predictionOf(scenarioOf(kGpt2), {});
    double byKind = 0, byName = 0;
    for (const auto& [kind, seconds] : p.pathSeconds) byKind += seconds;
    for (const PathItem& item : p.criticalPath) byName += item.seconds;
    EXPECT_NEAR(byKind, p.stepSeconds, 1e-9);
    EXPECT_NEAR(byName, p.stepSeconds, 1e-9);
}

TEST(Prediction, VerdictsFollowTheCapacity) {
    EXPECT_EQ(predictionOf(kGpt2).verdict, MemoryVerdict::Fits);
    const Prediction large = predictionOf("{'model':'llama-2-7b','device':'a100-40gb-sxm','devices':8}");
    // 7 B parameters under autocast and AdamW: 16 B each = 108 GB.
    EXPECT_EQ(large.verdict, MemoryVerdict::OutOfMemory);
    const Json json = toJson(scenarioOf("{'model':'llama-2-7b','device':'a100-40gb-sxm','devices':8}"), large);
    EXPECT_EQ(json["memory"]["verdict"], "out_of_memory");
    EXPECT_TRUE(json["memory"].contains("failed_task"));
    EXPECT_TRUE(json["memory"].contains("failed_tensor"));
    EXPECT_THAT(json["warnings"].dump(), HasSubstr("does not fit"));
}

TEST(Prediction, OfAMixedClusterWaitsForTheSlowerDevices) {
    const Prediction mixed = predictionOf("{'model':'gpt2','cluster':'mixed-a100-h100','training':{'micro_batch':8}}");
    ASSERT_EQ(mixed.timeline.classes.size(), 2U);
    const auto slow = predictionOf("{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'training':{'micro_batch':8}}");
    EXPECT_GT(mixed.stepSeconds, 0.95 * slow.stepSeconds);
}

TEST(Prediction, JsonHasTheNamesThatScriptsRelyOn) {
    const Scenario scenario = scenarioOf(kGpt2);
    const Json json = toJson(scenario, predictionOf(scenario, {}));
    EXPECT_EQ(json["format"], "ringside-result");
    for (const char* key : {"version", "scenario", "step_time_s", "throughput", "mfu", "hfu", "breakdown_s", "memory", "communication", "critical_path",
                            "sensitivity", "rests_on", "warnings"})
        EXPECT_TRUE(json.contains(key)) << key;
    for (const char* key : {"compute", "communication_hidden", "communication_exposed", "host", "optimizer", "idle"}) EXPECT_TRUE(json["breakdown_s"].contains(key)) << key;
    for (const char* key : {"peak_allocated_bytes", "peak_reserved_bytes", "capacity_bytes", "by_category", "verdict", "peak_task"}) EXPECT_TRUE(json["memory"].contains(key)) << key;
    for (const char* key : {"op", "elements", "dtype", "bytes", "algorithm", "protocol", "start_s", "duration_s", "group_size"})
        EXPECT_TRUE(json["communication"]["collectives"][0].contains(key)) << key;
}

TEST(Prediction, MessageLevelAgreesWithTheClosedFormWhereNothingContends) {
    Scenario scenario = scenarioOf(kGpt2);
    const double closed = predictionOf(scenario).stepSeconds;
    scenario.pricing.level = CollectiveLevel::Message;
    EXPECT_NEAR(predictionOf(scenario).stepSeconds, closed, 0.01 * closed);
}

TEST(Prediction, IsAPureFunctionOfItsScenario) {
    EXPECT_EQ(predictionOf(kGpt2).timeline.stepTime, predictionOf(kGpt2).timeline.stepTime);
}

TEST(TraceOf, HasTracksOfTheFirstRankOfEachClassAndMemoryCounters) {
    const Prediction p = predictionOf(scenarioOf("{'model':'mlp','cluster':'mixed-a100-h100'}"), {false, true, false});
    const Trace trace = traceOf(p);
    EXPECT_EQ(trace.worldSize, p.schedule->world);
    // Host, compute and communication of two classes.
    EXPECT_EQ(trace.tracks.size(), 6U);
    EXPECT_EQ(trace.counters.size(), 2U);
    EXPECT_FALSE(trace.flows.empty());
}

// The largest of two standard normal numbers is 1/√π on average; of 8 and 1,024 what tables say.
TEST(SlowestDevice, IsExpectedWhereTablesSay) {
    EXPECT_EQ(expectedMaximum(1), 0);
    EXPECT_NEAR(expectedMaximum(2), 1 / std::sqrt(M_PI), 1e-6);
    EXPECT_NEAR(expectedMaximum(8), 1.4236, 1e-4);
    EXPECT_NEAR(expectedMaximum(1024), 3.25, 0.01);
}

// Devices that differ by 2 % (one standard deviation): the slowest of eight takes 1 + 0.02·1.4236 times as long for every kernel. One device waits for
// nobody, and neither do workers of an asynchronous server.
TEST(SlowestDevice, SetsThePaceOfRanksThatWaitForEachOther) {
    const auto kernels = [](const std::string& devices, double variation) {
        Scenario scenario = scenarioOf("{'model':'gpt2','device':'a100-80gb-sxm'," + devices + ",'training':{'micro_batch':8}}");
        for (Profile& profile : scenario.profiles) profile.deviceVariation.value = variation;
        return predictionOf(scenario).prices.nodes.front().kernels;
    };
    const auto ratio = [&](const std::string& devices) {
        const auto even = kernels(devices, 0), uneven = kernels(devices, 0.02);
        double most = 0;
        for (std::size_t k = 0; k < even.size(); ++k)
            if (even[k].seconds() > 1e-4) most = std::max(most, uneven[k].seconds() / even[k].seconds());
        return most;
    };
    EXPECT_NEAR(ratio("'devices':8"), 1 + 0.02 * 1.4236, 1e-5);
    EXPECT_NEAR(ratio("'devices':1"), 1, 1e-12);
    EXPECT_NEAR(ratio("'devices':8,'strategy':{'name':'async-ps'}"), 1, 1e-12);
}

}  // namespace
}  // namespace ringside::testing
