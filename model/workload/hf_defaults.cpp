#include "model/workload/hf_defaults.h"

#include <array>

namespace ringside {
namespace {

struct Sizes {
    std::int64_t layers, hidden, heads, kvHeads, headDim, ffn, vocab, contextLength;
};

TransformerSpec sized(TransformerFamily family, const Sizes& sizes) {
    TransformerSpec spec;
    spec.family = family;
    spec.layers = sizes.layers;
    spec.hidden = sizes.hidden;
    spec.heads = sizes.heads;
    spec.kvHeads = sizes.kvHeads;
    spec.headDim = sizes.headDim;
    spec.ffn = sizes.ffn;
    spec.vocab = sizes.vocab;
    spec.contextLength = sizes.contextLength;
    return spec;
}

/// RMSNorm, rotary positions, gated MLP, no biases.
TransformerSpec llamaLike(TransformerFamily family, const Sizes& sizes) {
    TransformerSpec spec = sized(family, sizes);
    spec.positions = Positions::Rotary;
    spec.activation = Activation::Silu;
    spec.gatedMlp = true;
    spec.rmsNorm = true;
    spec.normBias = false;
    return spec;
}

/// LayerNorm and biases on every linear layer.
TransformerSpec biased(TransformerFamily family, const Sizes& sizes) {
    TransformerSpec spec = sized(family, sizes);
    spec.queryKeyValueBias = spec.attentionOutputBias = spec.mlpBias = true;
    return spec;
}

TransformerSpec gpt2() {
    TransformerSpec spec = biased(TransformerFamily::Gpt2, {12, 768, 12, 0, 0, 0, 50257, 1024});
    spec.tiedHead = spec.fusedQkv = true;
    spec.residualDropout = spec.attentionDropout = true;
    return spec;
}

TransformerSpec llama() { return llamaLike(TransformerFamily::Llama, {32, 4096, 32, 0, 0, 11008, 32000, 2048}); }
TransformerSpec mistral() { return llamaLike(TransformerFamily::Llama, {32, 4096, 32, 8, 0, 14336, 32000, 131072}); }

TransformerSpec qwen2() {
    TransformerSpec spec = llamaLike(TransformerFamily::Llama, {32, 4096, 32, 32, 0, 22016, 151936, 32768});
    spec.queryKeyValueBias = true;
    return spec;
}

TransformerSpec qwen3() {
    TransformerSpec spec = llamaLike(TransformerFamily::Llama, {32, 4096, 32, 32, 128, 22016, 151936, 32768});
    spec.queryKeyNorm = true;
    return spec;
}

TransformerSpec mixtral() {
    TransformerSpec spec = llamaLike(TransformerFamily::Mixtral, {32, 4096, 32, 8, 0, 14336, 32000, 131072});
    spec.experts = 8;
    spec.expertsPerToken = 2;
    return spec;
}

TransformerSpec qwen3Moe() {
    TransformerSpec spec = llamaLike(TransformerFamily::Mixtral, {24, 2048, 32, 4, 0, 6144, 151936, 32768});
    spec.queryKeyNorm = true;
    spec.experts = 128;
    spec.expertsPerToken = 8;
    spec.expertFfn = 768;
    spec.router.normalize = false;
    return spec;
}

/// Latent attention; the head size follows from its parts.
TransformerSpec deepSeek(const Sizes& sizes, const RouterSpec& router) {
    TransformerSpec spec = llamaLike(TransformerFamily::Mixtral, sizes);
    spec.headDim = 192;  // 128, and 64 with positions
    spec.latent = {1536, 512, 64, 128};
    spec.router = router;
    return spec;
}

TransformerSpec deepSeekV2() {
    TransformerSpec spec = deepSeek({32, 4096, 32, 0, 0, 11008, 32000, 2048}, {false, false, false, 0});
    spec.experts = 64;
    spec.expertFfn = 1407;
    spec.sharedExperts = 2;
    return spec;  // how many experts a token uses, the file must say
}

TransformerSpec deepSeekV3() {
    TransformerSpec spec = deepSeek({61, 7168, 128, 128, 0, 18432, 129280, 4096}, {true, true, true, 8});
    spec.experts = 256;
    spec.expertsPerToken = 8;
    spec.expertFfn = 2048;
    spec.sharedExperts = 1;
    return spec;
}

TransformerSpec gemma() {
    TransformerSpec spec = llamaLike(TransformerFamily::Llama, {28, 3072, 16, 16, 256, 24576, 256000, 8192});
    spec.activation = Activation::Gelu;
    spec.tiedHead = true;
    return spec;
}

TransformerSpec gemma2() {
    TransformerSpec spec = llamaLike(TransformerFamily::Gemma2, {26, 2304, 8, 4, 256, 9216, 256000, 8192});
    spec.activation = Activation::Gelu;
    spec.tiedHead = true;
    return spec;
}

TransformerSpec bert() {
    TransformerSpec spec = biased(TransformerFamily::Bert, {12, 768, 12, 0, 0, 3072, 30522, 512});
    spec.causal = false;
    spec.pooler = true;
    spec.typeVocab = 2;
    spec.tiedHead = true;
    spec.residualDropout = spec.attentionDropout = true;
    return spec;
}

TransformerSpec vit() {
    TransformerSpec spec = biased(TransformerFamily::Vit, {12, 768, 12, 0, 0, 3072, 0, 0});
    spec.causal = false;
    spec.imageSize = 224;
    spec.patchSize = 16;
    spec.channels = 3;
    spec.classes = 2;
    return spec;
}

TransformerSpec mpt() {
    TransformerSpec spec = sized(TransformerFamily::Mpt, {24, 2048, 16, 0, 0, 0, 50368, 2048});
    spec.fusedQkv = spec.tiedHead = spec.positionsGrow = true;
    return spec;
}

TransformerSpec opt() {
    TransformerSpec spec = biased(TransformerFamily::Opt, {12, 768, 12, 0, 0, 3072, 50272, 2048});
    spec.activation = Activation::Relu;
    spec.tiedHead = true;
    spec.positionOffset = 2;
    spec.residualDropout = true;
    return spec;
}

TransformerSpec gptNeoX() {
    TransformerSpec spec = biased(TransformerFamily::GptNeoX, {44, 6144, 64, 0, 0, 24576, 50432, 2048});
    spec.positions = Positions::Rotary;
    spec.fusedQkv = spec.parallelBlock = true;
    return spec;
}

TransformerSpec phi() {
    TransformerSpec spec = biased(TransformerFamily::Phi, {24, 2048, 32, 0, 0, 8192, 51200, 2048});
    spec.positions = Positions::Rotary;
    spec.parallelBlock = spec.headBias = true;
    return spec;
}

struct Entry {
    std::string_view type;
    TransformerSpec (*make)();
};

constexpr std::array kEntries{
    Entry{"gpt2", gpt2},     Entry{"llama", llama}, Entry{"mistral", mistral}, Entry{"qwen2", qwen2}, Entry{"qwen3", qwen3},
    Entry{"mixtral", mixtral}, Entry{"qwen3_moe", qwen3Moe}, Entry{"deepseek_v2", deepSeekV2}, Entry{"deepseek_v3", deepSeekV3}, Entry{"kimi_k2", deepSeekV3},
    Entry{"gemma", gemma}, Entry{"gemma2", gemma2},   Entry{"bert", bert},   Entry{"vit", vit},
    Entry{"mpt", mpt},       Entry{"opt", opt},     Entry{"gpt_neox", gptNeoX}, Entry{"phi", phi},
};

}  // namespace

std::optional<TransformerSpec> transformerDefaults(std::string_view modelType) {
    for (const Entry& entry : kEntries)
        if (entry.type == modelType) return entry.make();
    return std::nullopt;
}

std::vector<std::string> transformerModelTypes() {
    std::vector<std::string> types;
    for (const Entry& entry : kEntries) types.emplace_back(entry.type);
    return types;
}

}  // namespace ringside
