// Attention ops: the fused kernel (no s² tensor) and the plain one (scores, softmax, values), and rotary positions.
// Formulas: docs/models/workloads.md.
#pragma once

#include "model/workload/layer_builder.h"

namespace ringside {

struct AttentionShape {
    std::int64_t samples = 1, length = 1;  ///< queries = keys = length
    std::int64_t heads = 1, kvHeads = 1, headDim = 1;
    bool causal = true;
    bool eightBits = false;     ///< the fused kernel multiplies in fp8
    std::int64_t valueDim = 0;  ///< of a value head; 0: as headDim, which is that of queries and keys

    std::int64_t valueHead() const { return valueDim > 0 ? valueDim : headDim; }
    std::int64_t queryFeatures() const { return heads * headDim; }
    std::int64_t keyFeatures() const { return kvHeads * headDim; }
    std::int64_t valueFeatures() const { return kvHeads * valueHead(); }
    std::int64_t contextFeatures() const { return heads * valueHead(); }
};

/// Queries, keys and values: three values, or one that holds all three (then k and v are -1).
struct QueryKeyValue {
    int q = -1, k = -1, v = -1;
    bool fused() const { return k < 0; }
};

/// Grouped queries: a copy of each key and value head per query head that reads it (torchtune, Hugging Face's sdpa before it let the kernel do it).
/// Nothing to do where there are as many, or where they come in one tensor.
QueryKeyValue repeatKeysAndValues(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv);

/// Rotary positions on queries and keys.
QueryKeyValue rotary(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv);

/// Latent attention: queries, keys and values of all heads from q, the joint projection of keys and values [b, s, heads·(headDim − ropeDim + valueDim)]
/// and the key of `ropeDim` features that all heads share, with rotary positions on the last `ropeDim` features of each head.
QueryKeyValue latentHeads(LayerBuilder& layer, const AttentionShape& shape, int q, int keysValues, int sharedKey);

/// One fused attention kernel over `queries` × `keys` of all of the shape's samples and heads, forward or backward, without its bytes. Backward
/// recomputes the scores: five matrix products against two, so 2.5 times the FLOPs where heads are alike (Dao, FlashAttention-2).
KernelWork flashWork(const Precision& precision, const AttentionShape& shape, std::int64_t queries, std::int64_t keys, bool causal, bool backward);

/// Returns the context [b, s, heads·valueHead]. `dropout`: drop attention probabilities.
int attention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, AttentionKernel kernel, bool dropout);

}  // namespace ringside
