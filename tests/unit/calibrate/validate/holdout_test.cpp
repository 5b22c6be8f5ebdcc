#include "calibrate/validate/holdout.h"

#include <cmath>

#include <gtest/gtest.h>

namespace ringside {
namespace {

Profile hostProfile() {
    Device host;
    host.name = "cpu";
    Profile profile = datasheetProfile(host);
    profile.gemmEfficiency = {{DType::Fp32, {1, 0.05, Provenance::Measured, "test"}}};
    profile.deviceFigures = {{"peak_dense_tflops.fp32", 0.1}, {"memory_bandwidth_gb_per_s", 20}, {"memory_bytes", 8e9}, {"pcie_gb_per_s", 10}};
    return profile;
}

KernelTimings memoryKernel(double bytes) {
    KernelTimings timings;
    timings.name = "gelu";
    timings.work.bytes = bytes;
    timings.seconds = {bytes / 10e9};  // 10 GB/s at every size
    return timings;
}

TEST(Holdout, OfAKernelWithOneRateFindsThatRateAgain) {
    std::vector<KernelTimings> kernels;
    for (int i = 0; i < 12; ++i) kernels.push_back(memoryKernel(std::exp2(12 + i)));
    std::size_t fitted = 0;
    const Result<std::vector<HeldOutPoint>> points = heldOutPoints(hostProfile(), kernels, {}, fitted);
    ASSERT_TRUE(points) << points.error().toString();
    // Ten lie between the first and the last; every fifth of them is left out.
    ASSERT_EQ(points->size(), 2U);
    EXPECT_EQ(fitted, 10U);
    for (const HeldOutPoint& point : *points) EXPECT_NEAR(point.predicted / point.measured, 1, 1e-6);
}

TEST(Holdout, LeavesKernelsWithFewSeriesAlone) {
    std::size_t fitted = 0;
    const std::vector<KernelTimings> kernels = {memoryKernel(1e6), memoryKernel(2e6)};
    const Result<std::vector<HeldOutPoint>> points = heldOutPoints(hostProfile(), kernels, {}, fitted);
    ASSERT_TRUE(points);
    EXPECT_TRUE(points->empty());
    EXPECT_TRUE(holdoutGroups(*points).empty());
}

TEST(Holdout, OfAStraightCollectiveCurveIsExact) {
    std::vector<CollectiveTimings> collectives;
    for (const Bytes bytes : {1000, 2000, 4000, 8000, 16000}) {
        CollectiveTimings& one = collectives.emplace_back();
        one.link = "loopback";
        one.bytes = bytes;
        one.seconds = {1e-4 + static_cast<double>(bytes) * 1e-9};
    }
    std::size_t fitted = 0;
    const Result<std::vector<HeldOutPoint>> points = heldOutPoints(hostProfile(), {}, collectives, fitted);
    ASSERT_TRUE(points) << points.error().toString();
    ASSERT_EQ(points->size(), 1U);  // 4000, between others; first and last always stay
    EXPECT_EQ(points->front().group, "all_reduce");
    EXPECT_NEAR(points->front().predicted / points->front().measured, 1, 1e-9);
}

TEST(HoldoutGroups, HaveTheFiguresOfTheirPoints) {
    // Kernels are off by 10 %, −20 % and 0 %, their sum by 2.9 / 3 − 1; the collective by 50 %.
    const std::vector<HeldOutPoint> points = {{"memory", "a", 1.1, 1}, {"memory", "b", 0.8, 1}, {"attention", "c", 1, 1}, {"all_reduce", "4096 bytes", 1.5, 1}};
    const std::vector<HoldoutGroup> groups = holdoutGroups(points);
    ASSERT_EQ(groups.size(), 4U);
    EXPECT_EQ(groups[0].name, "all kernels");
    EXPECT_EQ(groups[0].points, 3U);  // the collective stands apart
    EXPECT_NEAR(groups[0].mape, 0.1, 1e-12);
    EXPECT_NEAR(groups[0].median, 0.1, 1e-12);
    EXPECT_NEAR(groups[0].p90, 0.2, 1e-12);
    EXPECT_NEAR(groups[0].total, 2.9 / 3 - 1, 1e-12);
    EXPECT_EQ(groups[1].name, "all_reduce");
    EXPECT_NEAR(groups[1].worst, 0.5, 1e-12);
}

}  // namespace
}  // namespace ringside
