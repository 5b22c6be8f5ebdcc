// Convolutions by cuDNN: forward, and the gradients of input and weights. NCHW, fp32 sums; fp32 operands are never rounded to TF32.
#pragma once

#include "kernels/cuda/module_state.h"

namespace ringside::cuda {

/// KernelOp::Convolution, ConvolutionInputGradient, ConvolutionWeightGradient.
Result<void> runConvolution(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel);

}  // namespace ringside::cuda
