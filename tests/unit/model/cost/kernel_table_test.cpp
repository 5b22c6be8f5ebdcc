#include "model/cost/kernel_table.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/cost/compute_cost.h"
#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

KernelPoint memoryPoint(double bytes, double seconds) {
    KernelPoint point;
    point.bytes = bytes;
    point.seconds = seconds;
    return point;
}
KernelPoint pointOf(const KernelWork& work, double seconds) { return {work.flops, work.bytes, work.shape, work.math, work.causal, seconds, 0.01}; }

TEST(MemoryCurve, GoesThroughItsPointsAndIsALineInTheLogarithmsBetween) {
    const MemoryCurve curve({memoryPoint(1e4, 1e-5), memoryPoint(1e6, 1e-3), memoryPoint(1e8, 0.2)});
    EXPECT_DOUBLE_EQ(curve.seconds(1e4), 1e-5);
    EXPECT_NEAR(curve.seconds(1e6), 1e-3, 1e-15);
    EXPECT_NEAR(curve.seconds(1e5), 1e-4, 1e-12);                   // √(1e-5 · 1e-3)
    EXPECT_NEAR(curve.seconds(1e7), std::sqrt(1e-3 * 0.2), 1e-12);
}

TEST(MemoryCurve, BeyondTheLastPointItsRateGoesOn) {
    const MemoryCurve curve({memoryPoint(1e4, 1e-5), memoryPoint(1e8, 0.02)});
    EXPECT_NEAR(curve.seconds(4e8), 0.08, 1e-12);
}

TEST(MemoryCurve, BelowTheFirstPointAFixedTimeIsLeft) {
    // From 10 KB in 6 µs to 20 KB in 7 µs: 5 µs and 0.1 ns per byte.
    const MemoryCurve curve({memoryPoint(1e4, 6e-6), memoryPoint(2e4, 7e-6)});
    EXPECT_NEAR(curve.seconds(0), 5e-6, 1e-12);
    EXPECT_NEAR(curve.seconds(5e3), 5.5e-6, 1e-12);
}

TEST(MemoryCurve, RisingPointsMakeARisingCurveEverywhere) {
    EXPECT_TRUE(rc::check("more bytes never take less time", [] {
        std::vector<KernelPoint> points;
        double bytes = 1, seconds = 1e-9;
        const int count = *rc::gen::inRange(1, 8);
        for (int i = 0; i < count; ++i) {
            bytes += *rc::gen::inRange(1, 1'000'000);
            seconds += *rc::gen::inRange(0, 1'000'000) * 1e-9;
            points.push_back(memoryPoint(bytes, seconds));
        }
        const MemoryCurve curve(points);
        const double a = *rc::gen::inRange(0, 20'000'000), b = a + *rc::gen::inRange(0, 1'000'000);
        RC_ASSERT(curve.seconds(a) > 0);
        RC_ASSERT(curve.seconds(b) >= curve.seconds(a) * (1 - 1e-12));
    }));
}

TEST(KernelTable, AKernelIsFoundByItsNameAndMemoryKernelsFallBackToTheStar) {
    const KernelTable table({{"gelu", {memoryPoint(1e6, 1e-3)}}, {"*", {memoryPoint(1e6, 2e-3)}}});
    EXPECT_DOUBLE_EQ(table.seconds(memoryWork("gelu", 1e6)).value(), 1e-3);
    EXPECT_DOUBLE_EQ(table.seconds(memoryWork("layer norm", 1e6)).value(), 2e-3);
    EXPECT_FALSE(table.seconds(gemmWork("gelu", {1, 8, 8, 8}, DType::Fp32, DType::Fp32)));
    EXPECT_FALSE(KernelTable({{"gelu", {memoryPoint(1, 1)}}}).seconds(memoryWork("copy", 1)));
}

TEST(KernelTable, AnArithmeticKernelTakesItsMeasuredTimeAndAnotherTypeIsNotGuessed) {
    const KernelWork conv = convolutionWork("convolution", {1, 3136, 64, 576}, DType::Fp32, 2e6);
    const KernelTable table({{"convolution", {pointOf(conv, 3e-3)}}});
    EXPECT_NEAR(table.seconds(conv).value(), 3e-3, 1e-15);
    KernelWork half = conv;
    half.math = DType::Bf16;
    EXPECT_FALSE(table.seconds(half));
    // A single sample gives its rate to every shape: twice the FLOPs take twice as long.
    EXPECT_NEAR(table.seconds(convolutionWork("convolution", {1, 6272, 64, 576}, DType::Fp32, 4e6)).value(), 6e-3, 1e-12);
}

