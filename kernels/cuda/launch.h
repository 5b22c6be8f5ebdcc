// The module's own kernels, as functions that enqueue them. REQUIRES: checkKernel() has passed. A CUDA error is the launch's;
// cudaErrorNotSupported means that the op is not of that file, or does not take the type.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/module_abi.h"
#include "model/base/dtype.h"

namespace ringside::cuda {

cudaError_t launchElementwise(const RingsideKernel& kernel, cudaStream_t stream);  ///< elementwise.cu
cudaError_t launchFill(const RingsideKernel& kernel, cudaStream_t stream);         ///< elementwise.cu: any type but fp8
cudaError_t launchCast(const RingsideKernel& kernel, cudaStream_t stream);         ///< elementwise.cu
cudaError_t launchRows(const RingsideKernel& kernel, cudaStream_t stream);         ///< rows.cu: a result per row
cudaError_t launchColumns(const RingsideKernel& kernel, cudaStream_t stream);      ///< columns.cu: sums over rows, channels
cudaError_t launchLayout(const RingsideKernel& kernel, cudaStream_t stream);       ///< layout.cu: where elements go
cudaError_t launchPooling(const RingsideKernel& kernel, cudaStream_t stream);      ///< layout.cu

/// Sums to one number: parts are summed to `partial` first, of kPartials floats, so that the result is the same every time.
constexpr int kPartials = 512;
cudaError_t launchTotal(const RingsideKernel& kernel, cudaStream_t stream, float* partial);  ///< columns.cu

/// A block of attention scores [heads, rows, keys] (fp32) whose first query is `first` of `queries`.
struct AttentionBlock {
    std::int64_t heads, queries, first, rows, keys;
    bool causal;
};
/// weights (dtype) = softmax of the scores; their log-sums go to logSums[heads, queries].
cudaError_t launchAttentionWeights(cudaStream_t stream, DType dtype, const float* scores, void* weights, float* logSums, const AttentionBlock& block);
/// weights (dtype) from scores and log-sums; scoreGradient (dtype) = scale · weights · (gradient − Σ weights · gradient).
cudaError_t launchAttentionScoreGradient(cudaStream_t stream, DType dtype, const float* scores, const float* gradient, const float* logSums,
                                         void* weights, void* scoreGradient, float scale, const AttentionBlock& block);
/// to[rows, columns] (dtype, rows `stride` apart) = from (fp32, dense).
cudaError_t launchStoreRows(cudaStream_t stream, DType dtype, const float* from, void* to, std::int64_t rows, std::int64_t columns, std::int64_t stride);

}  // namespace ringside::cuda
