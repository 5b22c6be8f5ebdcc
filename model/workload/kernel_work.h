// KernelWork: what one device kernel does, without saying how long it takes: the cost model answers that.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/base/dtype.h"

namespace ringside {

enum class KernelClass : std::uint8_t {
    Gemm,               ///< shape: batch × (m × k)·(k × n)
    Convolution,        ///< shape: as an implicit GEMM
    AttentionForward,   ///< fused; shape: batch = samples·heads, m = queries, n = keys, k = head size
    AttentionBackward,  ///< likewise
    Memory,             ///< bound by bytes: elementwise, norm, softmax, embedding, copy, cast, reduction, optimizer
};

/// Problem size of a matrix product (or of what is priced as one).
struct GemmShape {
    std::int64_t batch = 1, m = 0, n = 0, k = 0;
    bool columnsOfA = false;  ///< the left operand is stored k × m, as in weight gradients: m is contiguous there, not k
    bool operator==(const GemmShape&) const = default;
};

/// `flops` counts a multiply-add as two; `bytes` is what must cross the device memory's pins at the least (each operand
/// read once, each result written once). Memory kernels count no FLOPs. Attention counts the full score matrix also when
/// `causal`: what skipping saves is for the cost model to say. `name` points to static storage.
struct KernelWork {
    KernelClass cls = KernelClass::Memory;
    DType math = DType::Fp32;
    double flops = 0;
    double bytes = 0;
    GemmShape shape;
    bool causal = false;  ///< attention: half of the score matrix is masked and skipped
    int flash = 2;        ///< attention: the generation of FlashAttention
    std::int64_t valueHead = 0;  ///< attention: head size of values where it is not that of queries and keys (shape.k); 0: it is
    std::string_view name;
    double elements = 0;         ///< memory kernels that go element by element (a batch norm): how many; 0: they move wide words
    bool scattered = false;      ///< memory kernels that read or write rows where an index says (tokens on their way to experts)
    double transposedBytes = 0;  ///< convolutions: images that lie in NCHW where tensor cores want NHWC; the kernel's call transposes them
    bool winograd = false;       ///< convolutions: three by three, stride one, not grouped: fp32 can take the Winograd form
    double accumulatedBytes = 0;  ///< matrix products that add to what stands in the result's place: what is moved beyond writing it
    int beside = 1;      ///< matrix products: pieces of one (alike, cut along m) of which so many run at a time, on streams of their own
    int launches = 1;    ///< that the host issues for it one after another, each for a part of it (the products of experts)
    double divisor = 0;  ///< of a kernel that divides gradients: by what; 0: by the ranks that average them

    bool operator==(const KernelWork&) const = default;
};

}  // namespace ringside
