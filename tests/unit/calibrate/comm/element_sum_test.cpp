#include "calibrate/comm/element_sum.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace ringside {
namespace {

/// The value of a 16-bit pattern, from its definition.
double valueOf(DType dtype, std::uint16_t bits) {
    const int fractionBits = dtype == DType::Fp16 ? 10 : 7, bias = dtype == DType::Fp16 ? 15 : 127;
    const int exponent = (bits & 0x7fff) >> fractionBits, fraction = bits & ((1 << fractionBits) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 2 * bias + 1) return fraction == 0 ? sign * INFINITY : NAN;
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fractionBits);
    return sign * std::ldexp((1 << fractionBits) + fraction, exponent - bias - fractionBits);
}

std::uint16_t sumOf(DType dtype, std::uint16_t a, std::uint16_t b) {
    // Nine of them, so that both the wide loop and its rest are taken.
    std::vector<std::uint16_t> left(9, a), right(9, b), out(9);
    sumFunctionOf(dtype)(out.data(), left.data(), right.data(), out.size());
    for (const std::uint16_t value : out) EXPECT_TRUE(value == out[0] || (std::isnan(valueOf(dtype, value)) && std::isnan(valueOf(dtype, out[0]))));
    return out[0];
}

TEST(ElementSum, OfAnySixteenBitFloatAndZeroIsItself) {
    for (const DType dtype : {DType::Fp16, DType::Bf16})
        for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
            const std::uint16_t sum = sumOf(dtype, static_cast<std::uint16_t>(bits), 0);
            const double value = valueOf(dtype, static_cast<std::uint16_t>(bits));
            if (std::isnan(value)) EXPECT_TRUE(std::isnan(valueOf(dtype, sum))) << bits;
            else EXPECT_EQ(valueOf(dtype, sum), value) << nameOf(dtype) << " " << bits;
        }
}

TEST(ElementSum, OfSixteenBitFloatsIsTheNearestAndEvenOnTies) {
    for (const DType dtype : {DType::Fp16, DType::Bf16}) {
        std::uint32_t state = 12345;
        for (int i = 0; i < 20'000; ++i) {
            state = state * 1664525U + 1013904223U;
            const auto a = static_cast<std::uint16_t>(state >> 16), b = static_cast<std::uint16_t>(state * 2654435761U >> 16);
            const double exact = valueOf(dtype, a) + valueOf(dtype, b);
            const std::uint16_t sum = sumOf(dtype, a, b);
            if (std::isnan(exact)) {
                EXPECT_TRUE(std::isnan(valueOf(dtype, sum)));
                continue;
            }
            if (!std::isfinite(valueOf(dtype, sum)) || !std::isfinite(exact)) continue;
            // Sums are rounded to fp32 on the way, which can hide on which side of a tie they lay: by that much a neighbour may be nearer.
            const double error = std::abs(valueOf(dtype, sum) - exact);
            for (const int neighbour : {-1, 1}) {
                const double other = valueOf(dtype, static_cast<std::uint16_t>(sum + neighbour));
                if (!std::isfinite(other)) continue;
                EXPECT_LE(error, std::abs(other - exact) * (1 + 1e-6)) << nameOf(dtype) << " " << a << " + " << b;
            }
        }
    }
    // 1 + 2^-11 lies between 1 and 1 + 2^-10 in fp16: even is 1. (1 + 2^-10) + 2^-11: even is 1 + 2^-9.
    EXPECT_EQ(sumOf(DType::Fp16, 0x3c00, 0x1000), 0x3c00);
    EXPECT_EQ(sumOf(DType::Fp16, 0x3c01, 0x1000), 0x3c02);
    // The same in bf16 with 2^-8 and steps of 2^-7.
    EXPECT_EQ(sumOf(DType::Bf16, 0x3f80, 0x3b80), 0x3f80);
    EXPECT_EQ(sumOf(DType::Bf16, 0x3f81, 0x3b80), 0x3f82);
    EXPECT_EQ(sumOf(DType::Fp16, 0x7bff, 0x7bff), 0x7c00) << "65504 twice is beyond fp16";
}

TEST(ElementSum, OfIntegersWrapsAround) {
    const std::int64_t largest = std::numeric_limits<std::int64_t>::max(), one = 1;
    std::int64_t sum = 0;
    sumFunctionOf(DType::Int64)(&sum, &largest, &one, 1);
    EXPECT_EQ(sum, std::numeric_limits<std::int64_t>::min());
}

TEST(ElementSum, IsDividedForAnAverage) {
    std::vector<double> doubles = {3, -9};
    divideBy(3, doubles.data(), doubles.size(), DType::Fp64);
    EXPECT_DOUBLE_EQ(doubles[0], 1);
    EXPECT_DOUBLE_EQ(doubles[1], -3);
    std::vector<std::int32_t> integers = {7, -7};
    divideBy(2, integers.data(), integers.size(), DType::Int32);
    EXPECT_EQ(integers, (std::vector<std::int32_t>{3, -3}));
    std::vector<std::uint16_t> halves = {0x4200, 0x4040};  // 3 in fp16, 3 in bf16
    divideBy(2, halves.data(), 1, DType::Fp16);
    divideBy(2, halves.data() + 1, 1, DType::Bf16);
    EXPECT_EQ(valueOf(DType::Fp16, halves[0]), 1.5);
    EXPECT_EQ(valueOf(DType::Bf16, halves[1]), 1.5);
}

TEST(ElementSum, IsNotDefinedForFp8AndBool) {
    EXPECT_FALSE(canSum(DType::Fp8));
    EXPECT_FALSE(canSum(DType::Bool));
    EXPECT_TRUE(canSum(DType::Bf16));
}

}  // namespace
}  // namespace ringside
