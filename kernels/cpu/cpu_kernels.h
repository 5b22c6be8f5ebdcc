// The CPU's kernels: one function per op of kernel_call.h, grouped as the files are, and the table that finds them.
#pragma once

#include <string>

#include "kernels/cpu/kernel_thread.h"
#include "kernels/kernel_call.h"
#include "model/base/result.h"

namespace ringside {

/// Checks the call (kernel_signature.h and what the op adds) and runs it on the calling thread and its team.
/// Fails with bad input for an operand, shape or type that the op does not take.
Result<void> runKernel(KernelThread& thread, const KernelCall& call);

/// The body of an op: operands are there, dimensions are in range, the type is one that the op takes.
using KernelBody = Result<void> (*)(KernelThread&, const KernelCall&);

template <class T>
const T* input(const KernelCall& call, int i) { return static_cast<const T*>(call.in[static_cast<std::size_t>(i)]); }
template <class T>
T* output(const KernelCall& call, int i) { return static_cast<T*>(call.out[static_cast<std::size_t>(i)]); }
inline float scalar(const KernelCall& call, int i) { return static_cast<float>(call.scalars[static_cast<std::size_t>(i)]); }
/// Bad input that names the op.
inline tl::unexpected<Error> badCall(const KernelCall& call, std::string message) { return badInput(std::string(nameOf(call.op)), std::move(message)); }

/// Elements below which splitting a loop among threads costs more than it saves.
constexpr std::int64_t kParallelGrain = 16384;
/// The same in rows of n elements.
constexpr std::int64_t rowGrain(std::int64_t n) { return n > 0 ? kParallelGrain / n + 1 : kParallelGrain; }

namespace cpu {

// matmul.cpp
Result<void> matmul(KernelThread& thread, const KernelCall& call);
/// C = alpha·op(A)·op(B) + beta·C in fp32 with leading dimensions, on this thread and oneDNN's. A sum over k = 0 terms is 0.
void gemm(bool transA, bool transB, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc);

// bias.cpp: sums and additions by column and by channel
Result<void> columnSum(KernelThread& thread, const KernelCall& call);
Result<void> addBias(KernelThread& thread, const KernelCall& call);
Result<void> channelSum(KernelThread& thread, const KernelCall& call);
Result<void> addRows(KernelThread& thread, const KernelCall& call);
Result<void> sumOverSamples(KernelThread& thread, const KernelCall& call);

// convolution.cpp
Result<void> convolution(KernelThread& thread, const KernelCall& call);
Result<void> convolutionInputGradient(KernelThread& thread, const KernelCall& call);
Result<void> convolutionWeightGradient(KernelThread& thread, const KernelCall& call);

// norms.cpp
Result<void> layerNorm(KernelThread& thread, const KernelCall& call);
Result<void> layerNormInputGradient(KernelThread& thread, const KernelCall& call);
Result<void> layerNormWeightGradient(KernelThread& thread, const KernelCall& call);
Result<void> rmsNorm(KernelThread& thread, const KernelCall& call);
Result<void> rmsNormInputGradient(KernelThread& thread, const KernelCall& call);
Result<void> rmsNormWeightGradient(KernelThread& thread, const KernelCall& call);
Result<void> batchNorm(KernelThread& thread, const KernelCall& call);
Result<void> batchNormGradient(KernelThread& thread, const KernelCall& call);

// elementwise.cpp
Result<void> activation(KernelThread& thread, const KernelCall& call);
Result<void> activationGradient(KernelThread& thread, const KernelCall& call);
Result<void> add(KernelThread& thread, const KernelCall& call);
Result<void> multiply(KernelThread& thread, const KernelCall& call);
Result<void> axpy(KernelThread& thread, const KernelCall& call);
Result<void> scale(KernelThread& thread, const KernelCall& call);
Result<void> dropout(KernelThread& thread, const KernelCall& call);
Result<void> dropoutGradient(KernelThread& thread, const KernelCall& call);

// optimizers.cpp
Result<void> lerp(KernelThread& thread, const KernelCall& call);
Result<void> multiplyAccumulate(KernelThread& thread, const KernelCall& call);
Result<void> squareRoot(KernelThread& thread, const KernelCall& call);
Result<void> addScalar(KernelThread& thread, const KernelCall& call);
Result<void> divideAccumulate(KernelThread& thread, const KernelCall& call);
Result<void> adamFused(KernelThread& thread, const KernelCall& call);
Result<void> sgdFused(KernelThread& thread, const KernelCall& call);

// data_movement.cpp
Result<void> fill(KernelThread& thread, const KernelCall& call);
Result<void> copy(KernelThread& thread, const KernelCall& call);
Result<void> cast(KernelThread& thread, const KernelCall& call);
Result<void> copyStrided(KernelThread& thread, const KernelCall& call);
Result<void> transpose(KernelThread& thread, const KernelCall& call);
Result<void> repeatHeads(KernelThread& thread, const KernelCall& call);
Result<void> sumRepeatedHeads(KernelThread& thread, const KernelCall& call);

// embedding.cpp
Result<void> embedding(KernelThread& thread, const KernelCall& call);
Result<void> embeddingGradient(KernelThread& thread, const KernelCall& call);
Result<void> rotary(KernelThread& thread, const KernelCall& call);

// attention.cpp
Result<void> attention(KernelThread& thread, const KernelCall& call);
Result<void> attentionGradient(KernelThread& thread, const KernelCall& call);
Result<void> mask(KernelThread& thread, const KernelCall& call);

// softmax_and_losses.cpp
Result<void> softmax(KernelThread& thread, const KernelCall& call);
Result<void> softmaxGradient(KernelThread& thread, const KernelCall& call);
Result<void> logSoftmax(KernelThread& thread, const KernelCall& call);
Result<void> logSoftmaxGradient(KernelThread& thread, const KernelCall& call);
Result<void> nllLoss(KernelThread& thread, const KernelCall& call);
Result<void> nllLossGradient(KernelThread& thread, const KernelCall& call);
Result<void> squaredError(KernelThread& thread, const KernelCall& call);
Result<void> sumOfSquares(KernelThread& thread, const KernelCall& call);

// pooling.cpp
Result<void> maxPool(KernelThread& thread, const KernelCall& call);
Result<void> maxPoolGradient(KernelThread& thread, const KernelCall& call);
Result<void> averagePool(KernelThread& thread, const KernelCall& call);
Result<void> averagePoolGradient(KernelThread& thread, const KernelCall& call);

}  // namespace cpu
}  // namespace ringside
