#include "model/memory/optimizer_state.h"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ringside {
namespace {

Bytes state(const char* optimizer, const char* precision, const Shape& shape) {
    return optimizerStateBytes(optimizerByName(optimizer).value(), precisionByName(precision).value(), shape);
}
Bytes transient(const char* optimizer, const char* precision, const std::vector<std::int64_t>& sizes) {
    return foreachTransientBytes(optimizerByName(optimizer).value(), precisionByName(precision).value(), sizes);
}
constexpr std::int64_t kElements = 1024 * 4096;

TEST(OptimizerState, BytesPerParameterAreTheKnownOnes) {
    EXPECT_EQ(state("sgd", "fp32", {1024, 4096}), 0);
    EXPECT_EQ(state("momentum", "fp32", {1024, 4096}), 4 * kElements);
    EXPECT_EQ(state("adam", "fp32", {1024, 4096}), 8 * kElements);
    EXPECT_EQ(state("adamw", "bf16-autocast", {1024, 4096}), 8 * kElements);
}

TEST(OptimizerState, MasterCopyAddsFourBytes) {
    EXPECT_EQ(state("adamw", "bf16-master", {1024, 4096}), 12 * kElements);
    EXPECT_EQ(state("sgd", "bf16-master", {1024, 4096}), 4 * kElements);
}

TEST(OptimizerState, PureBf16KeepsMomentsInBf16) { EXPECT_EQ(state("adamw", "bf16", {1024, 4096}), 4 * kElements); }

TEST(OptimizerState, AdafactorKeepsRowsAndColumnsOfMatrices) {
    EXPECT_EQ(state("adafactor", "fp32", {1024, 4096}), 4 * (1024 + 4096));
    EXPECT_EQ(state("adafactor", "fp32", {4096}), 4 * 4096);
    // A 64 × 3 stack of 7 × 7 kernels is factored over the last two dimensions.
    EXPECT_EQ(state("adafactor", "fp32", {64, 3, 7, 7}), 4 * 64 * 3 * (7 + 7));
    EXPECT_EQ(flatOptimizerStateBytes(optimizerByName("adafactor").value(), Precision{}, kElements), 4 * kElements);
}

TEST(OptimizerState, EightBitAdamKeepsSmallTensorsIn32Bits) {
    // 2 · (1 + 4/256) bytes; below 4096 elements 8 bytes.
    EXPECT_EQ(state("adam-8bit", "fp32", {1024, 4096}), 2 * kElements + 2 * 4 * kElements / 256);
    EXPECT_EQ(state("adam-8bit", "fp32", {4095}), 8 * 4095);
    EXPECT_EQ(state("adam-8bit", "fp32", {4096}), 2 * (4096 + 4 * 16));
}

TEST(OptimizerState, ShardsOfAdamAddUpToTheWhole) {
    EXPECT_TRUE(rc::check("flat state is linear for SGD, momentum and Adam", [] {
        const auto a = *rc::gen::inRange<std::int64_t>(0, 1 << 30), b = *rc::gen::inRange<std::int64_t>(0, 1 << 30);
        for (const char* name : {"sgd", "momentum", "adamw"}) {
            const Optimizer optimizer = optimizerByName(name).value();
            const Precision precision = precisionByName("bf16-master").value();
            RC_ASSERT(flatOptimizerStateBytes(optimizer, precision, a) + flatOptimizerStateBytes(optimizer, precision, b) ==
                      flatOptimizerStateBytes(optimizer, precision, a + b));
        }
    }));
}

TEST(OptimizerTransient, ForeachAdamHoldsAListAsLargeAsTheParameters) {
    EXPECT_EQ(transient("adamw", "fp32", {100, 300}), 4 * 400);
    EXPECT_EQ(transient("adamw", "bf16", {100, 300}), 2 * 400);
}

TEST(OptimizerTransient, FusedAndSgdHoldNothing) {
    EXPECT_EQ(transient("adamw-fused", "fp32", {100, 300}), 0);
    EXPECT_EQ(transient("sgd", "fp32", {100, 300}), 0);
    EXPECT_EQ(transient("momentum", "fp32", {100, 300}), 0);
}

TEST(OptimizerTransient, ForLoopHoldsTwoOfTheLargestTensor) { EXPECT_EQ(transient("adamw-for-loop", "fp32", {100, 300}), 2 * 4 * 300); }

}  // namespace
}  // namespace ringside