TEST(ShapeRegression, FollowsAPowerLawBetweenItsSamplesAndReproducesThem) {
    // value = 0.3·log2 m − 0.2·log2 n + 0.1·log2 k: a plane, which moving least squares finds up to its ridge.
    const auto law = [](const ShapeRegression::Point& p) { return 0.3 * p[1] - 0.2 * p[2] + 0.1 * p[3]; };
    ShapeRegression regression;
    std::vector<GemmShape> grid;
    for (const std::int64_t m : {16, 64, 256, 1024})
        for (const std::int64_t n : {64, 256, 1024})
            for (const std::int64_t k : {64, 256, 1024}) grid.push_back({1, m, n, k});
    for (const GemmShape& shape : grid) regression.add(ShapeRegression::pointOf(shape), law(ShapeRegression::pointOf(shape)));
    for (const GemmShape& shape : grid) EXPECT_DOUBLE_EQ(regression.at(ShapeRegression::pointOf(shape)), law(ShapeRegression::pointOf(shape)));
    for (const GemmShape& shape : {GemmShape{1, 100, 300, 200}, GemmShape{1, 700, 90, 500}, GemmShape{1, 32, 512, 128}}) {
        const auto point = ShapeRegression::pointOf(shape);
        EXPECT_NEAR(regression.at(point), law(point), 0.02);
    }
}

TEST(ShapeRegression, StaysNearTheRangeOfItsNeighboursFarAway) {
    ShapeRegression regression;
    for (const std::int64_t m : {64, 128, 256, 512}) regression.add(ShapeRegression::pointOf({1, m, 64, 64}), std::log2(static_cast<double>(m)));
    const double far = regression.at(ShapeRegression::pointOf({1, 1 << 20, 64, 64}));
    EXPECT_GE(far, 6);
    EXPECT_LE(far, 9 + 0.25 * 3 + 1e-9);
}

Device cpu() {
    Device device;
    device.name = "cpu";
    device.peakDenseTflops = {{DType::Fp32, 0.1}};
    device.memoryBandwidthGbPerS = 10;
    return device;
}

TEST(MeasuredKernels, WinOverTheFormulaAndAWhatIfFactorStillCounts) {
    Profile profile = datasheetProfile(cpu());
    profile.kernels["gelu"] = {memoryPoint(1e6, 5e-3)};
    const KernelWork product = gemmWork("linear", {1, 64, 64, 64}, DType::Fp32, DType::Fp32);
    profile.kernels["linear"] = {pointOf(product, 7e-3)};
    profile.gemmTable[DType::Fp32] = {{{1, 64, 64, 64}, 0.05}};
    const ComputeCost cost = ComputeCost::create(cpu(), profile, DType::Fp32).value();
    EXPECT_DOUBLE_EQ(cost.seconds(memoryWork("gelu", 1e6)), 5e-3);
    EXPECT_NEAR(cost.seconds(product), 7e-3, 1e-15);
    const ComputeCost faster = ComputeCost::create(cpu(), profile, DType::Fp32, {2, 4}).value();
    EXPECT_DOUBLE_EQ(faster.seconds(memoryWork("gelu", 1e6)), 5e-3 / 4);
    EXPECT_NEAR(faster.seconds(product), 7e-3 / 2, 1e-15);
    // Products of another name follow the table, which a factor moves too: 2·64³ FLOP at 50 GFLOPS; the formula's fixed time does not scale.
    KernelWork other = product;
    other.name = "other";
    EXPECT_NEAR(cost.seconds(other), 2.0 * 64 * 64 * 64 / 0.05e12, 1e-12);
    EXPECT_LT(faster.seconds(other), cost.seconds(other));
}

TEST(MeasuredKernels, ABusyMemoryStretchesThemAsItDoesTheFormula) {
    Profile profile = datasheetProfile(cpu());
    const ComputeCost formula = ComputeCost::create(cpu(), profile, DType::Fp32).value();
    profile.kernels["*"] = {memoryPoint(1e8, 1)};
    const ComputeCost cost = ComputeCost::create(cpu(), profile, DType::Fp32).value();
    const KernelWork work = memoryWork("add", 1e8);
    EXPECT_NEAR(cost.seconds(work, 0, 0.5), formula.seconds(work, 0, 0.5) / formula.seconds(work), 1e-9);
}

}  // namespace
}  // namespace ringside
