// ModelSpec: a model's architecture, before batch size, sequence length and precision are known. Read from the
// catalogue or from a Hugging Face config.json (hf_config.h); turned into a Workload by buildWorkload.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/base/result.h"
#include "model/training/training_config.h"
#include "model/workload/model_shard.h"
#include "model/workload/workload.h"

namespace ringside {

/// How a family names and orders its parameters, and which small parts it has.
enum class TransformerFamily : std::uint8_t { Gpt2, Gpt3, Llama, Mixtral, Bert, Vit, Mpt, Opt, GptNeoX, Phi, Gemma2 };
enum class Positions : std::uint8_t { None, Learned, Rotary, Alibi };
enum class Activation : std::uint8_t { Gelu, Relu, Silu };

/// Latent attention (DeepSeek): keys and values of all heads are projected from one vector of `keyValueRank` features per token, and all heads
/// share a key of `ropeDim` features that carries the position; queries go through `queryRank` features, or straight (0).
struct LatentAttention {
    std::int64_t queryRank = 0, keyValueRank = 0, ropeDim = 0, valueDim = 0;

    explicit operator bool() const { return keyValueRank > 0; }
};

/// How the router of a mixture of experts turns its logits into weights: softmax or sigmoid; with `groups`, the best groups of experts are chosen first;
/// with `bias`, a correction that balances the load is added before the choice (state, not trained).
struct RouterSpec {
    bool sigmoid = false, normalize = true, bias = false;
    std::int64_t groups = 0;
};

struct TransformerSpec {
    TransformerFamily family = TransformerFamily::Gpt2;
    std::int64_t layers = 0, hidden = 0, heads = 0, kvHeads = 0, headDim = 0, ffn = 0, vocab = 0;
    std::int64_t contextLength = 0;   ///< rows of a learned position table; default sequence length
    Positions positions = Positions::Learned;
    Activation activation = Activation::Gelu;
    bool gatedMlp = false;
    bool causal = true;               ///< decoder (true) or encoder (false)
    bool rmsNorm = false;             ///< RMSNorm (no bias) or LayerNorm
    bool normBias = true;
    bool tiedHead = false;
    bool queryKeyValueBias = false, attentionOutputBias = false, mlpBias = false, headBias = false;
    bool fusedQkv = false;            ///< one matmul for q, k, v
    bool pooler = false;              ///< BERT's pooler as part of the model
    std::int64_t typeVocab = 0;       ///< BERT's token types
    std::int64_t experts = 0, expertsPerToken = 0;  ///< mixture of experts
    std::int64_t expertFfn = 0;       ///< feed-forward size of one expert; 0: `ffn`
    std::int64_t sharedExperts = 0;   ///< experts that every token goes through: one MLP of sharedExperts · expertFfn
    std::vector<std::int64_t> denseLayers;  ///< of a mixture of experts: blocks (from 0, ascending) that have a dense MLP of `ffn` all the same
    RouterSpec router;
    LatentAttention latent;           ///< headDim is then that of queries and keys, with ropeDim
    std::int64_t predictionModules = 0;  ///< multi-token prediction: modules after the last block, each of which predicts one token further
    std::int64_t imageSize = 0, patchSize = 0, channels = 0, classes = 0;  ///< ViT; `classes` also BERT's classifier
    bool queryKeyNorm = false;        ///< a norm over each head of q and k (Qwen3)
    bool parallelBlock = false;       ///< attention and MLP read the same residual (GPT-NeoX, Phi)
    bool maskedLmHead = false;        ///< BERT's transform and tied decoder
    std::int64_t maskedPredictions = 0;  ///< tokens per sample that the head predicts: those that were masked; 0: every token
    bool positionsGrow = false;       ///< the position table has as many rows as the run's sequence (llm-foundry's MPT)
    std::int64_t positionOffset = 0;  ///< extra rows of the position table (OPT: 2)
    bool residualDropout = false, attentionDropout = false;  ///< has such layers; they act if the training configuration says so

    bool hasExperts(std::int64_t block) const { return experts > 0 && !std::binary_search(denseLayers.begin(), denseLayers.end(), block); }
    std::int64_t expertWidth() const { return expertFfn > 0 ? expertFfn : ffn; }
    std::int64_t valueDim() const { return latent ? latent.valueDim : headDim; }
};

struct ConvNetSpec {
    enum class Family : std::uint8_t { ResNet, Vgg, EfficientNet } family = Family::ResNet;
    std::vector<std::int64_t> blocksPerStage;  ///< ResNet: {3,4,6,3}; VGG: convolutions per stage
    bool bottleneck = true;
    std::int64_t groups = 1, groupWidth = 64;  ///< ResNeXt: groups of the 3 × 3 convolutions and their width in the first stage (ResNet: 1 of 64)
    std::int64_t squeeze = 0;                  ///< squeeze-and-excitation in every block: channels are squeezed to this part of them; 0: none
    bool squeezeHidden = false;                ///< EfficientNet: that part of the expanded channels, not of the block's input
    double widthCoefficient = 1, depthCoefficient = 1;  ///< EfficientNet's scaling
    std::int64_t imageSize = 224, channels = 3, classes = 1000;
};

struct MlpSpec {
    std::vector<std::int64_t> widths;  ///< input, hidden…, output
    bool bias = true;
    Activation activation = Activation::Relu;
};

struct ModelSpec {
    std::string name;
    std::variant<TransformerSpec, ConvNetSpec, MlpSpec> architecture;
    std::string source;                                ///< where its figures come from
    std::optional<std::int64_t> publishedParameters;   ///< for the test that compares
};

/// Instantiates the model for one micro-batch. Errors (bad input) name what does not fit: a sequence longer than a
/// learned position table, heads that do not divide the hidden size, absurd sizes.
Result<Workload> buildWorkload(const ModelSpec& model, const TrainingConfig& training);

/// The part of the model that one rank of `shard` computes, with the collectives between its ops; parameters and values have the
/// shapes of that part, tokensPerSample stays the whole sequence's. The whole shard gives the workload above. Errors also name
/// what cannot be split: heads, feed-forward size, experts, tokens, or a model without such a form.
Result<Workload> buildWorkload(const ModelSpec& model, const TrainingConfig& training, const ModelShard& shard);

/// Sequence length used: the training configuration's, else the model's own. 0 for models without one.
std::int64_t effectiveSeqLen(const ModelSpec& model, const TrainingConfig& training);

/// Model FLOPs of one step of one sample by the convention 6N + 12·L·h·s per token (PaLM; N counts every parameter, no
/// causal discount; a mixture of experts counts the experts that a token uses; h of latent attention is the mean of what its scores and its values
/// multiply; a module of multi-token prediction counts with the head it uses once more); for image models and the MLP, three times
/// the forward FLOPs of the matmuls and convolutions. REQUIRES: the workload of the whole model, not of a shard.
double modelFlopsPerSample(const ModelSpec& model, const Workload& workload);

/// Parameters that act on a token: of a mixture of experts only the chosen experts. REQUIRES: likewise.
double activeParameters(const TransformerSpec& spec, const Workload& workload);

}  // namespace ringside
