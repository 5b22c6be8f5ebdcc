// DType: element types of tensors and their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/base/units.h"

namespace ringside {

/// Tf32 is an arithmetic mode of 4-byte elements, listed here because peaks and profiles are kept per arithmetic type.
enum class DType : std::uint8_t { Fp64, Fp32, Tf32, Fp16, Bf16, Fp8, Int8, Int32, Int64, Bool };

constexpr Bytes sizeOf(DType type) {
    switch (type) {
        case DType::Fp64: case DType::Int64: return 8;
        case DType::Fp32: case DType::Tf32: case DType::Int32: return 4;
        case DType::Fp16: case DType::Bf16: return 2;
        case DType::Fp8: case DType::Int8: case DType::Bool: return 1;
    }
    return 0;
}

/// "fp32", "bf16", …: the spelling of scenario files.
constexpr std::string_view nameOf(DType type) {
    switch (type) {
        case DType::Fp64: return "fp64";
        case DType::Fp32: return "fp32";
        case DType::Tf32: return "tf32";
        case DType::Fp16: return "fp16";
        case DType::Bf16: return "bf16";
        case DType::Fp8: return "fp8";
        case DType::Int8: return "int8";
        case DType::Int32: return "int32";
        case DType::Int64: return "int64";
        case DType::Bool: return "bool";
    }
    return "?";
}

}  // namespace ringside
