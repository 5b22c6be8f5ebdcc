// KernelSignature: what kernel_call.h says of each op's operands, as data: for names, checks and messages of every device.
#pragma once

#include <string_view>

#include "kernels/kernel_call.h"
#include "model/base/result.h"

namespace ringside {

/// Lists are separated by blanks and stand in the order of the call's arrays. Operands in brackets may be left out. A dimension
/// is at least 0; with "+" at least 1; with "?" it is a flag, a kind or a seed.
struct KernelSignature {
    std::string_view name;     ///< "layer norm input gradient"
    std::string_view in, out;  ///< "x weight [bias]", "y statistics"
    std::string_view dims;     ///< "rows features+"
};
/// REQUIRES: op < KernelOp::Count.
const KernelSignature& signatureOf(KernelOp op);

/// Bad input when the op is unknown, a dimension is out of its range or a required operand is missing; names op and operand
/// ("layer norm: features is 0; expected at least 1"). A call with a dimension of 0 may leave operands out: they are empty.
Result<void> checkOperands(const KernelCall& call);

}  // namespace ringside
