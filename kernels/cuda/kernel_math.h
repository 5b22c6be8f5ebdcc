// The arithmetic of the CUDA kernels as plain functions that the host can call too: tests/unit/kernels holds each against a
// straightforward formula in double precision, without a GPU. Numbers are fp32, as the kernels compute whatever the tensors hold.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define RINGSIDE_HOST_DEVICE __host__ __device__ inline
#else
#define RINGSIDE_HOST_DEVICE inline
#endif

namespace ringside::math {

// Activations. `kind` is an ActivationKind (kernels/kernel_call.h) as a number.

constexpr std::int64_t kRelu = 0, kGelu = 1, kGeluTanh = 2, kSilu = 3, kTanh = 4, kActivationKinds = 5;

RINGSIDE_HOST_DEVICE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/// The inner argument of GELU's tanh form (Hendrycks and Gimpel, 2016): √(2/π)·(x + 0.044715·x³).
RINGSIDE_HOST_DEVICE float geluTanhArgument(float x) { return 0.7978845608028654f * (x + 0.044715f * x * x * x); }

RINGSIDE_HOST_DEVICE float activation(std::int64_t kind, float x) {
    switch (kind) {
        case kRelu: return x < 0.0f ? 0.0f : x;  // NaN passes through
        case kGelu: return 0.5f * x * (1.0f + erff(x * 0.7071067811865476f));
        case kGeluTanh: return 0.5f * x * (1.0f + tanhf(geluTanhArgument(x)));
        case kSilu: return x * sigmoid(x);
        default: return tanhf(x);
    }
}

/// The derivative; `saved` is the output for ReLU and tanh, the input for the others.
RINGSIDE_HOST_DEVICE float activationDerivative(std::int64_t kind, float saved) {
    switch (kind) {
        case kRelu: return saved > 0.0f ? 1.0f : 0.0f;
        case kGelu: {
            const float density = 0.3989422804014327f * expf(-0.5f * saved * saved);
            return 0.5f * (1.0f + erff(saved * 0.7071067811865476f)) + saved * density;
        }
        case kGeluTanh: {
            const float t = tanhf(geluTanhArgument(saved));
            const float slope = 0.7978845608028654f * (1.0f + 3.0f * 0.044715f * saved * saved);
            return 0.5f * (1.0f + t) + 0.5f * saved * (1.0f - t * t) * slope;
        }
        case kSilu: {
            const float s = sigmoid(saved);
            return s * (1.0f + saved * (1.0f - s));
        }
        default: return 1.0f - saved * saved;
    }
}

// Norms, one element at a time: the sums over a row (or a channel) come from the kernel.

/// Running count, mean and sum of squared differences, and how two parts of a row join (Chan, Golub and LeVeque, 1979).
struct Moments {
    float count = 0, mean = 0, squares = 0;
};
RINGSIDE_HOST_DEVICE void addTo(Moments& moments, float x) {
    moments.count += 1.0f;
    const float difference = x - moments.mean;
    moments.mean += difference / moments.count;
    moments.squares += difference * (x - moments.mean);
}
RINGSIDE_HOST_DEVICE Moments join(const Moments& a, const Moments& b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float difference = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + difference * share, a.squares + b.squares + difference * difference * a.count * share};
}
RINGSIDE_HOST_DEVICE float inverseDeviation(const Moments& moments, float epsilon) { return 1.0f / sqrtf(moments.squares / moments.count + epsilon); }

/// Of layer norm and batch norm: dx from the means of g = w·dy and of g·x̂ over what was normalised.
RINGSIDE_HOST_DEVICE float normInputGradient(float g, float normalised, float inverse, float meanG, float meanGNormalised) {
    return inverse * (g - meanG - normalised * meanGNormalised);
}
/// Of RMS norm, which subtracts no mean.
RINGSIDE_HOST_DEVICE float rmsNormInputGradient(float g, float normalised, float inverse, float meanGNormalised) {
    return inverse * (g - normalised * meanGNormalised);
}
/// Torch's running statistics: the variance without bias, n/(n−1).
RINGSIDE_HOST_DEVICE float runningMean(float running, float mean, float momentum) { return running + momentum * (mean - running); }
RINGSIDE_HOST_DEVICE float runningVariance(float running, const Moments& moments, float momentum) {
    const float unbiased = moments.squares / (moments.count > 1.0f ? moments.count - 1.0f : 1.0f);
    return running + momentum * (unbiased - running);
}

