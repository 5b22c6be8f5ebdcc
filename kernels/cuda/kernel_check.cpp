// What an op's operands must be together, and which types it takes. That they are there, and no dim is too small by itself, is the
// caller's part (checkOperands() of kernels/kernel_signature.h).
#include <fmt/format.h>

#include "kernels/cuda/kernel_math.h"
#include "kernels/cuda/module_state.h"

namespace ringside::cuda {

namespace {

using enum KernelOp;

/// Which types: fp32, tf32, fp16 and bf16; the same and fp64; any, since only bytes move.
enum class Types { Floats, Castable, Any };
Types typesOf(KernelOp op) {
    switch (op) {
        case Fill: case Copy: case CopyStrided: case Transpose: return Types::Any;
        case Cast: return Types::Castable;
        default: return Types::Floats;
    }
}

constexpr bool isFloat(std::int64_t type) {
    return type == static_cast<std::int64_t>(DType::Fp32) || type == static_cast<std::int64_t>(DType::Tf32) ||
           type == static_cast<std::int64_t>(DType::Fp16) || type == static_cast<std::int64_t>(DType::Bf16);
}
constexpr bool isCastable(std::int64_t type) { return isFloat(type) || type == static_cast<std::int64_t>(DType::Fp64); }

std::string typeText(std::int64_t type) {
    return type >= 0 && type <= static_cast<std::int64_t>(DType::Bool) ? std::string(nameOf(static_cast<DType>(type))) : fmt::format("type {}", type);
}

Result<void> checkTypes(const RingsideKernel& kernel, Types types) {
    if (types == Types::Floats && !isFloat(kernel.dtype))
        return badInput(kernel.name, fmt::format("takes fp32, tf32, fp16 and bf16; found {}", typeText(kernel.dtype)));
    if (types == Types::Castable)
        for (const std::int64_t type : {static_cast<std::int64_t>(kernel.dtype), kernel.dims[1]})
            if (!isCastable(type)) return badInput(kernel.name, fmt::format("takes fp64, fp32, tf32, fp16 and bf16; found {}", typeText(type)));
    if (kernel.dtype > static_cast<std::uint32_t>(DType::Bool)) return badInput(kernel.name, fmt::format("there is no {}", typeText(kernel.dtype)));
    return {};
}

Result<void> least(const RingsideKernel& kernel, const char* name, std::int64_t value, std::int64_t least, const char* why) {
    if (value >= least) return {};
    return badInput(kernel.name, fmt::format("{} is {}; expected at least {} ({})", name, value, least, why));
}

Result<void> headsDivide(const RingsideKernel& kernel, int heads, int kvHeads) {
    if (kernel.dims[heads] % kernel.dims[kvHeads] == 0) return {};
    return badInput(kernel.name, fmt::format("{} query heads cannot share {} key-value heads evenly", kernel.dims[heads], kernel.dims[kvHeads]));
}

/// What a least value per dim cannot say.
Result<void> checkTogether(const RingsideKernel& kernel) {
    const auto& d = kernel.dims;
    switch (opOf(kernel)) {
        case Activation: case ActivationGradient:
            if (d[1] >= 0 && d[1] < math::kActivationKinds) return {};
            return badInput(kernel.name, fmt::format("kind is {}; expected 0 to {}", d[1], math::kActivationKinds - 1));
        case Convolution: case ConvolutionInputGradient: case ConvolutionWeightGradient:
            TRY_VOID(least(kernel, "h", d[2], d[5] - 2 * d[8], "the window must fit"));
            return least(kernel, "w", d[3], d[6] - 2 * d[8], "the window must fit");
        case MaxPool: case MaxPoolGradient:
            TRY_VOID(least(kernel, "h", d[2], d[4] - 2 * d[6], "the window must fit"));
            TRY_VOID(least(kernel, "w", d[3], d[4] - 2 * d[6], "the window must fit"));
            if (2 * d[6] <= d[4]) return {};
            return badInput(kernel.name, fmt::format("padding is {}; expected at most half of the kernel, {}", d[6], d[4] / 2));
        case CopyStrided:
            if (d[0] <= 1) return {};
            TRY_VOID(least(kernel, "xStride", d[2], d[1], "a row"));
            return least(kernel, "yStride", d[3], d[1], "a row");
        case RepeatHeads: case SumRepeatedHeads:
            TRY_VOID(headsDivide(kernel, 3, 2));
            return least(kernel, "xStride", d[5], d[2] * d[4], "kv·d");
        case Rotary:
            if (d[3] % 2 != 0) return badInput(kernel.name, fmt::format("d is {}; expected an even number", d[3]));
            TRY_VOID(least(kernel, "xStride", d[4], d[2] * d[3], "heads·d"));
            return least(kernel, "yStride", d[5], d[2] * d[3], "heads·d");
        case Attention: case AttentionGradient:
            TRY_VOID(headsDivide(kernel, 2, 3));
            TRY_VOID(least(kernel, "qStride", d[6], d[2] * d[4], "heads·d"));
            TRY_VOID(least(kernel, "kvStride", d[7], d[3] * d[4], "kvHeads·d"));
            TRY_VOID(least(kernel, "outStride", d[8], d[2] * d[4], "heads·d"));
            if (opOf(kernel) == Attention) return {};
            TRY_VOID(least(kernel, "dqStride", d[9], d[2] * d[4], "heads·d"));
            return least(kernel, "dkvStride", d[10], d[3] * d[4], "kvHeads·d");
        case Dropout: case DropoutGradient:
            if (kernel.scalars[0] >= 0 && kernel.scalars[0] <= 1) return {};
            return badInput(kernel.name, fmt::format("p is {}; expected 0 to 1", kernel.scalars[0]));
        default: return {};
    }
}

}  // namespace

Result<void> checkKernel(const RingsideKernel& kernel) {
    if (kernel.op >= static_cast<std::uint32_t>(Count)) return badInput("kernel", fmt::format("there is no op {}", kernel.op));
    TRY_VOID(checkTypes(kernel, typesOf(opOf(kernel))));
    return checkTogether(kernel);
}

}  // namespace ringside::cuda
