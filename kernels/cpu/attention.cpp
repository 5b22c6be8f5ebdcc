// Attention by blocks of queries: the scores of a block against all its keys stay in the second cache, products go to gemm.
// Forward keeps log Σ exp of each row; backward makes the probabilities again from it (as FlashAttention does), so that no score
// matrix is ever stored.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/openmp_threads.h"

namespace ringside::cpu {

namespace {

constexpr std::int64_t kQueryBlock = 64;

struct Shape {
    explicit Shape(const KernelCall& call)
        : b(call.dims[0]), s(call.dims[1]), heads(call.dims[2]), kvHeads(call.dims[3]), d(call.dims[4]), causal(call.dims[5] != 0), qStride(call.dims[6]),
          kvStride(call.dims[7]), outStride(call.dims[8]), scale(scalar(call, 0)) {}

    std::int64_t group() const { return heads / kvHeads; }
    std::int64_t qOffset(std::int64_t sample, std::int64_t head, std::int64_t stride) const { return sample * s * stride + head * d; }
    /// Keys that a block ending before query `end` sees.
    std::int64_t keysOf(std::int64_t end) const { return causal ? end : s; }

    std::int64_t b, s, heads, kvHeads, d;
    bool causal;
    std::int64_t qStride, kvStride, outStride;
    float scale;
};

Result<void> checkStride(const KernelCall& call, const char* name, std::int64_t stride, std::int64_t least) {
    if (stride < least) return badCall(call, fmt::format("{} is {}; expected at least heads·d, {}", name, stride, least));
    return {};
}

Result<void> checkShape(const KernelCall& call, const Shape& shape) {
    if (shape.heads % shape.kvHeads != 0) return badCall(call, fmt::format("heads is {}; expected a multiple of kvHeads, {}", shape.heads, shape.kvHeads));
    TRY_VOID(checkStride(call, "qStride", shape.qStride, shape.heads * shape.d));
    TRY_VOID(checkStride(call, "kvStride", shape.kvStride, shape.kvHeads * shape.d));
    return checkStride(call, "outStride", shape.outStride, shape.heads * shape.d);
}

/// One query head of one sample.
void forwardHead(const VectorLoops& loops, Scratch& scratch, const Shape& shape, const float* q, const float* k, const float* v, float* out, float* logSumExp) {
    float* scores = scratch.get<float>(0, std::min(kQueryBlock, shape.s) * shape.s);
    for (std::int64_t first = 0; first < shape.s; first += kQueryBlock) {
        const std::int64_t last = std::min(shape.s, first + kQueryBlock), rows = last - first, keys = shape.keysOf(last);
        gemm(false, true, rows, keys, shape.d, 1.0F, q + first * shape.qStride, shape.qStride, k, shape.kvStride, 0.0F, scores, keys);
        for (std::int64_t r = 0; r < rows; ++r) {
            float* row = scores + r * keys;
            const std::int64_t seen = shape.keysOf(first + r + 1);
            float maximum = 0;
            const float sum = loops.attentionRow(row, seen, shape.scale, maximum);
            std::fill(row + seen, row + keys, 0.0F);
            logSumExp[first + r] = maximum + std::log(sum);
            loops.scale(row, row, seen, 1.0F / sum);
        }
        gemm(false, false, rows, shape.d, keys, 1.0F, scores, keys, v, shape.kvStride, 0.0F, out + first * shape.outStride, shape.outStride);
    }
}

struct HeadGradient {
    const float *dout, *q, *k, *v, *out, *logSumExp;
    float *dq, *dk, *dv;
    std::int64_t dqStride, dkvStride;
    bool firstOfGroup;  ///< dk and dv are set, not added to
};

void backwardHead(const VectorLoops& loops, Scratch& scratch, const Shape& shape, const HeadGradient& g) {
    const std::int64_t size = std::min(kQueryBlock, shape.s) * shape.s;
    float *p = scratch.get<float>(0, size), *ds = scratch.get<float>(1, size);
    // From the last block to the first: under a causal mask the last one sees all keys, so it sets what the others add to.
    for (std::int64_t block = (shape.s - 1) / kQueryBlock; block >= 0; --block) {
        const std::int64_t first = block * kQueryBlock, last = std::min(shape.s, first + kQueryBlock), rows = last - first, keys = shape.keysOf(last);
        const float* dout = g.dout + first * shape.outStride;
        const float* q = g.q + first * shape.qStride;
        const float beta = g.firstOfGroup && last == shape.s ? 0.0F : 1.0F;
        gemm(false, true, rows, keys, shape.d, 1.0F, q, shape.qStride, g.k, shape.kvStride, 0.0F, p, keys);
        gemm(false, true, rows, keys, shape.d, 1.0F, dout, shape.outStride, g.v, shape.kvStride, 0.0F, ds, keys);
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t seen = shape.keysOf(first + r + 1);
            const float delta = loops.dot(dout + r * shape.outStride, g.out + (first + r) * shape.outStride, shape.d);
            loops.attentionRowGradient(p + r * keys, ds + r * keys, seen, shape.scale, g.logSumExp[first + r], delta);
            std::fill(p + r * keys + seen, p + (r + 1) * keys, 0.0F);
            std::fill(ds + r * keys + seen, ds + (r + 1) * keys, 0.0F);
        }
        gemm(true, false, keys, shape.d, rows, 1.0F, p, keys, dout, shape.outStride, beta, g.dv, g.dkvStride);
        gemm(true, false, keys, shape.d, rows, 1.0F, ds, keys, q, shape.qStride, beta, g.dk, g.dkvStride);
        gemm(false, false, rows, shape.d, keys, 1.0F, ds, keys, g.k, shape.kvStride, 0.0F, g.dq + first * g.dqStride, g.dqStride);
    }
}

}  // namespace

