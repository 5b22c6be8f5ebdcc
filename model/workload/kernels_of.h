// Kernel works by what a kernel does: a matrix product, or moving bytes. FLOPs and bytes are those of docs/models/workloads.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/base/dtype.h"
#include "model/workload/kernel_work.h"

namespace ringside {

/// batch × (m × k)·(k × n): 2·batch·m·n·k FLOPs; both operands read and the product written once, all of `element`.
KernelWork gemmWork(std::string_view name, const GemmShape& shape, DType math, DType element);

/// A convolution as an implicit GEMM. `bytes` is given, because the unfolded input is larger than the real one.
KernelWork convolutionWork(std::string_view name, const GemmShape& shape, DType math, double bytes);

/// A kernel bound by memory.
KernelWork memoryWork(std::string_view name, double bytes);

}  // namespace ringside
