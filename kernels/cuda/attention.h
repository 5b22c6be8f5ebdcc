// Attention as batched products and softmax: cuBLASLt for the products, own kernels between them.
//
// Queries are taken in blocks, so that the scores of a block stay below a bound instead of growing with the square of the
// sequence. cuDNN's fused attention is not used: it exists only behind the graph interface.
#pragma once

#include "kernels/cuda/module_state.h"

namespace ringside::cuda {

/// KernelOp::Attention and AttentionGradient. The log-sums are fp32 whatever the tensors hold.
Result<void> runAttention(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel);

}  // namespace ringside::cuda
