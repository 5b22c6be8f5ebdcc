// Random numbers by counter: pure, uniform enough, exponential with the mean asked for.
#include "model/base/random.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace ringside {
namespace {

TEST(CounterRandom, IsAFunctionOfSeedStreamAndCounter) {
    EXPECT_EQ(CounterRandom(7).bits(3), CounterRandom(7).bits(3));
    std::set<std::uint64_t> seen;
    for (std::uint64_t seed = 0; seed < 4; ++seed)
        for (std::uint64_t stream = 0; stream < 4; ++stream)
            for (std::uint64_t counter = 0; counter < 256; ++counter) seen.insert(CounterRandom(seed, stream).bits(counter));
    EXPECT_EQ(seen.size(), 4U * 4 * 256);
}

TEST(CounterRandom, IsUniformInEveryTenth) {
    const CounterRandom random(1);
    constexpr int kDraws = 100'000;
    int tenth[10] = {};
    for (int i = 0; i < kDraws; ++i) {
        const double u = random.uniform(static_cast<std::uint64_t>(i));
        ASSERT_GT(u, 0);
        ASSERT_LE(u, 1);
        ++tenth[std::min(9, static_cast<int>(u * 10))];
    }
    // Each holds 10,000 ± √(100,000 · 0.1 · 0.9) ≈ 95; five of those is 475.
    for (const int count : tenth) EXPECT_NEAR(count, 10'000, 475);
}

TEST(CounterRandom, ExponentialHasItsMeanAndItsMedian) {
    const CounterRandom random(2);
    constexpr int kDraws = 100'000;
    double sum = 0;
    int belowMedian = 0;
    for (int i = 0; i < kDraws; ++i) {
        const double x = random.exponential(static_cast<std::uint64_t>(i), 50);
        sum += x;
        belowMedian += x < 50 * std::log(2.0);
    }
    // The mean's standard error is 50/√100,000 = 0.158, the count's √(100,000/4) = 158; five of each.
    EXPECT_NEAR(sum / kDraws, 50, 0.8);
    EXPECT_NEAR(belowMedian, kDraws / 2, 800);
}

}  // namespace
}  // namespace ringside
