// The instruction sets that this machine has give the same answers.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/vector_loops.h"

namespace ringside {
namespace {

std::vector<const VectorLoops*> usable() {
    std::vector<const VectorLoops*> sets = {vectorLoopsBaseline()};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(vectorLoopsAvx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        sets.push_back(vectorLoopsAvx512());
#endif
    return sets;
}

std::vector<float> ramp(std::size_t n, double low, double high) {
    std::vector<float> values;
    for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<float>(low + (high - low) * static_cast<double>(i) / static_cast<double>(n)));
    return values;
}

TEST(VectorLoops, AreTheBestThatTheProcessorHas) {
    ASSERT_NE(usable().back(), nullptr);
    EXPECT_STREQ(vectorLoops().instructions, usable().back()->instructions);
}

TEST(VectorLoops, AgreeAcrossInstructionSets) {
    constexpr std::int64_t kElements = 1003;
    const std::vector<float> x = ramp(kElements, -12, 12), dy = ramp(kElements, 2, -1);
    for (const VectorLoops* loops : usable()) {
        SCOPED_TRACE(loops->instructions);
        for (int kind = 0; kind < 5; ++kind) {
            std::vector<float> expected(kElements), found(kElements);
            vectorLoopsBaseline()->activation[kind](x.data(), expected.data(), kElements);
            loops->activation[kind](x.data(), found.data(), kElements);
            for (std::size_t i = 0; i < kElements; ++i) ASSERT_NEAR(found[i], expected[i], 1e-6 * (1e-3 + std::abs(static_cast<double>(expected[i])))) << kind << " at " << x[i];
            vectorLoopsBaseline()->activationGradient[kind](dy.data(), x.data(), expected.data(), kElements);
            loops->activationGradient[kind](dy.data(), x.data(), found.data(), kElements);
            for (std::size_t i = 0; i < kElements; ++i) ASSERT_NEAR(found[i], expected[i], 3e-6 * (1 + std::abs(static_cast<double>(expected[i])))) << kind << " at " << x[i];
        }
        std::vector<float> expected(kElements), found(kElements);
        vectorLoopsBaseline()->softmax(x.data(), expected.data(), 17, 59);
        loops->softmax(x.data(), found.data(), 17, 59);
        for (std::size_t i = 0; i < kElements; ++i) ASSERT_NEAR(found[i], expected[i], 1e-6);
        std::vector<std::uint8_t> maskExpected(kElements), maskFound(kElements);
        vectorLoopsBaseline()->dropout(x.data(), expected.data(), maskExpected.data(), kElements, 5, 99, 1U << 30, 1.5F);
        loops->dropout(x.data(), found.data(), maskFound.data(), kElements, 5, 99, 1U << 30, 1.5F);
        EXPECT_EQ(maskFound, maskExpected) << "a seed names one mask on every processor";
    }
}

TEST(VectorLoops, ExponentialIsGoodToAFewUnitsInTheLastPlace) {
    // A row of two: softmax gives e^(x)/(e^(x) + 1) for x ≤ 0, whose small side is e^(x) itself.
    for (const VectorLoops* loops : usable()) {
        SCOPED_TRACE(loops->instructions);
        for (double x = -80; x <= 0; x += 0.37) {
            const float row[2] = {static_cast<float>(x), 0.0F};
            float y[2];
            loops->softmax(row, y, 1, 2);
            const double e = std::exp(static_cast<double>(row[0])), expected = e / (e + 1);
            EXPECT_NEAR(y[0] / expected, 1.0, 3e-7) << x;
        }
    }
}

}  // namespace
}  // namespace ringside
