#include "calibrate/fit/robust.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/base/random.h"

namespace ringside {
namespace {

TEST(Robust, MedianAndSpreadOfAFewNumbers) {
    EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
    EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
    // Deviations from 3 are 2, 1, 0, 1, 97: their median is 1.
    EXPECT_DOUBLE_EQ(scaledMad(std::vector<double>{1, 2, 3, 4, 100}), 1.4826);
}

TEST(Robust, BlocksLeaveOutTheSlowestFiftiethAndNoMore) {
    // Of ten samples a fiftieth is none; of a hundred it is two.
    EXPECT_DOUBLE_EQ(blockMeans({1, 1, 1, 1, 1, 1, 1, 1, 1, 11}, 1).front(), 2);
    std::vector<double> hundred(100, 1.0);
    hundred[10] = 1000, hundred[60] = 2000, hundred[90] = 3;
    EXPECT_NEAR(blockMeans(hundred, 1).front(), 1 + 2.0 / 98, 1e-12);
}

TEST(Robust, AMinorityOfOutliersMovesNeitherMedianNorSpreadFar) {
    const CounterRandom random(7);
    std::vector<double> clean, dirty;
    for (std::uint64_t i = 0; i < 200; ++i) clean.push_back(1 + 0.02 * (random.uniform(i) - 0.5));
    dirty = clean;
    for (std::size_t i = 0; i < dirty.size(); i += 5) dirty[i] *= 40;
    const Estimate a = robustEstimate(clean), b = robustEstimate(dirty);
    EXPECT_NEAR(b.value, a.value, 0.005);
    EXPECT_LT(b.relativeSpread, 2.5 * a.relativeSpread);
}

TEST(Robust, TheIntervalHoldsTheTrueMedian) {
    int held = 0;
    for (std::uint64_t trial = 0; trial < 500; ++trial) {
        const CounterRandom random(11, trial);
        std::vector<double> samples;
        for (std::uint64_t i = 0; i < 40; ++i) samples.push_back(random.exponential(i, 1));
        held += robustEstimate(samples).interval.contains(std::log(2.0)) ? 1 : 0;
    }
    EXPECT_GE(held, 496);  // 99.9 % of 500
}

TEST(Robust, ThreeSamplesSayNoMoreThanTheirRange) {
    const Estimate estimate = robustEstimate(std::vector<double>{2, 1, 4});
    EXPECT_EQ(estimate.interval, (ConfidenceInterval{1, 4}));
    EXPECT_EQ(estimate.samples, 3);
}

TEST(Robust, TheWeightedMedianFollowsTheWeight) {
    EXPECT_DOUBLE_EQ(weightedMedian({{1, 1}, {2, 1}, {3, 5}}), 3);
    EXPECT_DOUBLE_EQ(weightedMedian({{5, 1}, {1, 1}, {3, 1}}), 3);
}

}  // namespace
}  // namespace ringside
