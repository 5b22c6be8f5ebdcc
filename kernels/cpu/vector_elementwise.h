// Loops over elements (vector_loops.h says what each does). Static: each instruction set compiles its own.
#pragma once

#include "kernels/cpu/vector_loops.h"
#include "kernels/cpu/vector_math.h"

namespace ringside {
namespace {

void addLoop(const float* a, const float* b, float* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = a[i] + b[i];
}
void multiplyLoop(const float* a, const float* b, float* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = a[i] * b[i];
}
void axpyLoop(const float* x, float* y, i64 n, float alpha) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] += alpha * x[i];
}
void scaleLoop(const float* x, float* y, i64 n, float alpha) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = alpha * x[i];
}
void addScalarLoop(const float* x, float* y, i64 n, float value) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = x[i] + value;
}
void lerpLoop(const float* x, float* y, i64 n, float weight) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] += weight * (x[i] - y[i]);
}
void multiplyAccumulateLoop(const float* a, const float* b, float* y, i64 n, float alpha) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] += alpha * a[i] * b[i];
}
void divideAccumulateLoop(const float* a, const float* b, float* y, i64 n, float alpha) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] += alpha * a[i] / b[i];
}
void squareRootLoop(const float* x, float* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = __builtin_sqrtf(x[i]);
}

void adamLoop(const float* g, float* p, float* m, float* v, i64 n, const AdamStep& step) {
    const AdamStep s = step;
    const float keep = 1.0F - s.lr * s.decay, rate = s.lr * s.momentumCorrection;
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
        const float mean = m[i] + s.momentumRate * (g[i] - m[i]);
        const float square = s.beta2 * v[i] + s.varianceRate * g[i] * g[i];
        m[i] = mean;
        v[i] = square;
        p[i] = keep * p[i] - rate * mean / (__builtin_sqrtf(square) * s.varianceCorrection + s.epsilon);
    }
}
void sgdLoop(const float* g, float* p, i64 n, float lr) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) p[i] -= lr * g[i];
}
void sgdMomentumLoop(const float* g, float* p, float* buffer, i64 n, float lr, float momentum) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
        const float velocity = momentum * buffer[i] + g[i];
        buffer[i] = velocity;
        p[i] -= lr * velocity;
    }
}

/// Two rounds of multiply and xor-shift over the element's number: enough to decorrelate neighbours, and vector code.
inline std::uint32_t dropoutHash(std::uint32_t low, std::uint32_t high, std::uint32_t seedLow, std::uint32_t seedHigh) {
    std::uint32_t h = (low ^ seedLow) * 0x9E3779B1U;
    h ^= high * 0x85EBCA77U + seedHigh;
    h ^= h >> 16;
    h *= 0x7FEB352DU;
    h ^= h >> 15;
    h *= 0x846CA68BU;
    return h ^ (h >> 16);
}
void dropoutLoop(const float* x, float* y, std::uint8_t* mask, i64 n, i64 first, std::uint64_t seed, std::uint32_t threshold, float scale) {
    const auto seedLow = static_cast<std::uint32_t>(seed), seedHigh = static_cast<std::uint32_t>(seed >> 32);
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
        const auto number = static_cast<std::uint64_t>(first + i);
        const bool kept = dropoutHash(static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), seedLow, seedHigh) >= threshold;
        mask[i] = kept ? 1 : 0;
        y[i] = kept ? x[i] * scale : 0.0F;
    }
}
void dropoutGradientLoop(const float* dy, const std::uint8_t* mask, float* dx, i64 n, float scale) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] = mask[i] != 0 ? dy[i] * scale : 0.0F;
}

void fromBf16Loop(const std::uint16_t* x, float* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(x[i]) << 16);
}
void toBf16Loop(const float* x, std::uint16_t* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
        const auto bits = __builtin_bit_cast(std::uint32_t, x[i]);
        const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;  // to nearest, ties to even
        y[i] = static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FC0U : rounded);
    }
}

// Sums over many elements: fp32 within a block (short, as not every build has vectors to spread a sum over), fp64 over blocks.
constexpr i64 kSumBlock = 256;

template <class Term>
inline double blockedSum(i64 n, Term term) {
    double total = 0;
    for (i64 first = 0; first < n; first += kSumBlock) {
        const i64 last = first + kSumBlock < n ? first + kSumBlock : n;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (i64 i = first; i < last; ++i) sum += term(i);
        total += static_cast<double>(sum);
    }
    return total;
}
double sumOfSquaresLoop(const float* x, i64 n) {
    return blockedSum(n, [x](i64 i) { return x[i] * x[i]; });
}
double squaredErrorLoop(const float* x, const float* target, i64 n) {
    return blockedSum(n, [x, target](i64 i) { return (x[i] - target[i]) * (x[i] - target[i]); });
}
double sumLoop(const float* x, i64 n) {
    return blockedSum(n, [x](i64 i) { return x[i]; });
}
double squaredDistanceLoop(const float* x, i64 n, float mean) {
    return blockedSum(n, [x, mean](i64 i) { return (x[i] - mean) * (x[i] - mean); });
}
double centeredDotLoop(const float* dy, const float* x, i64 n, float mean) {
    return blockedSum(n, [dy, x, mean](i64 i) { return dy[i] * (x[i] - mean); });
}

}  // namespace
}  // namespace ringside
