// Activations and their gradients (vector_loops.h). Static: each instruction set compiles its own.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace ringside {
namespace {

constexpr float kGeluTanhScale = 0.797884561F;  // √(2/π)
constexpr float kGeluTanhCubic = 0.044715F;

void reluLoop(const float* x, float* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = x[i] < 0.0F ? 0.0F : x[i];  // NaN stays
}
void geluLoop(const float* x, float* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
        float bell = 0;
        y[i] = x[i] * normalCdf(x[i], bell);
    }
}
void geluTanhLoop(const float* x, float* y, i64 n) {
    // ½·x·(1 + tanh u) = x·σ(2u): one exponential.
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = x[i] * fastSigmoid(2.0F * kGeluTanhScale * (x[i] + kGeluTanhCubic * x[i] * x[i] * x[i]));
}
void siluLoop(const float* x, float* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = x[i] * fastSigmoid(x[i]);
}
void tanhLoop(const float* x, float* y, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = fastTanh(x[i]);
}

void reluGradientLoop(const float* dy, const float* y, float* dx, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] = y[i] > 0.0F ? dy[i] : 0.0F;
}
void geluGradientLoop(const float* dy, const float* x, float* dx, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
        float bell = 0;
        const float cdf = normalCdf(x[i], bell);
        dx[i] = dy[i] * (cdf + x[i] * bell * 0.398942280F);  // Φ + x·φ
    }
}
void geluTanhGradientLoop(const float* dy, const float* x, float* dx, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
        const float square = x[i] * x[i];
        float slope = 0;
        const float s = sigmoidAndSlope(2.0F * kGeluTanhScale * (x[i] + kGeluTanhCubic * x[i] * square), slope);
        dx[i] = dy[i] * (s + x[i] * slope * 2.0F * kGeluTanhScale * (1.0F + 3.0F * kGeluTanhCubic * square));
    }
}
void siluGradientLoop(const float* dy, const float* x, float* dx, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
        float slope = 0;
        const float s = sigmoidAndSlope(x[i], slope);
        dx[i] = dy[i] * (s + x[i] * slope);
    }
}
void tanhGradientLoop(const float* dy, const float* y, float* dx, i64 n) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] = dy[i] * (1.0F - y[i] * y[i]);
}

}  // namespace
}  // namespace ringside
