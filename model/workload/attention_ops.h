// Attention ops: the fused kernel (no s² tensor) and the plain one (scores, softmax, values), and rotary positions.
// Formulas: docs/models/workloads.md.
#pragma once

#include "model/workload/layer_builder.h"

namespace ringside {

struct AttentionShape {
    std::int64_t samples = 1, length = 1;  ///< queries = keys = length
    std::int64_t heads = 1, kvHeads = 1, headDim = 1;
    bool causal = true;
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

/// What backward of the fused kernel costs against forward: it recomputes the scores, five matrix products against two
/// (Dao, FlashAttention-2).
constexpr double kFlashBackwardRatio = 2.5;

/// One fused attention kernel over `batch` = samples·heads problems of queries × keys, forward or backward, without its bytes.
KernelWork flashWork(const Precision& precision, std::int64_t batch, std::int64_t queries, std::int64_t keys, std::int64_t headDim, bool causal,
                     bool backward);

/// Returns the context [b, s, heads·headDim]. `dropout`: drop attention probabilities.
int attention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, AttentionKernel kernel, bool dropout);

}  // namespace ringside
