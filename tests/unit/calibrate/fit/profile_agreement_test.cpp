#include "calibrate/fit/profile_agreement.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/fit/repeat_spread.h"
#include "model/base/random.h"

namespace ringside {
namespace {

using testing::ElementsAre;

/// Standard normal numbers, by Box and Muller.
double normal(const CounterRandom& random, std::uint64_t i) { return std::sqrt(2 * random.exponential(2 * i, 1)) * std::cos(2 * M_PI * random.uniform(2 * i + 1)); }

/// A machine whose kernels take what they take, times e^z with a standard deviation of `noise`; it states a spread of `stated`.
Profile calibrated(std::uint64_t seed, double noise, double stated) {
    const CounterRandom random(seed);
    std::uint64_t draw = 0;
    const auto off = [&] { return std::exp(noise * normal(random, draw++)); };
    Profile profile;
    for (int i = 1; i <= 100; ++i) {
        profile.kernels["copy"].push_back({0, 1000.0 * i, {1, 0, 0, 0}, DType::Fp32, false, 1e-6 * i * off(), stated});
        profile.kernels["linear"].push_back({2e6 * i, 1e5, {1, 100, 100, 100 * i}, DType::Fp32, false, 1e-4 * i * off(), stated});
        profile.gemmTable[DType::Fp32].push_back({{1, 64, 64, 64 * i}, 0.1 * off(), stated});
    }
    CollectiveCurve& curve = profile.collectives.emplace_back();
    curve.link = "loopback";
    for (Bytes bytes = 1024; bytes <= 1024 << 10; bytes *= 2) curve.points.push_back({bytes, 1e-9 * static_cast<double>(bytes) * off(), stated});
    profile.hostStepUs = {100 * off(), stated, Provenance::Measured, "here"};
    profile.launchUs = {6, 0, Provenance::Assumed, "a guess"};
    return profile;
}

TEST(ProfileAgreement, OfSpreadsThatMeanWhatTheySayLeavesWhatChanceDoes) {
    const ProfileAgreement agreement = compareProfiles(calibrated(1, 0.04, 0.04), calibrated(2, 0.04, 0.04));
    EXPECT_EQ(agreement.all.entries, 100U + 100 + 100 + 11 + 1) << "what is assumed is not compared";
    EXPECT_NEAR(agreement.all.withinOne, 0.68, 0.08);
    EXPECT_NEAR(agreement.all.withinTwo, 0.954, 0.04);
    EXPECT_NEAR(agreement.all.bias, 0, 0.01);
    EXPECT_NEAR(agreement.all.spread, 0.04 * std::sqrt(2), 1e-12);
    EXPECT_TRUE(agreement.agree());
}

TEST(ProfileAgreement, IsNoneWhereSpreadsAreTooSmallOrEverythingHasDrifted) {
    EXPECT_FALSE(compareProfiles(calibrated(1, 0.04, 0.01), calibrated(2, 0.04, 0.01)).agree());
    Profile slower = calibrated(2, 0.02, 0.02);
    for (auto& [name, points] : slower.kernels)
        for (KernelPoint& point : points) point.seconds *= 1.2;
    const ProfileAgreement agreement = compareProfiles(calibrated(1, 0.02, 0.02), slower);
    EXPECT_FALSE(agreement.agree());
    const auto memory = std::find_if(agreement.groups.begin(), agreement.groups.end(), [](const AgreementGroup& group) { return group.name == "kernels: memory"; });
    ASSERT_NE(memory, agreement.groups.end());
    EXPECT_NEAR(memory->bias, 0.2, 0.03);
    ASSERT_FALSE(agreement.farthest.empty());
    EXPECT_TRUE(std::is_sorted(agreement.farthest.begin(), agreement.farthest.end(), [](const ProfileEntry& a, const ProfileEntry& b) { return a.deviations() > b.deviations(); }));
}

TEST(ProfileAgreement, ComparesEqualWorkAndNamesWhatOnlyOneHas) {
    Profile a = calibrated(1, 0.01, 0.01), b = calibrated(2, 0.01, 0.01);
    b.kernels["copy"].resize(50);
    b.kernels["copy"].back().bytes += 1;
    a.kernels["gelu"] = b.kernels["relu"] = a.kernels["copy"];
    b.collectives[0].ranks = 4;
    b.gemmTable[DType::Bf16] = b.gemmTable[DType::Fp32];
    a.steps = b.steps = {{"mlp", 2, 0.01}};
    const ProfileAgreement agreement = compareProfiles(a, b);
    EXPECT_EQ(agreement.all.entries, 49U + 100 + 100 + 1);
    EXPECT_THAT(agreement.onlyA, ElementsAre("gelu", "all_reduce of 2 ranks over loopback"));
    EXPECT_THAT(agreement.onlyB, ElementsAre("relu", "products in bf16", "all_reduce of 4 ranks over loopback"));
    ASSERT_EQ(agreement.withoutSpread.size(), 1U);
    EXPECT_EQ(agreement.withoutSpread[0].what, "mlp");
    EXPECT_FALSE(compareProfiles(Profile(), b).agree()) << "nothing in common is no agreement";
}

TEST(RepeatSpread, OfATableIsAtLeastItsRootMeanSquare) {
    // (0.03² + 0.04²)/2 = 0.035²
    std::vector<CollectivePoint> curve{{1024, 1e-3, 0.03}, {2048, 2e-3, 0.04}};
    shareSpread(curve);
    EXPECT_NEAR(curve[0].relativeSpread, std::sqrt(0.00125), 1e-12);
    EXPECT_EQ(curve[1].relativeSpread, 0.04);
}

TEST(RepeatSpread, OfATasksShareIsLargeWhereTheKernelIsShort) {
    Profile profile;
    profile.kernels["copy"] = {{0, 1e3, {1, 0, 0, 0}, DType::Fp32, false, 5e-6, 0.03}, {0, 1e7, {1, 0, 0, 0}, DType::Fp32, false, 5e-3, 0.03}};
    profile.gemmTable[DType::Fp32] = {{{1, 100, 100, 100}, 0.02, 0}};  // 2·10⁶ FLOP in 100 µs
    addTaskSpread(profile, 2e-6);
    EXPECT_NEAR(profile.kernels["copy"][0].relativeSpread, 0.401, 0.001);  // √(0.03² + 0.4²)
    EXPECT_NEAR(profile.kernels["copy"][1].relativeSpread, 0.03, 1e-5);
    EXPECT_NEAR(profile.gemmTable[DType::Fp32][0].relativeSpread, 0.02, 1e-9);
}

}  // namespace
}  // namespace ringside
