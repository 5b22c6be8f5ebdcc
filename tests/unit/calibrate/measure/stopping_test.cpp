#include "calibrate/measure/stopping.h"

#include <gtest/gtest.h>

#include "model/base/random.h"

namespace ringside {
namespace {

int samplesUntilDone(StoppingCriterion& criterion, double noise, int most = 5000) {
    const CounterRandom random(5);
    criterion.reset();
    for (int n = 0; n < most; ++n) {
        if (criterion.isDone()) return n;
        criterion.add(1 + noise * (2 * random.uniform(static_cast<std::uint64_t>(n)) - 1));
    }
    return most;
}

TEST(RelativeError, NoisierWorkNeedsMoreSamples) {
    const auto criterion = stopAtRelativeError(0.005);
    const int quiet = samplesUntilDone(*criterion, 0.01), loud = samplesUntilDone(*criterion, 0.1);
    EXPECT_LT(quiet, 20);
    EXPECT_GT(loud, 100);
    EXPECT_LT(loud, 2000);
    EXPECT_EQ(samplesUntilDone(*criterion, 0), 3) << "equal samples: three are enough";
}

TEST(StableNoise, StopsWhenTheNoiseHasSettledHoweverLoud) {
    const auto criterion = stopAtStableNoise(0.05, 16);
    const int needed = samplesUntilDone(*criterion, 0.8);
    EXPECT_GE(needed, 18);
    EXPECT_LT(needed, 2000);
}

TEST(Either, IsDoneWithTheFirst) {
    const auto criterion = stopAtEither(stopAtRelativeError(1e-9), stopAtStableNoise());
    EXPECT_LT(samplesUntilDone(*criterion, 0.2), 5000);
    EXPECT_EQ(criterion->name(), "stable noise");
}

TEST(StoppingCriterion, ForgetsOnReset) {
    const auto criterion = stopAtRelativeError(0.01);
    EXPECT_EQ(samplesUntilDone(*criterion, 0), 3);
    criterion->reset();
    EXPECT_FALSE(criterion->isDone());
}

}  // namespace
}  // namespace ringside
