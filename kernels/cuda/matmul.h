// Matrix products by cuBLASLt: row-major, strided batches, an optional bias per column.
#pragma once

#include <compare>
#include <cstdint>

#include "kernels/cuda/module_state.h"

namespace ringside::cuda {

/// C[m, n] = alpha·op(A)·op(B) + bias + beta·C for each of `batch`. Leading dimensions and strides are in elements; a stride of
/// zero uses the same matrix for the whole batch. Sums are in fp32; fp32 operands are multiplied as such, never as TF32, unless
/// `input` says Tf32.
struct GemmShape {
    DType input = DType::Fp32, output = DType::Fp32;
    std::int64_t m = 0, n = 0, k = 0, batch = 1;
    bool transA = false, transB = false, bias = false;
    std::int64_t lda = 0, ldb = 0, ldc = 0;
    std::int64_t strideA = 0, strideB = 0, strideC = 0;

    auto operator<=>(const GemmShape&) const = default;
};
struct GemmOperands {
    const void *a = nullptr, *b = nullptr, *bias = nullptr;
    void* c = nullptr;
    float alpha = 1, beta = 0;
};
/// `workspace` is scratch memory of kGemmWorkspace bytes that nothing else on the stream holds.
constexpr std::size_t kGemmWorkspace = std::size_t{32} << 20;
Result<void> gemm(RingsideCudaDevice& device, cudaStream_t stream, const GemmShape& shape, const GemmOperands& operands, void* workspace);

/// KernelOp::Matmul.
Result<void> runMatmul(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel);

}  // namespace ringside::cuda
