#include "kernels/kernel_call.h"

#include "kernels/kernel_signature.h"

namespace ringside {

std::string_view nameOf(KernelOp op) { return op < KernelOp::Count ? signatureOf(op).name : "unknown op"; }

}  // namespace ringside
