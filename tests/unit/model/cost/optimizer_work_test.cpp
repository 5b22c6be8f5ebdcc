#include "model/cost/optimizer_work.h"

#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ringside {
namespace {

using Sizes = std::vector<std::int64_t>;

double totalBytes(const std::vector<KernelWork>& kernels) {
    return std::accumulate(kernels.begin(), kernels.end(), 0.0, [](double sum, const KernelWork& work) { return sum + work.bytes; });
}
Precision precision(const char* name) { return precisionByName(name).value(); }
std::vector<KernelWork> step(const char* optimizer, const char* type, const Sizes& sizes) {
    return optimizerStep(optimizerByName(optimizer).value(), precision(type), sizes);
}

TEST(OptimizerStep, FusedAdamWMoves28BytesPerFp32Parameter) {
    // Reads p, g, m, v and writes p, m, v: 7 · 4 = 28. One launch, and one that counts the step (8 B per tensor).
    const auto kernels = step("adamw-fused", "fp32", {1'000'000});
    ASSERT_EQ(kernels.size(), 2U);
    EXPECT_DOUBLE_EQ(kernels[0].bytes, 28e6);
    EXPECT_DOUBLE_EQ(kernels[1].bytes, 8);
}

TEST(OptimizerStep, ForeachAdamWMoves80BytesInEightPasses) {
    // decay 8, lerp m 12, mul v 8, addcmul v 12, sqrt 8, div 8, add eps 8, addcdiv p 16 = 80.
    const auto kernels = step("adamw", "fp32", {1'000'000});
    EXPECT_EQ(kernels.size(), 8U);
    EXPECT_DOUBLE_EQ(totalBytes(kernels), 80e6);
}

TEST(OptimizerStep, AdamHasNoDecayPassByDefault) { EXPECT_DOUBLE_EQ(totalBytes(step("adam", "fp32", {1'000'000})), 72e6); }

TEST(OptimizerStep, SgdMovesTwelveAndMomentum32BytesPerParameter) {
    // p += -lr·g: 12. Momentum: buffer·μ 8, + g 12, p 12 = 32; fused: p 8, g 4, buffer 8 = 20.
    EXPECT_DOUBLE_EQ(totalBytes(step("sgd", "fp32", {1000})), 12'000);
    EXPECT_DOUBLE_EQ(totalBytes(step("momentum", "fp32", {1000})), 32'000);
    EXPECT_DOUBLE_EQ(totalBytes(step("momentum-fused", "fp32", {1000})), 20'000);
}

TEST(OptimizerStep, PureBf16HalvesTheBytes) {
    EXPECT_DOUBLE_EQ(totalBytes(step("adamw", "bf16", {1'000'000})), 40e6);
}

TEST(OptimizerStep, MasterWeightsAddACopyToTheParameters) {
    // fp32 update of 28 B (+ 8 B of step count), then 4 read and 2 written.
    EXPECT_DOUBLE_EQ(totalBytes(step("adamw-fused", "bf16-master", {1'000'000})), 34e6 + 8);
}

TEST(OptimizerStep, EightBitAdamIsOneKernelPerTensor) {
    // p 8, g 4, and two moments of 1 + 4/256 bytes read and written: 12 + 4.0625.
    const auto kernels = step("adam-8bit", "fp32", {65536, 65536, 65536});
    EXPECT_EQ(kernels.size(), 3U);
    EXPECT_DOUBLE_EQ(totalBytes(kernels), 3 * 65536 * 16.0625);
}

TEST(OptimizerStep, ForLoopLaunchesEveryPassPerTensor) { EXPECT_EQ(step("adamw-for-loop", "fp32", Sizes(50, 1000)).size(), 50U * 8); }

TEST(OptimizerStep, ForeachLaunchesByTensorLimit) {
    // 1000 small tensors; one list takes 770 per launch, two 448, three 336: decay 2, lerp 3, mul 2, addcmul 3, sqrt 3, div 2,
    // add 2, addcdiv 3 = 20 launches.
    EXPECT_EQ(step("adamw", "fp32", Sizes(1000, 768)).size(), 20U);
}

TEST(OptimizerStep, ForeachLaunchesByBlockLimit) {
    // 2240 blocks of 65536 elements = 146,800,640 per launch; one element more needs a second launch in each of 8 passes.
    EXPECT_EQ(step("adamw", "fp32", {146'800'640}).size(), 8U);
    EXPECT_EQ(step("adamw", "fp32", {146'800'641}).size(), 16U);
}

TEST(OptimizerStep, OfNothingIsNothing) {
    for (const std::string& name : optimizerNames()) {
        EXPECT_TRUE(step(name.c_str(), "bf16-master", {}).empty()) << name;
        EXPECT_TRUE(step(name.c_str(), "fp32", {0, 0}).empty()) << name;
    }
}

TEST(OptimizerStep, ForLoopAndForeachMoveTheSameBytes) {
    EXPECT_TRUE(rc::check("how tensors are grouped does not change what is moved", [] {
        const auto sizes = *rc::gen::container<Sizes>(rc::gen::inRange<std::int64_t>(0, 400'000'000));
        for (const char* name : {"sgd", "momentum", "adam", "adamw", "adafactor"}) {
            const auto foreach = step(name, "fp32", sizes), loop = step((std::string(name) + "-for-loop").c_str(), "fp32", sizes);
            RC_ASSERT(totalBytes(foreach) == totalBytes(loop));
            RC_ASSERT(totalBytes(step((std::string(name) + "-fused").c_str(), "fp32", sizes)) <= totalBytes(loop) + 8.0 * static_cast<double>(sizes.size()));
        }
    }));
}

TEST(GradientClipping, ReadsEveryGradientTwiceAndWritesItOnce) {
    const auto kernels = gradientClipping(precision("fp32"), Sizes{1'000'000});
    EXPECT_NEAR(totalBytes(kernels), 12e6, 1000);
    EXPECT_TRUE(gradientClipping(precision("fp32"), Sizes{}).empty());
}

TEST(GradientUnscaling, ExistsOnlyWithLossScaling) {
    EXPECT_DOUBLE_EQ(totalBytes(gradientUnscaling(precision("fp16-autocast"), Sizes{1000})), 8000);
    EXPECT_TRUE(gradientUnscaling(precision("bf16-autocast"), Sizes{1000}).empty());
}

}  // namespace
}  // namespace ringside