// Softmax in one pass: the largest value so far and the sum of exponentials relative to it (Milakov and Gimelshein, 2018).

struct LogSum {
    float largest = -INFINITY, sum = 0;
};
RINGSIDE_HOST_DEVICE LogSum join(const LogSum& a, const LogSum& b) {
    const float largest = a.largest > b.largest ? a.largest : b.largest;
    if (largest == -INFINITY) return {largest, a.sum + b.sum};
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}
RINGSIDE_HOST_DEVICE void addTo(LogSum& total, float x) { total = join(total, LogSum{x, 1.0f}); }
RINGSIDE_HOST_DEVICE float logOf(const LogSum& total) { return total.largest + logf(total.sum); }
RINGSIDE_HOST_DEVICE float softmaxGradient(float dy, float y, float sumOfDyY) { return y * (dy - sumOfDyY); }
RINGSIDE_HOST_DEVICE float logSoftmaxGradient(float dy, float y, float sumOfDy) { return dy - expf(y) * sumOfDy; }

// Dropout: whether element `index` is kept is a pure function of the seed, the draw of CounterRandom (model/base/random.h).

RINGSIDE_HOST_DEVICE std::uint64_t mixBits(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}
RINGSIDE_HOST_DEVICE std::uint64_t dropoutKey(std::int64_t seed) {
    return mixBits(static_cast<std::uint64_t>(seed) + mixBits(0x9e3779b97f4a7c15ULL));
}
/// Kept with probability 1 − p.
RINGSIDE_HOST_DEVICE bool dropoutKeeps(std::uint64_t key, std::uint64_t index, double p) {
    const std::uint64_t bits = mixBits(mixBits(key ^ (index * 0x9e3779b97f4a7c15ULL)) + index);
    return (static_cast<double>(bits >> 11) + 1.0) * 0x1.0p-53 > p;
}

// Rotary position embedding: pair i of d/2 turns by position · base^(−2i/d).

RINGSIDE_HOST_DEVICE float rotaryAngle(std::int64_t position, std::int64_t pair, std::int64_t d, double base) {
    return static_cast<float>(static_cast<double>(position) * pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(d)));
}

// Pooling windows.

RINGSIDE_HOST_DEVICE std::int64_t pooledSize(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    return (size + 2 * padding - kernel) / stride + 1;
}
/// Window `i` of `o` adaptive ones over `size`: [begin, end).
RINGSIDE_HOST_DEVICE std::int64_t adaptiveBegin(std::int64_t i, std::int64_t o, std::int64_t size) { return i * size / o; }
RINGSIDE_HOST_DEVICE std::int64_t adaptiveEnd(std::int64_t i, std::int64_t o, std::int64_t size) { return ((i + 1) * size + o - 1) / o; }

// Optimizers, one element, as torch.optim's fused kernels.

struct AdamStep {
    float lr, beta1, beta2, epsilon, decay;
    float correction1, rootOfCorrection2;  ///< 1 − β₁ᵗ, √(1 − β₂ᵗ)
};
inline AdamStep adamStep(std::int64_t step, double lr, double beta1, double beta2, double epsilon, double decay) {
    const double t = static_cast<double>(step);
    return {static_cast<float>(lr), static_cast<float>(beta1), static_cast<float>(beta2), static_cast<float>(epsilon), static_cast<float>(decay),
            static_cast<float>(1.0 - std::pow(beta1, t)), static_cast<float>(std::sqrt(1.0 - std::pow(beta2, t)))};
}
/// AdamW (Loshchilov and Hutter, 2019): the decay acts on the parameter, not on the gradient.
RINGSIDE_HOST_DEVICE void adamUpdate(const AdamStep& s, float gradient, float& p, float& m, float& v) {
    p -= s.lr * s.decay * p;
    m += (1.0f - s.beta1) * (gradient - m);
    v = s.beta2 * v + (1.0f - s.beta2) * gradient * gradient;
    p -= s.lr / s.correction1 * m / (sqrtf(v) / s.rootOfCorrection2 + s.epsilon);
}
/// Torch's momentum: the first step takes the gradient as it is.
RINGSIDE_HOST_DEVICE float momentumOf(float buffer, float gradient, float momentum, bool first) { return first ? gradient : momentum * buffer + gradient; }

}  // namespace ringside::math
