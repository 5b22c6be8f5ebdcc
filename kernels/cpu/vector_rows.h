// Loops over rows: softmax, attention's rows, rotation (vector_loops.h). Static: each instruction set compiles its own.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace ringside {
namespace {

inline float rowMaximum(const float* x, i64 n) {
    float best = -__builtin_inff();
#pragma omp simd reduction(max : best)
    for (i64 i = 0; i < n; ++i) best = x[i] > best ? x[i] : best;
    return best;
}

/// A row of −∞ only would give −∞ − −∞; with 0 as its maximum every term is 0.
inline float finiteOrZero(float maximum) { return maximum == -__builtin_inff() ? 0.0F : maximum; }

void softmaxLoop(const float* x, float* y, i64 rows, i64 n) {
    for (i64 r = 0; r < rows; ++r, x += n, y += n) {
        const float maximum = finiteOrZero(rowMaximum(x, n));
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (i64 i = 0; i < n; ++i) {
            const float e = fastExp(x[i] - maximum);
            y[i] = e;
            sum += e;
        }
        const float inverse = 1.0F / sum;
#pragma omp simd
        for (i64 i = 0; i < n; ++i) y[i] *= inverse;
    }
}

inline float dotProduct(const float* a, const float* b, i64 n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (i64 i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}
float dotLoop(const float* a, const float* b, i64 n) { return dotProduct(a, b, n); }

void softmaxGradientLoop(const float* dy, const float* y, float* dx, i64 rows, i64 n) {
    for (i64 r = 0; r < rows; ++r, dy += n, y += n, dx += n) {
        const float sum = dotProduct(dy, y, n);
#pragma omp simd
        for (i64 i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - sum);
    }
}

void logSoftmaxLoop(const float* x, float* y, i64 rows, i64 n) {
    for (i64 r = 0; r < rows; ++r, x += n, y += n) {
        const float maximum = finiteOrZero(rowMaximum(x, n));
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (i64 i = 0; i < n; ++i) sum += fastExp(x[i] - maximum);
        const float logSum = __builtin_logf(sum);
#pragma omp simd
        for (i64 i = 0; i < n; ++i) y[i] = x[i] - maximum - logSum;
    }
}

void logSoftmaxGradientLoop(const float* dy, const float* y, float* dx, i64 rows, i64 n) {
    for (i64 r = 0; r < rows; ++r, dy += n, y += n, dx += n) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (i64 i = 0; i < n; ++i) sum += dy[i];
#pragma omp simd
        for (i64 i = 0; i < n; ++i) dx[i] = dy[i] - fastExp(y[i]) * sum;
    }
}

float attentionRowLoop(float* x, i64 keys, float scale, float& maximum) {
    // The largest of scale·x lies where x is largest, or smallest when the scale is negative: scale first, it costs nothing.
    float best = -__builtin_inff();
#pragma omp simd reduction(max : best)
    for (i64 i = 0; i < keys; ++i) {
        x[i] *= scale;
        best = x[i] > best ? x[i] : best;
    }
    best = finiteOrZero(best);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (i64 i = 0; i < keys; ++i) {
        const float e = fastExp(x[i] - best);
        x[i] = e;
        sum += e;
    }
    maximum = best;
    return sum;
}

void attentionRowGradientLoop(float* p, float* dp, i64 keys, float scale, float logSumExp, float delta) {
#pragma omp simd
    for (i64 i = 0; i < keys; ++i) {
        const float probability = fastExp(scale * p[i] - logSumExp);
        p[i] = probability;
        dp[i] = probability * (dp[i] - delta) * scale;
    }
}

void rotateLoop(const float* x, float* y, i64 d, const float* cosines, const float* sines, float sign) {
    const i64 half = d / 2;
#pragma omp simd
    for (i64 i = 0; i < half; ++i) {
        const float a = x[i], b = x[i + half], c = cosines[i], s = sign * sines[i];
        y[i] = a * c - b * s;
        y[i + half] = b * c + a * s;
    }
}

}  // namespace
}  // namespace ringside
