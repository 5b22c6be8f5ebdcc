// exp, tanh and the normal distribution in fp32, without branches, so that loops over them become vector code.
//
// Polynomials are Chebyshev fits; errors are relative, against exact values: docs/models/devices.md lists them.
// Everything is static: each instruction set compiles its own.
#pragma once

#include <cstdint>

namespace ringside {
namespace {

using i64 = std::int64_t;

inline float asFloat(std::int32_t bits) { return __builtin_bit_cast(float, bits); }
inline std::int32_t asBits(float x) { return __builtin_bit_cast(std::int32_t, x); }

/// e^x; 0 below −87.3 (no denormals), infinite above 88.7, NaN for NaN.
inline float fastExp(float x) {
    constexpr float kLow = -87.33654F, kHigh = 88.72283F;
    constexpr float kRound = 12582912.0F;  // 1.5·2^23: adding it rounds to an integer
    float clamped = x < kLow ? kLow : x;
    clamped = clamped > kHigh ? kHigh : clamped;
    const float shifted = clamped * 1.44269504F + kRound;
    const float n = shifted - kRound;
    const float r = (clamped - n * 0.693145752F) - n * 1.42860677e-6F;
    float p = 0.001392692661F;
    p = p * r + 0.008363773874F;
    p = p * r + 0.04166655011F;
    p = p * r + 0.1666657338F;
    p = p * r + 0.5F;
    p = p * (r * r) + r + 1.0F;
    // 2^n in two steps: n = 128 is beyond the largest exponent.
    const std::int32_t whole = asBits(shifted) - asBits(kRound);
    const float scaled = p * asFloat((whole - 1 + 127) << 23) * 2.0F;
    const float high = x > kHigh ? __builtin_inff() : scaled;
    return x < kLow ? 0.0F : high;
}

inline float fastTanh(float x) {
    const float a = x < 0.0F ? -x : x;
    const float large = 1.0F - 2.0F / (fastExp(2.0F * a) + 1.0F);
    const float u = x * x;
    float p = -0.006045165091F;
    p = p * u + 0.0209613291F;
    p = p * u - 0.05384326317F;
    p = p * u + 0.1333271885F;
    p = p * u - 0.3333332843F;
    const float small = x + x * u * p;
    const float signedLarge = x < 0.0F ? -large : large;
    return a < 0.6F ? small : signedLarge;
}

inline float fastSigmoid(float x) { return 1.0F / (1.0F + fastExp(-x)); }
/// σ(x), and its derivative σ·(1 − σ) without the cancellation in 1 − σ.
inline float sigmoidAndSlope(float x, float& slope) {
    const float e = fastExp(x < 0.0F ? x : -x);
    const float inverse = 1.0F / (1.0F + e);
    slope = e * inverse * inverse;
    return x < 0.0F ? e * inverse : inverse;
}

/// The standard normal distribution Φ(x) = ½·erfc(−x/√2), with e^(z²)·erfc(z) as a polynomial in 1 / (1 + 0.4·z). `bell` is e^(−x²/2).
inline float normalCdf(float x, float& bell) {
    const float z = (x < 0.0F ? -x : x) * 0.707106781F;
    bell = fastExp(-0.5F * x * x);
    const float t = 1.0F / (1.0F + 0.4F * z);
    float p = -0.03350112687F;
    p = p * t + 0.2187853561F;
    p = p * t - 0.5465026178F;
    p = p * t + 0.6093421803F;
    p = p * t - 0.3343118762F;
    p = p * t + 0.2979731946F;
    p = p * t + 0.1210599825F;
    p = p * t + 0.216689386F;
    p = p * t + 0.2247486653F;
    p = p * t + 0.2257168574F;
    const float tail = 0.5F * bell * (p * t);
    return x < 0.0F ? tail : 1.0F - tail;
}

}  // namespace
}  // namespace ringside
