// BoundCall: a kernel whose operands are named by the Schedule's buffers instead of addresses. A buffer's address is known only
// once it is allocated; then the operands are filled in and the call can run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/kernel_call.h"
#include "sim/schedule/task.h"

namespace ringside {

/// A place in memory. Scratch is what lives only between two kernels of one op: PyTorch allocates it, the Schedule does not list it.
struct Operand {
    enum class Kind : std::uint8_t { None, Buffer, Scratch } kind = Kind::None;
    std::uint32_t index = 0;  ///< buffer, or scratch slot
    Bytes offset = 0;

    bool operator==(const Operand&) const = default;
};

inline Operand inBuffer(BufferId buffer, Bytes offset = 0) { return {Operand::Kind::Buffer, buffer, offset}; }
inline Operand inScratch(std::uint32_t slot, Bytes offset = 0) { return {Operand::Kind::Scratch, slot, offset}; }

/// Scalars that change from step to step, filled in with the addresses.
enum class StepScalar : std::uint8_t {
    None,
    AdamDenominator,  ///< scalars[0] becomes 1 / √(1 − β2ᵗ); scalars[1] is β2
    AdamStep,         ///< scalars[0] becomes −lr / (1 − β1ᵗ); scalars[1] is lr, scalars[2] β1
    StepNumber,       ///< dims[1] becomes t, counted from 1
};

struct BoundCall {
    KernelCall call;  ///< without addresses
    std::array<Operand, 6> in{};
    std::array<Operand, 4> out{};
    StepScalar stepScalar = StepScalar::None;
};

/// Fills in what depends on the step (counted from 0).
void fillStepScalars(BoundCall& bound, std::int64_t step);

/// Bytes that each scratch slot must have.
constexpr std::uint32_t kSumScratch = 3;     ///< what "gradient add" adds
constexpr std::uint32_t kUpdateScratch = 4;  ///< of the optimizer's passes
constexpr std::uint32_t kMessageScratch = 5; ///< of collectives that carry nothing the executor needs
constexpr std::uint32_t kPushScratch = 6;    ///< tensors put in one line for an all-to-all
constexpr std::uint32_t kPullScratch = 7;    ///< likewise for an all-gather: both may be under way at once
constexpr std::uint32_t kLabelScratch = 8;   ///< labels of the other ranks' samples, where one rank has the loss of all
using ScratchSizes = std::array<Bytes, 9>;

}  // namespace ringside
