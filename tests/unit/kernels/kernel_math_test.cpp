// The arithmetic of the CUDA kernels, run on the CPU against straightforward formulas in double precision.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/kernel_math.h"
#include "kernels/kernel_call.h"
#include "model/base/random.h"

namespace ringside::math {
namespace {

double exactActivation(std::int64_t kind, double x) {
    const double pi = 3.14159265358979323846;
    switch (static_cast<ActivationKind>(kind)) {
        case ActivationKind::Relu: return std::max(x, 0.0);
        case ActivationKind::Gelu: return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
        case ActivationKind::GeluTanh: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
        case ActivationKind::Silu: return x / (1 + std::exp(-x));
        case ActivationKind::Tanh: return std::tanh(x);
    }
    return NAN;
}

TEST(KernelMath, ActivationsAreThoseOfTheirFormulas) {
    for (std::int64_t kind = 0; kind < kActivationKinds; ++kind)
        for (double x = -9; x <= 9; x += 0.125) {
            const double expected = exactActivation(kind, x);
            EXPECT_NEAR(activation(kind, static_cast<float>(x)), expected, 2e-6 + 2e-6 * std::abs(expected)) << "kind " << kind << " at " << x;
        }
}

TEST(KernelMath, DerivativesOfActivationsAreTheirSlopes) {
    for (std::int64_t kind = 0; kind < kActivationKinds; ++kind)
        for (double x = -6.0625; x <= 6; x += 0.125) {  // never at ReLU's kink
            const double h = 1e-5, slope = (exactActivation(kind, x + h) - exactActivation(kind, x - h)) / (2 * h);
            const bool savesOutput = kind == kRelu || kind == kTanh;
            EXPECT_NEAR(activationDerivative(kind, static_cast<float>(savesOutput ? exactActivation(kind, x) : x)), slope, 1e-5) << "kind " << kind << " at " << x;
        }
}

TEST(KernelMath, ActivationsStayFiniteFarOutAndPassNanOn) {
    for (std::int64_t kind = 0; kind < kActivationKinds; ++kind) {
        for (const float x : {-200.0F, 200.0F, -3e4F, 3e4F}) {
            EXPECT_TRUE(std::isfinite(activation(kind, x))) << "kind " << kind << " at " << x;
            EXPECT_TRUE(std::isfinite(activationDerivative(kind, kind == kTanh ? std::tanh(x) : x))) << "kind " << kind << " at " << x;
        }
        EXPECT_TRUE(std::isnan(activation(kind, NAN))) << "kind " << kind;
    }
}

std::vector<float> samples(std::size_t count, double offset) {
    const CounterRandom random(5);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(offset + random.uniform(i) - 0.5);
    return values;
}

TEST(KernelMath, MomentsOfPartsJoinToThoseOfTheWholeAlsoFarFromZero) {
    const std::vector<float> values = samples(1000, 1000.0);
    double mean = 0, squares = 0;
    for (const float x : values) mean += static_cast<double>(x) / 1000;
    for (const float x : values) squares += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
    Moments joined;
    for (std::size_t begin = 0; begin < values.size(); begin += 37) {  // parts of unequal length
        Moments part;
        for (std::size_t i = begin; i < std::min(values.size(), begin + 37); ++i) addTo(part, values[i]);
        joined = join(joined, part);
    }
    joined = join(joined, Moments{});  // a thread without elements
    EXPECT_EQ(joined.count, 1000.0F);
    EXPECT_NEAR(joined.mean, mean, 1e-3);
    EXPECT_NEAR(joined.squares, squares, 0.01 * squares);
    EXPECT_NEAR(inverseDeviation(joined, 0), 1 / std::sqrt(squares / 1000), 0.02);
    EXPECT_NEAR(runningVariance(2.0F, joined, 0.1F), 0.9 * 2 + 0.1 * squares / 999, 1e-3);
    EXPECT_NEAR(runningMean(10.0F, 20.0F, 0.1F), 11, 1e-5);
}

/// Σ dy·norm(x) as a function of x, whose slope is what the gradients say.
double normed(const std::vector<double>& x, const std::vector<double>& g, bool centred) {
    const double n = static_cast<double>(x.size()), mean = centred ? std::accumulate(x.begin(), x.end(), 0.0) / n : 0.0;
    double squares = 0, sum = 0;
    for (const double v : x) squares += (v - mean) * (v - mean);
    for (std::size_t i = 0; i < x.size(); ++i) sum += g[i] * (x[i] - mean) / std::sqrt(squares / n);
    return sum;
}

TEST(KernelMath, GradientsOfNormsAreTheirSlopes) {
    const std::vector<float> xs = samples(9, 0.3), gs = samples(9, -0.1);
    const std::vector<double> x(xs.begin(), xs.end()), g(gs.begin(), gs.end());
    for (const bool centred : {true, false}) {
        const double mean = centred ? std::accumulate(x.begin(), x.end(), 0.0) / 9 : 0.0;
        double squares = 0;
        for (const double v : x) squares += (v - mean) * (v - mean);
        const double inverse = 1 / std::sqrt(squares / 9);
        double meanG = 0, meanGX = 0;
        for (std::size_t i = 0; i < 9; ++i) meanG += g[i] / 9, meanGX += g[i] * (x[i] - mean) * inverse / 9;
        for (std::size_t i = 0; i < 9; ++i) {
            std::vector<double> up = x, down = x;
            up[i] += 1e-5, down[i] -= 1e-5;
            const double slope = (normed(up, g, centred) - normed(down, g, centred)) / 2e-5;
            const auto f = [](double v) { return static_cast<float>(v); };
            const float gradient = centred ? normInputGradient(f(g[i]), f((x[i] - mean) * inverse), f(inverse), f(meanG), f(meanGX))
                                           : rmsNormInputGradient(f(g[i]), f(x[i] * inverse), f(inverse), f(meanGX));
            EXPECT_NEAR(gradient, slope, 1e-4) << (centred ? "layer norm " : "RMS norm ") << i;
        }
    }
}

TEST(KernelMath, LogSumsOfPartsJoinAndDoNotOverflow) {
    const std::vector<float> values = {-INFINITY, 80, -3, 100, 99.5F, -INFINITY, 2};
    double sum = 0;
    for (const float x : values) sum += std::exp(static_cast<double>(x) - 100);
    LogSum left, right;
    for (std::size_t i = 0; i < values.size(); ++i) addTo(i < 3 ? left : right, values[i]);
    EXPECT_NEAR(logOf(join(left, right)), 100 + std::log(sum), 1e-5);
    EXPECT_NEAR(logOf(join(right, left)), 100 + std::log(sum), 1e-5);
    EXPECT_EQ(logOf(join(LogSum{}, LogSum{})), -INFINITY);
}

TEST(KernelMath, GradientsOfSoftmaxAreItsSlopes) {
    const std::vector<double> x = {0.3, -1.2, 2.0, 0.1}, dy = {0.5, -0.25, 1.5, 2.0};
    const auto softmax = [](const std::vector<double>& v) {
        double sum = 0;
        for (const double a : v) sum += std::exp(a);
        std::vector<double> y;
        for (const double a : v) y.push_back(std::exp(a) / sum);
        return y;
    };
    const std::vector<double> y = softmax(x);
    const double sumDyY = std::inner_product(y.begin(), y.end(), dy.begin(), 0.0), sumDy = std::accumulate(dy.begin(), dy.end(), 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
        std::vector<double> up = x, down = x;
        up[i] += 1e-6, down[i] -= 1e-6;
        double slope = 0, logSlope = 0;
        for (std::size_t j = 0; j < x.size(); ++j) {
            slope += dy[j] * (softmax(up)[j] - softmax(down)[j]) / 2e-6;
            logSlope += dy[j] * (std::log(softmax(up)[j]) - std::log(softmax(down)[j])) / 2e-6;
        }
        EXPECT_NEAR(softmaxGradient(static_cast<float>(dy[i]), static_cast<float>(y[i]), static_cast<float>(sumDyY)), slope, 1e-5);
        EXPECT_NEAR(logSoftmaxGradient(static_cast<float>(dy[i]), static_cast<float>(std::log(y[i])), static_cast<float>(sumDy)), logSlope, 1e-5);
    }
}

TEST(KernelMath, DropoutDrawsAsCounterRandomAndKeepsItsShare) {
    const CounterRandom random(42);
    const std::uint64_t key = dropoutKey(42);
    int kept = 0;
    for (std::uint64_t i = 0; i < 20000; ++i) {
        const bool keeps = dropoutKeeps(key, i, 0.25);
        ASSERT_EQ(keeps, random.uniform(i) > 0.25) << i;
        kept += keeps ? 1 : 0;
    }
    EXPECT_NEAR(kept, 15000, 5 * std::sqrt(20000 * 0.25 * 0.75));  // five standard deviations
    for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_TRUE(dropoutKeeps(key, i, 0.0));
        EXPECT_FALSE(dropoutKeeps(key, i, 1.0));
    }
}

TEST(KernelMath, RotaryAnglesFallWithThePairAndAreRightFarOut) {
    EXPECT_EQ(rotaryAngle(0, 3, 8, 10000), 0.0F);
    EXPECT_FLOAT_EQ(rotaryAngle(5, 0, 8, 10000), 5.0F);
    EXPECT_FLOAT_EQ(rotaryAngle(5, 1, 8, 10000), 0.5F);  // 10000^(−2/8) = 0.1
    EXPECT_FLOAT_EQ(rotaryAngle(131071, 2, 8, 10000), 1310.71F);
}

TEST(KernelMath, PooledSizesAreThoseOfTheWindowsThatFit) {
    for (std::int64_t size = 1; size < 12; ++size)
        for (std::int64_t kernel = 1; kernel < 4; ++kernel)
            for (std::int64_t stride = 1; stride < 4; ++stride)
                for (std::int64_t padding = 0; 2 * padding <= kernel && size + 2 * padding >= kernel; ++padding) {
                    std::int64_t windows = 0;
                    for (std::int64_t begin = -padding; begin + kernel <= size + padding; begin += stride) ++windows;
                    EXPECT_EQ(pooledSize(size, kernel, stride, padding), windows);
                }
}

TEST(KernelMath, AdaptiveWindowsCoverEverythingAndTheirInverseNamesExactlyThoseThatHoldARow) {
    for (std::int64_t size = 1; size < 12; ++size)
        for (std::int64_t o = 1; o < 12; ++o) {
            for (std::int64_t i = 0; i < o; ++i) {
                EXPECT_EQ(adaptiveBegin(i, o, size), static_cast<std::int64_t>(std::floor(static_cast<double>(i * size) / static_cast<double>(o))));
                EXPECT_EQ(adaptiveEnd(i, o, size), static_cast<std::int64_t>(std::ceil(static_cast<double>((i + 1) * size) / static_cast<double>(o))));
            }
            for (std::int64_t row = 0; row < size; ++row) {
                std::set<std::int64_t> holding, named;
                for (std::int64_t i = 0; i < o; ++i)
                    if (adaptiveBegin(i, o, size) <= row && row < adaptiveEnd(i, o, size)) holding.insert(i);
                for (std::int64_t i = adaptiveBegin(row, size, o); i < adaptiveEnd(row, size, o); ++i) named.insert(i);
                EXPECT_EQ(holding, named) << size << " to " << o << ", row " << row;
            }
        }
}

TEST(KernelMath, AdamFollowsTheDecoupledFormulaOverManySteps) {
    const double lr = 1e-2, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.1;
    float p = 1.5F, m = 0, v = 0;
    double exactP = 1.5, exactM = 0, exactV = 0;
    for (int t = 1; t <= 50; ++t) {
        const double gradient = std::sin(t);
        adamUpdate(adamStep(t, lr, beta1, beta2, epsilon, decay), static_cast<float>(gradient), p, m, v);
        exactP *= 1 - lr * decay;
        exactM = beta1 * exactM + (1 - beta1) * gradient;
        exactV = beta2 * exactV + (1 - beta2) * gradient * gradient;
        exactP -= lr * (exactM / (1 - std::pow(beta1, t))) / (std::sqrt(exactV / (1 - std::pow(beta2, t))) + epsilon);
        EXPECT_NEAR(p, exactP, 2e-6) << "step " << t;
        EXPECT_NEAR(m, exactM, 1e-6);
        EXPECT_NEAR(v, exactV, 1e-6);
    }
}

TEST(KernelMath, MomentumStartsWithTheGradientItself) {
    EXPECT_EQ(momentumOf(NAN, 3, 0.9F, true), 3.0F);
    EXPECT_FLOAT_EQ(momentumOf(2, 3, 0.9F, false), 4.8F);
}

}  // namespace
}  // namespace ringside::math
