#include "calibrate/fit/overhead_fit.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "model/base/random.h"

namespace ringside {
namespace {

/// 100 µs and 5 µs per task, each step `noise` off by chance; every fifth has cold caches and takes twice as long.
std::vector<StepOverhead> steps(double noise, std::uint64_t seed) {
    const CounterRandom random(seed);
    std::vector<StepOverhead> out;
    for (std::uint64_t i = 0; i < 20; ++i) {
        const double tasks = 20 + 5 * static_cast<double>(i);
        const double exact = 100e-6 + 5e-6 * tasks;
        out.push_back({tasks, exact * (1 + noise * (2 * random.uniform(i) - 1)) * (i % 5 == 3 ? 2 : 1)});
    }
    return out;
}

TEST(OverheadFit, FindsTheFixedPartAndThePartPerTaskWhateverAFifthOfTheStepsSays) {
    const OverheadFit fit = fitOverhead(steps(0, 1));
    EXPECT_NEAR(fit.perTask, 5e-6, 0.5e-6);
    EXPECT_NEAR(fit.perStep, 100e-6, 25e-6);
}

TEST(OverheadFit, ARepetitionLiesWithinTheSpreads) {
    int within = 0;
    for (std::uint64_t trial = 0; trial < 40; ++trial) {
        const OverheadFit a = fitOverhead(steps(0.2, 2 * trial)), b = fitOverhead(steps(0.2, 2 * trial + 1));
        within += std::abs(a.perTask - b.perTask) <= 2 * std::hypot(a.perTaskSpread, b.perTaskSpread) ? 1 : 0;
    }
    EXPECT_GE(within, 36);  // nine in ten; 95 % of 40 are 38
}

TEST(OverheadFit, OfNothingOrOneKindOfStepIsNoSlope) {
    EXPECT_EQ(fitOverhead({}).perTask, 0);
    const std::vector<StepOverhead> same{{50, 1e-4}, {52, 3e-4}, {54, 2e-4}};
    EXPECT_EQ(fitOverhead(same).perTask, 0);
    EXPECT_EQ(fitOverhead(same).perStep, 2e-4);
}

}  // namespace
}  // namespace ringside
