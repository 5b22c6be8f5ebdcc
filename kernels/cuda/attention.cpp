#include "kernels/cuda/attention.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

namespace ringside::cuda {

namespace {

constexpr std::int64_t kScoresLimit = std::int64_t{128} << 20;  // elements of a block's scores

/// The dims of both ops, and byte addresses of rows: the token-major tensors have their heads side by side in a token.
struct Shape {
    std::int64_t b, s, heads, kvHeads, d, group;
    bool causal;
    std::int64_t qStride, kvStride, outStride, dqStride, dkvStride;
    DType dtype;
    float scale;

    explicit Shape(const RingsideKernel& kernel)
        : b(kernel.dims[0]), s(kernel.dims[1]), heads(kernel.dims[2]), kvHeads(kernel.dims[3]), d(kernel.dims[4]), group(heads / kvHeads),
          causal(kernel.dims[5] != 0), qStride(kernel.dims[6]), kvStride(kernel.dims[7]), outStride(kernel.dims[8]), dqStride(kernel.dims[9]),
          dkvStride(kernel.dims[10]), dtype(typeOf(kernel)), scale(static_cast<float>(kernel.scalars[0])) {}

    const char* at(const void* base, std::int64_t element) const { return static_cast<const char*>(base) + element * sizeOf(dtype); }
    char* at(void* base, std::int64_t element) const { return static_cast<char*>(base) + element * sizeOf(dtype); }
    std::int64_t queriesPerBlock() const { return std::clamp<std::int64_t>(kScoresLimit / std::max<std::int64_t>(1, heads * s), 1, s); }
};

/// Scratch memory cut into pieces of 256-byte alignment.
class Pieces {
public:
    std::size_t reserve(std::int64_t bytes) {
        const std::size_t offset = size_;
        size_ += (static_cast<std::size_t>(bytes) + 255) / 256 * 256;
        return offset;
    }
    std::size_t size() const { return size_; }

private:
    std::size_t size_ = 0;
};

/// One block of queries [first, first + rows) of sample `sample`, against the keys it can see.
struct Block {
    std::int64_t sample, first, rows, keys;
};

/// A product over the key-value heads as batch, for one of the query heads that share each of them. Heads of a token lie d
/// apart, those of scores rows·keys; query head h belongs to key-value head h / group.
GemmShape perHead(const Shape& s, std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmShape shape;
    shape.input = s.dtype;
    shape.m = m, shape.n = n, shape.k = k;
    shape.batch = s.kvHeads;
    return shape;
}

/// scores[h, rows, keys] (fp32) = scale · left · rightᵀ, where left has a row per query and all heads, right one per key.
Result<void> scores(RingsideCudaDevice& device, cudaStream_t stream, const Shape& s, const Block& block, const void* left, std::int64_t leftStride,
                    const void* right, std::int64_t rightStride, float* result, float alpha, void* workspace) {
    GemmShape shape = perHead(s, block.rows, block.keys, s.d);
    shape.output = DType::Fp32, shape.transB = true;
    shape.lda = leftStride, shape.ldb = rightStride, shape.ldc = block.keys;
    shape.strideA = s.group * s.d, shape.strideB = s.d, shape.strideC = s.group * block.rows * block.keys;
    for (std::int64_t g = 0; g < s.group; ++g)
        TRY_VOID(gemm(device, stream, shape,
                      {s.at(left, (block.sample * s.s + block.first) * leftStride + g * s.d), s.at(right, block.sample * s.s * rightStride), nullptr,
                       result + g * block.rows * block.keys, alpha, 0},
                      workspace));
    return {};
}

/// rows of `result` (dtype) = weights[h, rows, keys] · values, a row per key.
Result<void> weighted(RingsideCudaDevice& device, cudaStream_t stream, const Shape& s, const Block& block, const void* weights, const void* values,
                      std::int64_t valueStride, void* result, std::int64_t resultStride, void* workspace) {
    GemmShape shape = perHead(s, block.rows, s.d, block.keys);
    shape.output = s.dtype;
    shape.lda = block.keys, shape.ldb = valueStride, shape.ldc = resultStride;
    shape.strideA = s.group * block.rows * block.keys, shape.strideB = s.d, shape.strideC = s.group * s.d;
    for (std::int64_t g = 0; g < s.group; ++g)
        TRY_VOID(gemm(device, stream, shape,
                      {s.at(weights, g * block.rows * block.keys), s.at(values, block.sample * s.s * valueStride), nullptr,
                       s.at(result, (block.sample * s.s + block.first) * resultStride + g * s.d), 1, 0},
                      workspace));
    return {};
}

/// sums[keys, kvHeads·d] (fp32) += weights[h, rows, keys]ᵀ · rows, over the query heads of each key-value head.
Result<void> addToKeys(RingsideCudaDevice& device, cudaStream_t stream, const Shape& s, const Block& block, const void* weights, const void* rows,
                       std::int64_t rowStride, float* sums, void* workspace) {
    GemmShape shape = perHead(s, block.keys, s.d, block.rows);
    shape.output = DType::Fp32, shape.transA = true;
    shape.lda = block.keys, shape.ldb = rowStride, shape.ldc = s.kvHeads * s.d;
    shape.strideA = s.group * block.rows * block.keys, shape.strideB = s.group * s.d, shape.strideC = s.d;
    for (std::int64_t g = 0; g < s.group; ++g)
        TRY_VOID(gemm(device, stream, shape,
                      {s.at(weights, g * block.rows * block.keys), s.at(rows, (block.sample * s.s + block.first) * rowStride + g * s.d), nullptr, sums, 1, 1},
                      workspace));
    return {};
}

std::vector<Block> blocksOf(const Shape& s, std::int64_t sample) {
    std::vector<Block> blocks;
    const std::int64_t step = s.queriesPerBlock();
    for (std::int64_t first = 0; first < s.s; first += step) {
        const std::int64_t rows = std::min(step, s.s - first);
        blocks.push_back({sample, first, rows, s.causal ? first + rows : s.s});
    }
    return blocks;
}

Result<void> forward(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel) {
    const Shape s(kernel);
    const std::int64_t blockScores = s.heads * s.queriesPerBlock() * s.s;
    Pieces pieces;
    const std::size_t gemmAt = pieces.reserve(static_cast<std::int64_t>(kGemmWorkspace)), scoresAt = pieces.reserve(blockScores * 4),
                      weightsAt = pieces.reserve(blockScores * sizeOf(s.dtype));
    TRY(void* memory, scratchFor(device, stream, pieces.size()));
    char* const base = static_cast<char*>(memory);
    auto* const raw = reinterpret_cast<float*>(base + scoresAt);
    auto* const logSums = static_cast<float*>(kernel.out[1]);
    for (std::int64_t sample = 0; sample < s.b; ++sample)
        for (const Block& block : blocksOf(s, sample)) {
            TRY_VOID(scores(device, stream, s, block, kernel.in[0], s.qStride, kernel.in[1], s.kvStride, raw, s.scale, base + gemmAt));
            RINGSIDE_CALL(launchAttentionWeights, stream, s.dtype, raw, base + weightsAt, logSums + sample * s.heads * s.s,
                          AttentionBlock{s.heads, s.s, block.first, block.rows, block.keys, s.causal});
            TRY_VOID(weighted(device, stream, s, block, base + weightsAt, kernel.in[2], s.kvStride, kernel.out[0], s.outStride, base + gemmAt));
        }
    return {};
}

Result<void> backward(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel) {
    const Shape s(kernel);
    const std::int64_t blockScores = s.heads * s.queriesPerBlock() * s.s, sums = s.s * s.kvHeads * s.d;
    Pieces pieces;
    const std::size_t gemmAt = pieces.reserve(static_cast<std::int64_t>(kGemmWorkspace)), scoresAt = pieces.reserve(blockScores * 4),
                      gradientAt = pieces.reserve(blockScores * 4), weightsAt = pieces.reserve(blockScores * sizeOf(s.dtype)),
                      scoreGradientAt = pieces.reserve(blockScores * sizeOf(s.dtype)), keysAt = pieces.reserve(sums * 4), valuesAt = pieces.reserve(sums * 4);
    TRY(void* memory, scratchFor(device, stream, pieces.size()));
    char* const base = static_cast<char*>(memory);
    auto* const raw = reinterpret_cast<float*>(base + scoresAt);
    auto* const gradient = reinterpret_cast<float*>(base + gradientAt);
    auto* const keySums = reinterpret_cast<float*>(base + keysAt);
    auto* const valueSums = reinterpret_cast<float*>(base + valuesAt);
    const void *dout = kernel.in[0], *q = kernel.in[1], *k = kernel.in[2], *v = kernel.in[3];
    const auto* const logSums = static_cast<const float*>(kernel.in[5]);
    for (std::int64_t sample = 0; sample < s.b; ++sample) {
        RINGSIDE_CALL(cudaMemsetAsync, keySums, 0, static_cast<std::size_t>(sums) * 4, stream);
        RINGSIDE_CALL(cudaMemsetAsync, valueSums, 0, static_cast<std::size_t>(sums) * 4, stream);
        for (const Block& block : blocksOf(s, sample)) {
            TRY_VOID(scores(device, stream, s, block, q, s.qStride, k, s.kvStride, raw, s.scale, base + gemmAt));
            TRY_VOID(scores(device, stream, s, block, dout, s.outStride, v, s.kvStride, gradient, 1, base + gemmAt));
            RINGSIDE_CALL(launchAttentionScoreGradient, stream, s.dtype, raw, gradient, logSums + sample * s.heads * s.s, base + weightsAt,
                          base + scoreGradientAt, s.scale, AttentionBlock{s.heads, s.s, block.first, block.rows, block.keys, s.causal});
            TRY_VOID(addToKeys(device, stream, s, block, base + weightsAt, dout, s.outStride, valueSums, base + gemmAt));
            TRY_VOID(addToKeys(device, stream, s, block, base + scoreGradientAt, q, s.qStride, keySums, base + gemmAt));
            TRY_VOID(weighted(device, stream, s, block, base + scoreGradientAt, k, s.kvStride, kernel.out[0], s.dqStride, base + gemmAt));
        }
        const std::int64_t at = sample * s.s * s.dkvStride;
        RINGSIDE_CALL(launchStoreRows, stream, s.dtype, keySums, s.at(kernel.out[1], at), s.s, s.kvHeads * s.d, s.dkvStride);
        RINGSIDE_CALL(launchStoreRows, stream, s.dtype, valueSums, s.at(kernel.out[2], at), s.s, s.kvHeads * s.d, s.dkvStride);
    }
    return {};
}

}  // namespace

Result<void> runAttention(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel) {
    return opOf(kernel) == KernelOp::Attention ? forward(device, stream, kernel) : backward(device, stream, kernel);
}

}  // namespace ringside::cuda
