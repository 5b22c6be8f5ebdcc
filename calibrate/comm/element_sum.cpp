#include "calibrate/comm/element_sum.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "model/base/check.h"

namespace ringside {
namespace {

struct Bf16 {
    std::uint16_t bits;
};
struct Fp16 {
    std::uint16_t bits;
};

// Without branches, so that the compiler can take many elements at once.
[[gnu::always_inline]] inline float toFloat(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
[[gnu::always_inline]] inline Bf16 toBf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quietNan = (bits >> 16) | 0x40U;  // rounding could turn a NaN into an infinity
    return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quietNan : rounded)};
}

// The exponent is moved by multiplying with a power of two, which also makes subnormals right.
inline float toFloat(Fp16 value) {
    const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(value.bits & 0x7fffU) << 13;
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112F;
    const bool special = magnitude >= (0x7c00U << 13);  // infinity or NaN
    const std::uint32_t bits = special ? (magnitude | 0x7f800000U) : std::bit_cast<std::uint32_t>(scaled);
    return std::bit_cast<float>(bits | sign);
}
inline Fp16 toFp16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000U) half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);  // a NaN stays that NaN
    else if (magnitude >= 0x477ff000U) half = 0x7c00U;  // 65520 and above round to infinity
    else if (magnitude < 0x38800000U) {
        // A subnormal half counts in units of 2^-24. Added to a number whose last place is worth that, the hardware does the rounding.
        half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    } else {
        half = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    }
    return {static_cast<std::uint16_t>(half | sign)};
}

/// Calls add(a, b) for all elements. Told that arrays are apart, or the same, the compiler takes many elements at once.
template <class T, class Add>
[[gnu::always_inline]] inline void addAll(void* out, const void* a, const void* b, std::size_t elements, const Add& add) {
    T* __restrict sum = static_cast<T*>(out);
    if (out == a || out == b) {
        const T* __restrict other = static_cast<const T*>(out == a ? b : a);
        for (std::size_t i = 0; i < elements; ++i) sum[i] = add(sum[i], other[i]);
    } else {
        const T* __restrict left = static_cast<const T*>(a);
        const T* __restrict right = static_cast<const T*>(b);
        for (std::size_t i = 0; i < elements; ++i) sum[i] = add(left[i], right[i]);
    }
}

template <class T>
void addPlain(void* out, const void* a, const void* b, std::size_t elements) {
    // Integers wrap around: the sum is taken without sign, where that is defined.
    using Work = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
    addAll<Work>(out, a, b, elements, [](Work left, Work right) { return static_cast<Work>(left + right); });
}

[[gnu::always_inline]] inline void bf16Loop(void* out, const void* a, const void* b, std::size_t elements) {
    addAll<Bf16>(out, a, b, elements, [](Bf16 left, Bf16 right) __attribute__((always_inline)) { return toBf16(toFloat(left) + toFloat(right)); });
}
void addBf16(void* out, const void* a, const void* b, std::size_t elements) { bf16Loop(out, a, b, elements); }

void addFp16(void* out, const void* a, const void* b, std::size_t elements) {
    addAll<Fp16>(out, a, b, elements, [](Fp16 left, Fp16 right) { return toFp16(toFloat(left) + toFloat(right)); });
}

#if defined(__x86_64__)
/// The same loop in wider registers.
__attribute__((target("avx2"))) void addBf16WithAvx2(void* out, const void* a, const void* b, std::size_t elements) { bf16Loop(out, a, b, elements); }

/// With the processor's own conversions, eight at a time; whoever has AVX2 has F16C too.
__attribute__((target("avx2,f16c"))) void addFp16WithF16c(void* out, const void* a, const void* b, std::size_t elements) {
    auto* sum = static_cast<std::uint16_t*>(out);
    const auto* left = static_cast<const std::uint16_t*>(a);
    const auto* right = static_cast<const std::uint16_t*>(b);
    std::size_t i = 0;
    for (; i + 8 <= elements; i += 8) {
        const __m256 l = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(left + i)));
        const __m256 r = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(right + i)));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(sum + i), _mm256_cvtps_ph(_mm256_add_ps(l, r), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    addFp16(sum + i, left + i, right + i, elements - i);
}
#endif

SumFunction fp16Sum() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return addFp16WithF16c;
#endif
    return addFp16;
}

SumFunction bf16Sum() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return addBf16WithAvx2;
#endif
    return addBf16;
}

template <class T>
void dividePlain(int divisor, void* data, std::size_t elements) {
    auto* values = static_cast<T*>(data);
    if constexpr (std::is_floating_point_v<T>) {
        // A product, not a quotient: as fast as memory, and what NCCL and PyTorch do.
        const T factor = T(1) / static_cast<T>(divisor);
        for (std::size_t i = 0; i < elements; ++i) values[i] *= factor;
    } else {
        for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<T>(values[i] / divisor);
    }
}

}  // namespace

bool canSum(DType dtype) { return dtype != DType::Fp8 && dtype != DType::Bool; }

SumFunction sumFunctionOf(DType dtype) {
    switch (dtype) {
        case DType::Fp64: return addPlain<double>;
        case DType::Fp32: case DType::Tf32: return addPlain<float>;
        case DType::Fp16: return fp16Sum();
        case DType::Bf16: return bf16Sum();
        case DType::Int8: return addPlain<std::int8_t>;
        case DType::Int32: return addPlain<std::int32_t>;
        case DType::Int64: return addPlain<std::int64_t>;
        case DType::Fp8: case DType::Bool: break;
    }
    CHECK(canSum(dtype));
    return nullptr;
}

void divideBy(int divisor, void* data, std::size_t elements, DType dtype) {
    switch (dtype) {
        case DType::Fp64: return dividePlain<double>(divisor, data, elements);
        case DType::Fp32: case DType::Tf32: return dividePlain<float>(divisor, data, elements);
        case DType::Int8: return dividePlain<std::int8_t>(divisor, data, elements);
        case DType::Int32: return dividePlain<std::int32_t>(divisor, data, elements);
        case DType::Int64: return dividePlain<std::int64_t>(divisor, data, elements);
        case DType::Fp16: {
            auto* values = static_cast<Fp16*>(data);
            for (std::size_t i = 0; i < elements; ++i) values[i] = toFp16(toFloat(values[i]) / static_cast<float>(divisor));
            return;
        }
        case DType::Bf16: {
            auto* values = static_cast<Bf16*>(data);
            for (std::size_t i = 0; i < elements; ++i) values[i] = toBf16(toFloat(values[i]) / static_cast<float>(divisor));
            return;
        }
        case DType::Fp8: case DType::Bool: break;
    }
    CHECK(canSum(dtype));
}

}  // namespace ringside
