// From timings to the tables of a profile: curves, products, interference.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "calibrate/fit/assemble_profile.h"
#include "calibrate/fit/curve_fit.h"
#include "calibrate/fit/efficiency_fit.h"
#include "calibrate/fit/interference_fit.h"
#include "model/base/random.h"
#include "model/cost/compute_cost.h"
#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

std::vector<double> noisy(double seconds, double noise, std::uint64_t seed, int count = 15) {
    const CounterRandom random(seed);
    std::vector<double> times;
    for (int i = 0; i < count; ++i) times.push_back(seconds * (1 + noise * (2 * random.uniform(static_cast<std::uint64_t>(i)) - 1)));
    return times;
}

TEST(CurveFit, TakesTheMedianPerSizeAndIsSortedBySize) {
    const auto curve = fitCurve(std::vector<SizeSeries>{{2000, {2, 2.2, 9}}, {1000, {1, 1.1, 0.9}}}).value();
    ASSERT_EQ(curve.size(), 2U);
    EXPECT_DOUBLE_EQ(curve[0].size, 1000);
    EXPECT_DOUBLE_EQ(curve[0].estimate.value, 1);
    EXPECT_DOUBLE_EQ(curve[1].estimate.value, 2.2);
}

TEST(CurveFit, NeverFallsWhateverTheNoise) {
    EXPECT_TRUE(rc::check("more work is not faster", [] {
        std::vector<SizeSeries> series;
        const int count = *rc::gen::inRange(1, 12);
        for (int i = 0; i < count; ++i) {
            SizeSeries one{static_cast<double>(*rc::gen::inRange(1, 10)), {}};
            const int samples = *rc::gen::inRange(1, 6);
            for (int k = 0; k < samples; ++k) one.seconds.push_back(*rc::gen::inRange(1, 1000) * 1e-6);
            series.push_back(one);
        }
        const auto curve = fitCurve(series).value();
        for (std::size_t i = 1; i < curve.size(); ++i) {
            RC_ASSERT(curve[i].size > curve[i - 1].size);
            RC_ASSERT(curve[i].estimate.value >= curve[i - 1].estimate.value * (1 - 1e-12));
        }
        for (const CurvePoint& point : curve) RC_ASSERT(point.estimate.interval.contains(point.estimate.value));
    }));
}

TEST(CurveFit, RefusesWhatIsNoTime) {
    EXPECT_FALSE(fitCurve(std::vector<SizeSeries>{}));
    EXPECT_FALSE(fitCurve(std::vector<SizeSeries>{{1, {}}}));
    EXPECT_FALSE(fitCurve(std::vector<SizeSeries>{{1, {0}}}));
    EXPECT_FALSE(fitCurve(std::vector<SizeSeries>{{1, {std::numeric_limits<double>::quiet_NaN()}}}));
}

TEST(EfficiencyFit, TurnsTimesIntoRatesAndFindsTheBest) {
    // 2·100·100·100 = 2 MFLOP in 1 ms: 2 GFLOPS. 2·200·100·100 in 1 ms: 4 GFLOPS.
    const auto fit = fitEfficiency(std::vector<GemmTimings>{{{1, 100, 100, 100}, {1e-3, 1e-3, 5e-3}}, {{1, 200, 100, 100}, {1e-3, 1.1e-3, 0.9e-3}}}).value();
    ASSERT_EQ(fit.samples.size(), 2U);
    EXPECT_NEAR(fit.samples[0].tflops, 0.002, 1e-12);
    EXPECT_NEAR(fit.best.value, 4e9, 1);
    EXPECT_TRUE(fit.best.interval.contains(4e9));
    EXPECT_FALSE(fitEfficiency(std::vector<GemmTimings>{{{1, 0, 1, 1}, {1}}}));
    EXPECT_FALSE(fitEfficiency(std::vector<GemmTimings>{{{1, 1, 1, 1}, {-1}}}));
}

TEST(SlowdownFit, RecoversTheFactorWithinItsInterval) {
    EXPECT_TRUE(rc::check("the slowdown lies in its interval", [] {
        const double factor = 1 + *rc::gen::inRange(1, 300) * 0.01;
        const auto seed = *rc::gen::arbitrary<std::uint32_t>();
        const auto alone = noisy(5e-3, 0.05, seed, 41), beside = noisy(5e-3 * factor, 0.05, seed + 1ULL, 41);
        RC_ASSERT(fitSlowdown(alone, beside).value().interval.contains(factor));
    }));
}

TEST(SlowdownFit, NothingBecomesFasterByCompany) {
    const std::vector<double> slow{2, 2, 2}, fast{1, 1, 1};
    EXPECT_DOUBLE_EQ(fitSlowdown(slow, fast).value().value, 1);
    EXPECT_FALSE(fitSlowdown(slow, {}));
}

