#include "calibrate/fit/alpha_beta_fit.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/base/random.h"

namespace ringside {
namespace {

/// Sizes 1 KiB to 64 MiB, `repeats` each, with relative noise that is uniform in ±noise.
std::vector<SizedTime> series(double alpha, double beta, double noise, int repeats, std::uint64_t seed) {
    const CounterRandom random(seed);
    std::vector<SizedTime> samples;
    for (int power = 10; power <= 26; ++power)
        for (int r = 0; r < repeats; ++r) {
            const double bytes = std::exp2(power);
            const double factor = 1 + noise * (2 * random.uniform(static_cast<std::uint64_t>(power * 1000 + r)) - 1);
            samples.push_back({bytes, (alpha + beta * bytes) * factor});
        }
    return samples;
}

TEST(AlphaBetaFit, RecoversTheParametersOfCleanData) {
    const AlphaBetaFit fit = fitAlphaBeta(series(50e-6, 1e-9, 0, 1, 1)).value();
    ASSERT_EQ(fit.regimes.size(), 1U);
    EXPECT_NEAR(fit.regimes[0].alpha, 50e-6, 1e-12);
    EXPECT_NEAR(fit.regimes[0].beta, 1e-9, 1e-16);
    EXPECT_NEAR(fit.seconds(1e9), 50e-6 + 1, 1e-6);
}

TEST(AlphaBetaFit, HoldsTheTruthWithinItsOwnInterval) {
    EXPECT_TRUE(rc::check("the parameters that made the data lie in the interval", [] {
        const double alpha = *rc::gen::inRange(1, 1000) * 1e-6, beta = *rc::gen::inRange(1, 1000) * 1e-11;
        const double noise = *rc::gen::inRange(1, 100) * 1e-3;
        const AlphaBetaFit fit = fitAlphaBeta(series(alpha, beta, noise, 5, *rc::gen::arbitrary<std::uint32_t>()), {1, 0.02}).value();
        RC_ASSERT(fit.regimes.size() == 1U);
        RC_ASSERT(fit.regimes[0].alphaInterval.contains(alpha));
        RC_ASSERT(fit.regimes[0].betaInterval.contains(beta));
    }));
}

TEST(AlphaBetaFit, OutliersDoNotMoveIt) {
    EXPECT_TRUE(rc::check("up to a fifth of the samples may be ten times too slow", [] {
        const auto seed = *rc::gen::arbitrary<std::uint32_t>();
        std::vector<SizedTime> samples = series(100e-6, 1e-9, 0.01, 1, seed);
        const int wrong = *rc::gen::inRange(1, 4);
        for (int i = 0; i < wrong; ++i) samples[*rc::gen::inRange<std::size_t>(0, samples.size())].seconds *= 10;
        const AlphaBetaFit fit = fitAlphaBeta(samples, {1, 0.02}).value();
        RC_ASSERT(std::abs(fit.regimes[0].alpha / 100e-6 - 1) < 0.05);
        RC_ASSERT(std::abs(fit.regimes[0].beta / 1e-9 - 1) < 0.05);
    }));
}

TEST(AlphaBetaFit, FindsWhereARegimeChanges) {
    // Up to 64 KiB 20 µs + 1 ns/B, beyond 200 µs + 0.2 ns/B.
    std::vector<SizedTime> samples;
    const CounterRandom random(3);
    for (int power = 10; power <= 26; ++power)
        for (std::uint64_t r = 0; r < 5; ++r) {
            const double bytes = std::exp2(power), noise = 1 + 0.01 * (2 * random.uniform(static_cast<std::uint64_t>(power) * 10 + r) - 1);
            samples.push_back({bytes, (power <= 16 ? 20e-6 + 1e-9 * bytes : 200e-6 + 2e-10 * bytes) * noise});
        }
    const AlphaBetaFit fit = fitAlphaBeta(samples).value();
    ASSERT_EQ(fit.regimes.size(), 2U);
    EXPECT_DOUBLE_EQ(fit.regimes[0].toBytes, std::exp2(16));
    EXPECT_DOUBLE_EQ(fit.regimes[1].fromBytes, std::exp2(17));
    EXPECT_NEAR(fit.regimes[0].alpha, 20e-6, 1e-6);
    EXPECT_NEAR(fit.regimes[1].beta, 2e-10, 2e-12);
    EXPECT_NEAR(fit.seconds(std::exp2(12)), 20e-6 + 1e-9 * std::exp2(12), 1e-6);
}

TEST(AlphaBetaFit, NoiseAloneMakesNoRegime) {
    int several = 0;
    for (std::uint32_t seed = 0; seed < 20; ++seed) several += fitAlphaBeta(series(80e-6, 5e-10, 0.03, 9, seed)).value().regimes.size() > 1 ? 1 : 0;
    EXPECT_LE(several, 1);
}

TEST(AlphaBetaFit, RefusesWhatIsNoTime) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(fitAlphaBeta(std::vector<SizedTime>{{1, 1}}));
    EXPECT_FALSE(fitAlphaBeta(std::vector<SizedTime>{{1, 1}, {2, nan}}));
    EXPECT_FALSE(fitAlphaBeta(std::vector<SizedTime>{{1, 1}, {2, 0}}));
    EXPECT_FALSE(fitAlphaBeta(std::vector<SizedTime>{{0, 1}, {2, 1}}));
}

}  // namespace
}  // namespace ringside