Result<void> attention(KernelThread& thread, const KernelCall& call) {
    const Shape shape(call);
    TRY_VOID(checkShape(call, shape));
    const float *q = input<float>(call, 0), *k = input<float>(call, 1), *v = input<float>(call, 2);
    float *out = output<float>(call, 0), *logSumExp = output<float>(call, 1);
    const OneOpenMpThread one(thread.team.threads());
    thread.team.parallelFor(shape.s == 0 ? 0 : shape.b * shape.heads, 1, [&](const TeamShare& share) {
        for (std::int64_t i = share.begin; i < share.end; ++i) {
            const std::int64_t sample = i / shape.heads, head = i % shape.heads;
            const std::int64_t kv = shape.qOffset(sample, head / shape.group(), shape.kvStride);
            forwardHead(thread.loops, thread.scratch(share.member), shape, q + shape.qOffset(sample, head, shape.qStride), k + kv, v + kv,
                        out + shape.qOffset(sample, head, shape.outStride), logSumExp + i * shape.s);
        }
    });
    return {};
}

Result<void> attentionGradient(KernelThread& thread, const KernelCall& call) {
    const Shape shape(call);
    TRY_VOID(checkShape(call, shape));
    const std::int64_t dqStride = call.dims[9], dkvStride = call.dims[10];
    TRY_VOID(checkStride(call, "dqStride", dqStride, shape.heads * shape.d));
    TRY_VOID(checkStride(call, "dkvStride", dkvStride, shape.kvHeads * shape.d));
    const OneOpenMpThread one(thread.team.threads());
    // By head of keys: those that share one add to the same dk and dv.
    thread.team.parallelFor(shape.s == 0 ? 0 : shape.b * shape.kvHeads, 1, [&](const TeamShare& share) {
        for (std::int64_t i = share.begin; i < share.end; ++i) {
            const std::int64_t sample = i / shape.kvHeads, kvHead = i % shape.kvHeads;
            const std::int64_t kv = shape.qOffset(sample, kvHead, shape.kvStride), dkv = shape.qOffset(sample, kvHead, dkvStride);
            for (std::int64_t member = 0; member < shape.group(); ++member) {
                const std::int64_t head = kvHead * shape.group() + member;
                const std::int64_t out = shape.qOffset(sample, head, shape.outStride);
                backwardHead(thread.loops, thread.scratch(share.member), shape,
                             {.dout = input<float>(call, 0) + out,
                              .q = input<float>(call, 1) + shape.qOffset(sample, head, shape.qStride),
                              .k = input<float>(call, 2) + kv,
                              .v = input<float>(call, 3) + kv,
                              .out = input<float>(call, 4) + out,
                              .logSumExp = input<float>(call, 5) + (sample * shape.heads + head) * shape.s,
                              .dq = output<float>(call, 0) + shape.qOffset(sample, head, dqStride),
                              .dk = output<float>(call, 1) + dkv,
                              .dv = output<float>(call, 2) + dkv,
                              .dqStride = dqStride,
                              .dkvStride = dkvStride,
                              .firstOfGroup = member == 0});
            }
        }
    });
    return {};
}

Result<void> mask(KernelThread& thread, const KernelCall& call) {
    const std::int64_t queries = call.dims[1], keys = call.dims[2];
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    thread.team.parallelFor(call.dims[0] * queries, rowGrain(keys), [&](const TeamShare& s) {
        for (std::int64_t row = s.begin; row < s.end; ++row) {
            const std::int64_t seen = std::min(keys, row % queries + 1);
            if (x != y) std::copy(x + row * keys, x + row * keys + seen, y + row * keys);
            std::fill(y + row * keys + seen, y + (row + 1) * keys, -INFINITY);
        }
    });
    return {};
}

}  // namespace ringside::cpu
