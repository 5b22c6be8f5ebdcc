// The layers that a transformer is made of: embedding, block, head; each whole, or the part of it that one rank computes.
// transformer_attention.cpp and transformer_mlp.cpp hold the halves of a block, transformer_block.cpp the block and the module of multi-token prediction,
// transformer_ends.cpp embeddings and heads, transformer_parts.cpp what all use.
#pragma once

#include <string_view>

#include "model/workload/expert_ops.h"
#include "model/workload/family_names.h"
#include "model/workload/layer_builder.h"
#include "model/workload/model_shard.h"

namespace ringside {

/// What every layer of one model has in common.
struct TransformerContext {
    const TransformerSpec& spec;
    const TrainingConfig& training;
    const ModelShard& shard;
    const FamilyNames& names;
    std::int64_t samples;
    std::int64_t sequence;  ///< tokens per sample, whole

    bool conv1d() const { return spec.family == TransformerFamily::Gpt2 || spec.family == TransformerFamily::Gpt3; }
    bool postNorm() const { return spec.family == TransformerFamily::Bert; }
    bool residualDropout() const { return training.dropout && spec.residualDropout; }

    std::int64_t length() const { return sequence / shard.cp; }  ///< tokens per sample that this rank attends from
    /// Tokens per sample in the residual stream, norms and dropout.
    std::int64_t streamLength() const { return shard.splitsSequence() ? length() / shard.tp : length(); }
    std::int64_t heads() const { return spec.heads / shard.tp; }
    std::int64_t kvHeads() const { return keyValueHeadsPerRank(spec.kvHeads, shard.tp); }
    std::int64_t ffn() const { return spec.ffn / shard.tp; }
    std::int64_t expertFfn() const { return spec.expertWidth() / shard.expertTp(); }
    std::int64_t sharedFfn() const { return spec.sharedExperts * spec.expertWidth() / shard.tp; }
    /// Rows of the vocabulary that this rank holds: the table is padded to a multiple of tp, Megatron's to one of 128·tp.
    std::int64_t vocab() const {
        const std::int64_t unit = shard.tp > 1 && shard.style == TensorStyle::Megatron ? 128 : 1;
        return (spec.vocab + unit * shard.tp - 1) / (unit * shard.tp) * unit;
    }
};

/// How a linear layer's weight is cut over the tensor axis: not, by outputs, or by inputs (its bias then stays whole).
enum class Split : std::uint8_t { None, Column, Row };

OpKind kindOf(Activation activation);

/// Registers a norm over `features`. It works on the residual stream, so with sequence parallelism each rank has part of its gradient.
WeightBias normModule(LayerBuilder& layer, const TransformerContext& in, std::string_view name, std::int64_t features);

/// Registers a linear layer; `from` and `to` are this rank's.
WeightBias linearModule(LayerBuilder& layer, const TransformerContext& in, std::string_view name, std::int64_t from, std::int64_t to, bool bias,
                        Split split);

/// Parameters that are whole on every rank but see only its tokens (or heads): each rank has part of their gradient.
void markPartial(LayerBuilder& layer, WeightBias parameters);
void markSharded(LayerBuilder& layer, int parameter);

/// A value as the linear layers of a tensor-parallel region read it.
struct Entered {
    int value = 0;
    bool gathered = false;  ///< LinearOptions::inputGathered
};
/// Entry of a tensor-parallel region: a copy whose gradient is all-reduced, or with sequence parallelism a gather. `x` itself where tp is 1.
Entered enterTensorRegion(LayerBuilder& layer, const TransformerContext& in, std::string_view name, int x);
/// Exit: all-reduce, or with sequence parallelism reduce-scatter, of partial sums.
int leaveTensorRegion(LayerBuilder& layer, const TransformerContext& in, std::string_view name, int x);

struct AttentionParameters {
    WeightBias qkv, q, k, v, qNorm, kNorm, out;
    WeightBias queryDown, keyValueDown, keyValueUp;  ///< latent attention; its q is the projection up (or the only one), its norms those between
};
AttentionParameters registerAttention(LayerBuilder& layer, const TransformerContext& in);
int selfAttention(LayerBuilder& layer, const TransformerContext& in, int x, const AttentionParameters& parameters);

struct MlpParameters {
    WeightBias gate, up, down;
};
struct FeedForwardParameters {
    MlpParameters dense;  ///< the shared experts', where there are experts
    ExpertParameters experts;
};
/// `experts`: the block's MLP is a mixture of experts.
FeedForwardParameters registerFeedForward(LayerBuilder& layer, const TransformerContext& in, bool experts);
int feedForward(LayerBuilder& layer, const TransformerContext& in, int x, const FeedForwardParameters& parameters, bool experts);

LayerType buildBlock(const TransformerContext& in, bool experts);
/// Module `index` of multi-token prediction: from the states of the module before it (or of the last block) and the embedding of the next token
/// to states that predict one token further. Its output holds all states so far, one batch after the other, which the head reads as one. `table`
/// becomes the index of its use of the embedding table.
LayerType buildPredictionModule(const TransformerContext& in, std::int64_t index, int& table);
LayerType buildTokenEmbedding(const TransformerContext& in);
LayerType buildPatchEmbedding(const TransformerContext& in);
/// `tied` becomes the index of the head's use of the embedding table, if it has one.
LayerType buildLanguageHead(const TransformerContext& in, int& tied);
LayerType buildBertHead(const TransformerContext& in, int& tied);
LayerType buildImageHead(const TransformerContext& in);

}  // namespace ringside
