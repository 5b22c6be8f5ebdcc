// The module's communicators: NCCL behind the C interface, made and driven without blocking.
#pragma once

#include "kernels/cuda/module_abi.h"

namespace ringside::cuda {

/// 22809 for NCCL 2.28.9; 0 where it does not say.
int ncclVersion();

/// Fills in the communicator functions of the table.
void addNccl(RingsideCudaModule& module);

}  // namespace ringside::cuda