TEST(CpuTimeFit, FindsTheFixedPartAndThePartPerByte) {
    std::vector<SizedTime> samples;
    for (int power = 12; power <= 26; power += 2)
        for (const double seconds : noisy(30e-6 + 4e-10 * std::exp2(power), 0.05, static_cast<std::uint64_t>(power), 7)) samples.push_back({std::exp2(power), seconds});
    const CpuTimeFit fit = fitCpuTime(samples).value();
    EXPECT_NEAR(fit.secondsPerCall, 30e-6, 3e-6);
    EXPECT_NEAR(fit.secondsPerByte, 4e-10, 4e-11);
    EXPECT_DOUBLE_EQ(fitCpuTime(std::vector<SizedTime>{{1000, 0}, {2000, 0}}).value().secondsPerByte, 0);
    EXPECT_DOUBLE_EQ(fitCpuTime(std::vector<SizedTime>{{1000, 1e-3}}).value().secondsPerByte, 1e-6);
}

Device host() {
    Device device;
    device.name = "cpu";
    return device;
}

TEST(AssembleProfile, APricedKernelTakesTheTimeThatWasMeasured) {
    Profile profile = datasheetProfile(host());
    const KernelWork gelu = memoryWork("gelu", 1e6), conv = convolutionWork("convolution", {1, 3136, 64, 576}, DType::Fp32, 2e6);
    const KernelWork product = gemmWork("linear", {1, 128, 256, 512}, DType::Fp32, DType::Fp32);
    const std::vector<KernelTimings> timings{{"gelu", gelu, {1e-3, 1.1e-3, 0.9e-3}}, {"gelu", memoryWork("gelu", 4e6), {4e-3}}, {"*", memoryWork("*", 1e6), {2e-3}},
                                             {"convolution", conv, {8e-3, 8.1e-3, 7.9e-3}}, {"", product, {0.5e-3}}};
    ASSERT_TRUE(addKernelTimings(profile, timings));
    deriveFigures(profile, "measured here");
    const Device device = withMeasuredFigures(host(), profile).value();
    const auto cost = ComputeCost::create(device, profile, DType::Fp32);
    ASSERT_TRUE(cost) << cost.error().toString();
    EXPECT_NEAR(cost->seconds(gelu), 1e-3, 1e-12);
    EXPECT_NEAR(cost->seconds(memoryWork("softmax", 1e6)), 2e-3, 1e-12);
    EXPECT_NEAR(cost->seconds(conv), 8e-3, 1e-12);
    EXPECT_NEAR(cost->seconds(product), 0.5e-3, 1e-9);
    EXPECT_EQ(profile.memoryEfficiency.provenance, Provenance::Measured);
    EXPECT_EQ(profile.gemmEfficiency.at(DType::Fp32).source, "measured here");
    EXPECT_DOUBLE_EQ(*device.memoryBandwidthGbPerS, 1);
    // The product's best rate is the peak: 2·128·256·512 FLOP in 0.5 ms.
    EXPECT_NEAR(device.peakDenseTflops.at(DType::Fp32), 2.0 * 128 * 256 * 512 / 0.5e-3 / 1e12, 1e-9);
    const Json json = toJson(profile);
    EXPECT_TRUE(profileFromJson(JsonCursor(json, "p.json"))) << "what is assembled can be read";
}

TEST(AssembleProfile, BadSamplesNameTheirKernel) {
    Profile profile;
    const std::vector<KernelTimings> nan{{"gelu", memoryWork("gelu", 1e6), {std::numeric_limits<double>::quiet_NaN()}}};
    const auto refused = addKernelTimings(profile, nan);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().place, "gelu");
    EXPECT_TRUE(profile.kernels.empty());
}

TEST(AssembleProfile, CollectivesBecomeCurvesAndASecondCalibrationReplacesThem) {
    Profile profile;
    std::vector<CollectiveTimings> timings;
    for (const Bytes bytes : {Bytes{1024}, Bytes{1 << 20}})
        timings.push_back({CollectiveBackend::Gloo, CollectiveOp::AllReduce, 2, "loopback", bytes, {1e-4 + 1e-9 * static_cast<double>(bytes)}, {5e-5 + 5e-10 * static_cast<double>(bytes)}, {1.3e-4 + 1.3e-9 * static_cast<double>(bytes)}});
    ASSERT_TRUE(addCollectiveTimings(profile, timings));
    ASSERT_EQ(profile.collectives.size(), 1U);
    EXPECT_EQ(profile.collectives[0].points.size(), 2U);
    EXPECT_NEAR(profile.collectives[0].cpuSecondsPerByte, 5e-10, 1e-12);
    EXPECT_NEAR(profile.collectives[0].slowdownByCompute, 1.3, 1e-12);
    timings[0].seconds = {2e-4};
    ASSERT_TRUE(addCollectiveTimings(profile, timings));
    ASSERT_EQ(profile.collectives.size(), 1U);
    EXPECT_DOUBLE_EQ(profile.collectives[0].points[0].seconds, 2e-4);
}

}  // namespace
}  // namespace ringside
