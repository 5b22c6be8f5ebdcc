// Kernels and collectives of a CPU rank share its core: docs/models/cpu-interference.md.
#include <gtest/gtest.h>

#include "sim/prediction.h"
#include "tests/support/tiny_step.h"

namespace ringside::testing {
namespace {

constexpr StreamId kCompute = 1, kComm = 2;

TEST(CpuInterference, AKernelSlowsACollectiveDownWhileItRunsAndNoLonger) {
    // Alone 100 ns, at half its pace beside a kernel. Kernel 0–60: 30 ns of the collective are done, 70 are left: 130.
    TinyStep step({2});
    step.kernel(kCompute, {60});
    const TaskId c = step.collective(kComm, 100);
    step.prices.collectives[0].slowdownByCompute = 2;
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][c].end, ns(130));
}

TEST(CpuInterference, BackToBackKernelsSlowACollectiveAsOneLongKernelDoes) {
    TinyStep one({2}), many({2});
    one.kernel(kCompute, {60});
    for (int i = 0; i < 6; ++i) many.kernel(kCompute, {10});
    const TaskId a = one.collective(kComm, 100), b = many.collective(kComm, 100);
    one.prices.collectives[0].slowdownByCompute = many.prices.collectives[0].slowdownByCompute = 2;
    EXPECT_EQ(one.played().classes[0][a].end, many.played().classes[0][b].end);
}

TEST(CpuInterference, AKernelThatBeginsLaterSlowsWhatIsLeft) {
    // Copy 0–40 on the compute stream, then a kernel of 30: the collective has 60 left at 40, does 15 until 70, ends at 115.
    TinyStep step({2});
    step.copy(kCompute, 40);
    step.kernel(kCompute, {30});
    const TaskId c = step.collective(kComm, 100);
    step.prices.collectives[0].slowdownByCompute = 2;
    EXPECT_EQ(step.played().classes[0][c].end, ns(115));
}

TEST(CpuInterference, ASlowRankHoldsTheCollectiveOfAllUp) {
    // Two classes: one computes for 20, the other for 60. The collective is slow as long as either computes.
    TinyStep step({1, 1});
    step.kernel(kCompute, {20, 60});
    const TaskId c = step.collective(kComm, 100);
    step.prices.collectives[0].slowdownByCompute = 2;
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][c].end, ns(130));
    EXPECT_EQ(timeline.classes[1][c].end, ns(130));
}

TEST(CpuInterference, ARankThatWaitsForItsPeersAsleepTakesNothingFromItsKernels) {
    // Class 1 comes to the collective at 100. Class 0's kernel (80, factor 2 beside it) runs alone until then: 0–80. Awake, the
    // waiting collective halves its pace from 0 to 150: 75 are done, 5 are left: 155.
    for (const bool asleep : {true, false}) {
        TinyStep step({1, 1});
        const TaskId late = step.copy(kComm, 0);
        const TaskId k = step.kernel(kCompute, {80, 1}, {}, 2);
        const TaskId c = step.collective(kComm, 50);
        step.prices.nodes[1].copies[0] = ns(100);
        step.prices.collectives[0].idleWhileWaiting = asleep;
        const Timeline timeline = step.played();
        EXPECT_EQ(timeline.classes[0][late].end, ns(0));
        EXPECT_EQ(timeline.classes[0][c].end, ns(150));
        EXPECT_EQ(timeline.classes[0][k].end, asleep ? ns(80) : ns(155));
    }
}

TEST(CpuInterference, CollectivesThatNeedTheWholeCoreTakeTurns) {
    // Each needs all of the core for 100 ns: two at a time take 200. One that needs a tenth disturbs nobody who leaves a tenth.
    TinyStep both({2});
    both.schedule.axes.push_back({"other", 2, 1});
    const TaskId first = both.collective(kComm, 100), second = both.collective(kComm + 1, 100);
    both.schedule.collectives[1].axis = 1;
    for (CollectivePrice& price : both.prices.collectives) price.busyShare = 1;
    const Timeline timeline = both.played();
    EXPECT_EQ(timeline.classes[0][first].end, ns(200));
    EXPECT_EQ(timeline.classes[0][second].end, ns(200));
    both.prices.collectives[0].busyShare = 0.1;
    both.prices.collectives[1].busyShare = 0.9;
    EXPECT_EQ(both.played().classes[0][second].end, ns(100));
}

TEST(CpuInterference, KernelsOfTwoStreamsShareTheCore) {
    // 40 and 100 ns: together until 80, when the first is done and 60 of the other are left.
    TinyStep step({2});
    const TaskId small = step.kernel(kCompute, {40}), large = step.kernel(kComm, {100});
    step.prices.nodes[0].oneCore = true;
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][small].end, ns(80));
    EXPECT_EQ(timeline.classes[0][large].end, ns(140));
}

/// Seconds of the first kernel of a two-layer model on hosts.
double firstKernel(int ranks, double severalRanks, bool interference) {
    Device host;
    host.name = "cpu";
    Profile profile = datasheetProfile(host);
    profile.gemmEfficiency = {{DType::Fp32, {1, 0, Provenance::Measured, "test"}}};
    profile.deviceFigures = {{"memory_bandwidth_gb_per_s", 10}, {"peak_dense_tflops.fp32", 0.1}, {"memory_bytes", 1e10}, {"pcie_gb_per_s", 10}, {"loopback_gb_per_s", 2}};
    profile.severalRanks.value = severalRanks;
    const Json document = {{"model", {{"model_type", "mlp"}, {"widths", {64, 64, 8}}}}, {"device", "cpu"}, {"devices", ranks}, {"strategy", ranks == 1 ? "single" : "naive"},
                           {"training", {{"micro_batch", 4}, {"precision", "fp32"}}}};
    const auto catalogs = Catalogs::builtin();
    auto scenario = resolveScenario(document, "test", *catalogs);
    EXPECT_TRUE(scenario) << scenario.error().toString();
    Device& device = scenario->cluster.nodes.front().kind.device;
    device = withMeasuredFigures(device, profile).value();
    scenario->profiles.front() = profile;
    scenario->pricing.cpuInterference = interference;
    const auto prediction = predict(*scenario);
    EXPECT_TRUE(prediction) << prediction.error().toString();
    return prediction->prices.nodes.front().kernels.front().seconds();
}

TEST(CpuInterference, KernelsAmongOtherRanksTakeTheMeasuredFactorLonger) {
    EXPECT_NEAR(firstKernel(2, 1.25, true) / firstKernel(2, 1, true), 1.25, 1e-4);
    EXPECT_DOUBLE_EQ(firstKernel(1, 1.25, true), firstKernel(1, 1, true));   // nobody beside it
    EXPECT_DOUBLE_EQ(firstKernel(2, 1.25, false), firstKernel(2, 1, false)); // paced: it sleeps
}

}  // namespace
}  // namespace ringside::testing
