// ModelShard: which part of a model one rank computes, under tensor, sequence, context and expert parallelism.
// Rules, formulas and worked numbers: docs/models/model-shards.md.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/result.h"
#include "model/training/training_config.h"

namespace ringside {

struct TransformerSpec;

/// Megatron: q, k, v and gate, up are one product each, so a block has two all-reduces forward and two backward; the loss works
/// on split logits. Picotron: every projection has its own backward all-reduce (five), and the logits are gathered whole.
enum class TensorStyle : std::uint8_t { Megatron, Picotron };
/// Ring: keys and values go round. Ulysses: all-to-all turns a part of the sequence into a part of the heads.
enum class ContextKind : std::uint8_t { Ring, Ulysses };

struct ModelShard {
    std::int64_t tp = 1, cp = 1, ep = 1;  ///< ranks of the tensor, context and expert axis
    bool wholeExperts = false;            ///< experts are not cut over the tensor axis: its ranks are further ones of the expert axis (Megatron's expert tensor parallel size of 1)
    bool sendsTokensOnce = false;         ///< a token goes once to each rank that holds any of its experts (DeepEP, HybridEP), not once per expert
    bool launchesEachExpert = false;      ///< the host issues the products of every expert one by one (Transformer Engine's GroupedLinear)
    bool fusesExperts = false;            ///< each of their products is one kernel, which in eight bits also activates and quantises (its op fuser)
    bool readsRouterCounts = false;       ///< it waits for the router first: how many tokens each expert gets decides the sizes of what follows
    bool sequenceParallel = false;        ///< norms, dropout and residual on 1/tp of the tokens; without effect where tp is 1
    bool transformerEngine = false;       ///< its modules: norms before a dense MLP and before attention that is not latent are part of the product after them; q, k, v and gate, up are one product each; products add gradients of weights to the main ones
    bool mainGradientsInFp32 = false;     ///< which are of the parameters' type otherwise
    bool overlapsTensor = false;          ///< collectives of the tensor axis go on beside the products next to them; REQUIRES: sequenceParallel
    TensorStyle style = TensorStyle::Megatron;
    ContextKind context = ContextKind::Ring;
    bool balanced = true;                 ///< causal ring: zig-zag, every rank has the same work; else rank r computes r + 1 of cp blocks
    std::int64_t cpRank = 0;              ///< which rank of the context axis; matters only for a causal ring that is not balanced

    bool isWhole() const { return tp == 1 && cp == 1 && ep == 1; }
    std::int64_t expertTp() const { return wholeExperts ? 1 : tp; }  ///< ranks that an expert is cut over
    /// Experts are not the same on all ranks of the data and the tensor axis.
    bool spreadsExperts() const { return ep > 1 || (wholeExperts && tp > 1); }
    bool splitsSequence() const { return sequenceParallel && tp > 1; }
    /// Megatron's fused projections stand in place of the family's separate ones.
    bool fusesProjections() const { return (tp > 1 || transformerEngine) && style == TensorStyle::Megatron; }
    bool operator==(const ModelShard&) const = default;
};

/// Key/value heads of one of `ranks` ranks: where there are fewer heads than ranks, several ranks hold the same one.
std::int64_t keyValueHeadsPerRank(std::int64_t kvHeads, std::int64_t ranks);

/// Checks that numbers are positive and cpRank is one of the ranks. `name`: the model, for the error.
Result<void> validate(const ModelShard& shard, const std::string& name);

/// Checks that the shard can be cut from this transformer with `length` tokens per sample. REQUIRES: both valid by themselves.
Result<void> validate(const ModelShard& shard, const TransformerSpec& spec, const TrainingConfig& training, std::int64_t length,
                      const std::string& name);

/// For architectures that exist whole only: an error unless the shard is the whole model.
Result<void> requireWhole(const ModelShard& shard, const std::string& name);

}  // namespace ringside
