// Context-parallel attention: the sequence is split over ranks, and attention needs all of it. Ring attention passes keys and
// values round; Ulysses swaps a part of the sequence for a part of the heads. Formulas: docs/models/model-shards.md.
#pragma once

#include "model/workload/attention_ops.h"
#include "model/workload/model_shard.h"

namespace ringside {

/// Ring attention over the context axis; `shape` is that of this rank (length = s/cp). Returns the context [b, s/cp, heads·headDim].
/// REQUIRES: shard.cp > 1; for a balanced causal ring an even length.
int ringAttention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, const ModelShard& shard, AttentionKernel attentionKernel);

/// All-to-alls round attention over the whole sequence with heads/cp; shapes as above. REQUIRES: heads divide by cp; key/value heads
/// divide by cp or cp by them (then a head is sent to several ranks).
int ulyssesAttention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, const ModelShard& shard, AttentionKernel kernel,
                     bool dropout);

}  // namespace ringside
