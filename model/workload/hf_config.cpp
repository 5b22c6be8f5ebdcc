#include "model/workload/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>

#include "model/workload/convnet.h"
#include "model/workload/hf_defaults.h"
#include "model/workload/mlp.h"
#include "model/workload/transformer.h"

namespace ringside {
namespace {

using Keys = std::initializer_list<std::string_view>;

std::optional<JsonCursor> findAny(const JsonCursor& config, Keys keys) {
    for (const std::string_view key : keys)
        if (auto found = config.find(key)) return found;
    return std::nullopt;
}

/// Sizes are checked against sensible bounds by validate(); here only against what would overflow.
Result<void> readSize(const JsonCursor& config, Keys keys, std::int64_t& into) {
    if (const auto found = findAny(config, keys)) {
        TRY(into, found->asInt(1, std::int64_t{1} << 32));
    }
    return {};
}

Result<void> readBool(const JsonCursor& config, std::string_view key, bool& into) {
    TRY(into, config.boolOr(key, into));
    return {};
}

bool isNull(const JsonCursor& config, std::string_view key) {
    const auto it = config.value().find(std::string(key));
    return it != config.value().end() && it->is_null();
}

Result<void> readActivation(const JsonCursor& config, TransformerSpec& spec) {
    const auto found = findAny(config, {"hidden_act", "hidden_activation", "activation_function"});
    if (!found) return {};
    TRY(const std::string name, found->asString());
    if (name.find("gelu") != std::string::npos)
        spec.activation = Activation::Gelu;
    else if (name.find("relu") != std::string::npos)
        spec.activation = Activation::Relu;
    else if (name == "silu" || name == "swish")
        spec.activation = Activation::Silu;
    else
        return found->error(fmt::format("the activation '{}' is not supported; expected one of the gelu family, relu, silu", name));
    return {};
}

/// Whether any of the probabilities is above zero; a missing one leaves the class default.
Result<void> readDropout(const JsonCursor& config, Keys keys, bool& into) {
    if (const auto found = findAny(config, keys)) {
        TRY(const double probability, found->asNumber(0, 1));
        into = probability > 0;
    }
    return {};
}

bool isDeepSeek(const std::string& type) { return type == "deepseek_v2" || type == "deepseek_v3" || type == "kimi_k2"; }

/// A size that may be 0; null means 0.
Result<void> readCount(const JsonCursor& config, std::string_view key, std::int64_t& into) {
    if (isNull(config, key)) into = 0;
    if (const auto found = config.find(key)) {
        TRY(into, found->asInt(0, std::int64_t{1} << 32));
    }
    return {};
}

/// Which blocks have a dense MLP: the first ones, or all but every n-th, or those of a list.
Result<void> readDenseLayers(const JsonCursor& config, const std::string& type, TransformerSpec& spec) {
    constexpr std::int64_t kMostLayers = 10'000;  // validate() refuses more
    const std::int64_t layers = std::min(spec.layers, kMostLayers);
    std::int64_t first = type == "deepseek_v3" || type == "kimi_k2" ? 3 : 0, step = 1;
    if (isDeepSeek(type)) TRY_VOID(readCount(config, "first_k_dense_replace", first));
    TRY_VOID(readSize(config, {isDeepSeek(type) ? "moe_layer_freq" : "decoder_sparse_step"}, step));
    std::set<std::int64_t> dense;
    for (std::int64_t i = 0; i < layers; ++i) {
        const bool skipped = isDeepSeek(type) ? i % step != 0 : (i + 1) % step != 0;
        if (i < first || skipped) dense.insert(i);
    }
    if (const auto found = config.find("mlp_only_layers"); found && !isDeepSeek(type)) {
        TRY(const std::vector<JsonCursor> items, found->items());
        for (const JsonCursor& item : items) {
            TRY(const std::int64_t layer, item.asInt(0, layers - 1));
            dense.insert(layer);
        }
    }
    spec.denseLayers.assign(dense.begin(), dense.end());
    if (static_cast<std::int64_t>(spec.denseLayers.size()) == layers) spec.experts = spec.expertsPerToken = 0;
    if (spec.experts == 0) spec.denseLayers.clear();
    return {};
}

Result<void> readExperts(const JsonCursor& config, const std::string& type, TransformerSpec& spec) {
    const bool deepSeek = isDeepSeek(type);
    if (deepSeek) TRY_VOID(readCount(config, "n_routed_experts", spec.experts));
    else TRY_VOID(readSize(config, {"num_experts", "num_local_experts"}, spec.experts));
    TRY_VOID(readSize(config, {"num_experts_per_tok"}, spec.expertsPerToken));
    TRY_VOID(readSize(config, {"moe_intermediate_size"}, spec.expertFfn));
    TRY_VOID(readBool(config, "norm_topk_prob", spec.router.normalize));
    if (deepSeek) {
        TRY_VOID(readCount(config, "n_shared_experts", spec.sharedExperts));
        TRY_VOID(readCount(config, "n_group", spec.router.groups));
        if (const auto scoring = config.find("scoring_func")) {
            TRY(const std::string name, scoring->asString());
            if (name != "softmax" && name != "sigmoid") return scoring->error(fmt::format("scoring_func is '{}'; expected softmax or sigmoid", name));
            spec.router.sigmoid = name == "sigmoid";
        }
        if (const auto method = config.find("topk_method")) {
            TRY(const std::string name, method->asString());
            if (name == "greedy") spec.router.groups = 0;  // whatever n_group says
            spec.router.bias = name == "noaux_tc";
        }
    }
    if (spec.experts > 0 && spec.expertsPerToken == 0) return config.error("num_experts_per_tok is missing; give how many experts a token uses");
    return readDenseLayers(config, type, spec);
}

Result<void> readLatentAttention(const JsonCursor& config, TransformerSpec& spec) {
    TRY_VOID(readCount(config, "q_lora_rank", spec.latent.queryRank));
    TRY_VOID(readSize(config, {"kv_lora_rank"}, spec.latent.keyValueRank));
    TRY_VOID(readSize(config, {"qk_rope_head_dim"}, spec.latent.ropeDim));
    TRY_VOID(readSize(config, {"v_head_dim"}, spec.latent.valueDim));
    std::int64_t plain = 128;
    TRY_VOID(readSize(config, {"qk_nope_head_dim"}, plain));
    spec.headDim = plain + spec.latent.ropeDim;
    // transformers leaves these modules out; training frameworks have them, so they are asked for by their name.
    return readCount(config, "mtp_num_layers", spec.predictionModules);
}

Result<void> readBiases(const JsonCursor& config, const std::string& type, TransformerSpec& spec) {
    if (type == "llama" || type == "qwen3" || type == "qwen3_moe" || isDeepSeek(type) || type == "gemma" || type == "gemma2" || type == "gpt_neox") {
        TRY_VOID(readBool(config, "attention_bias", spec.queryKeyValueBias));
        spec.attentionOutputBias = spec.queryKeyValueBias;
    }
    if (type == "llama") TRY_VOID(readBool(config, "mlp_bias", spec.mlpBias));
    if (type == "vit") TRY_VOID(readBool(config, "qkv_bias", spec.queryKeyValueBias));
    if (type == "opt") {
        TRY(const bool bias, config.boolOr("enable_bias", true));
        spec.queryKeyValueBias = spec.attentionOutputBias = spec.mlpBias = bias;
    }
    if (type == "mpt") {
        TRY(const bool noBias, config.boolOr("no_bias", true));
        spec.queryKeyValueBias = spec.attentionOutputBias = spec.mlpBias = spec.normBias = !noBias;
    }
    return {};
}

/// What is particular to one family and changes its shape.
Result<void> readParticulars(const JsonCursor& config, const std::string& type, TransformerSpec& spec) {
    if (type == "mixtral") {
        TRY_VOID(readSize(config, {"num_local_experts", "num_experts"}, spec.experts));
        TRY_VOID(readSize(config, {"num_experts_per_tok"}, spec.expertsPerToken));
    }
    if (type == "qwen3_moe" || isDeepSeek(type)) TRY_VOID(readExperts(config, type, spec));
    if (isDeepSeek(type)) TRY_VOID(readLatentAttention(config, spec));
    if (type == "bert") TRY_VOID(readSize(config, {"max_predictions_per_seq"}, spec.maskedPredictions));
    if (type == "gpt_neox") TRY_VOID(readBool(config, "use_parallel_residual", spec.parallelBlock));
    if (type == "gpt2") {
        TRY(const bool cross, config.boolOr("add_cross_attention", false));
        if (cross) return config.error("add_cross_attention is not supported; expected a decoder without an encoder");
    }
    if (type == "opt") {
        TRY(const bool before, config.boolOr("do_layer_norm_before", true));
        if (!before) return config.error("do_layer_norm_before = false (OPT-350M) is not supported");
        std::int64_t projected = spec.hidden;
        TRY_VOID(readSize(config, {"word_embed_proj_dim"}, projected));
        if (projected != spec.hidden)
            return config.error(
                fmt::format("word_embed_proj_dim {} differs from hidden_size {}; this is not supported", projected, spec.hidden));
    }
    if (type == "phi") {
        TRY(const bool norms, config.boolOr("qk_layernorm", false));
        if (norms) return config.error("qk_layernorm is not supported");
    }
    if (type == "bert") {
        TRY_VOID(readSize(config, {"type_vocab_size"}, spec.typeVocab));
        if (const auto found = config.find("architectures")) {
            TRY(const std::vector<JsonCursor> names, found->items());
            for (const JsonCursor& item : names) {
                TRY(const std::string name, item.asString());
                spec.maskedLmHead = name == "BertForMaskedLM" || name == "BertForPreTraining";
                if (name == "BertForMaskedLM") spec.pooler = false;
                if (name == "BertForPreTraining") spec.classes = 2;
            }
        }
    }
    if (type == "mpt") {
        bool alibi = true, rope = false, learned = true;
        TRY_VOID(readBool(config, "learned_pos_emb", learned));
        if (const auto attention = config.find("attn_config")) {
            TRY_VOID(readBool(*attention, "alibi", alibi));
            TRY_VOID(readBool(*attention, "rope", rope));
            TRY(const std::string kind, attention->stringOr("attn_type", "multihead_attention"));
            if (kind == "multiquery_attention") spec.kvHeads = 1;
            if (kind == "grouped_query_attention") TRY_VOID(readSize(*attention, {"kv_n_heads"}, spec.kvHeads));
        }
        spec.positions = alibi ? Positions::Alibi : rope ? Positions::Rotary : learned ? Positions::Learned : Positions::None;
    }
    return {};
}

Result<void> readClasses(const JsonCursor& config, std::int64_t& classes) {
    if (const auto labels = config.find("id2label"); labels && labels->value().is_object())
        classes = static_cast<std::int64_t>(labels->value().size());
    return readSize(config, {"num_labels"}, classes);
}

Result<TransformerSpec> readTransformer(const JsonCursor& config, const std::string& type, TransformerSpec spec) {
    TRY_VOID(readSize(config, {"hidden_size", "n_embd", "d_model"}, spec.hidden));
    TRY_VOID(readSize(config, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, spec.layers));
    TRY_VOID(readSize(config, {"num_attention_heads", "n_head", "n_heads", "num_heads"}, spec.heads));
    TRY_VOID(readSize(config, {"vocab_size"}, spec.vocab));
    TRY_VOID(readSize(config, {"max_position_embeddings", "n_positions", "max_seq_len"}, spec.contextLength));

    // 0 in the defaults stands for "derive", as null does in the file.
    if (isNull(config, "num_key_value_heads") || spec.kvHeads == 0) spec.kvHeads = spec.heads;
    TRY_VOID(readSize(config, {"num_key_value_heads", "num_kv_heads"}, spec.kvHeads));
    if (isNull(config, "head_dim")) spec.headDim = 0;
    TRY_VOID(readSize(config, {"head_dim"}, spec.headDim));
    if (spec.headDim == 0) {
        if (spec.hidden % spec.heads != 0)
            return config.error(fmt::format("{} attention heads do not divide the hidden size {}; give head_dim if that is meant",
                                            spec.heads, spec.hidden));
        spec.headDim = spec.hidden / spec.heads;
    }
    TRY_VOID(readSize(config, {"intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size"}, spec.ffn));
    if (type == "mpt") {
        std::int64_t ratio = 4;
        TRY_VOID(readSize(config, {"expansion_ratio"}, ratio));
        spec.ffn = 0;
        if (ratio > 1024) return config.error(fmt::format("expansion_ratio is {}; expected 1 to 1024", ratio));
        spec.ffn = ratio * spec.hidden;
    }
    if (spec.ffn == 0) spec.ffn = 4 * spec.hidden;

    TRY_VOID(readActivation(config, spec));
    TRY_VOID(readBool(config, "tie_word_embeddings", spec.tiedHead));
    TRY_VOID(readDropout(config, {"resid_pdrop", "hidden_dropout_prob", "hidden_dropout", "dropout"}, spec.residualDropout));
    TRY_VOID(readDropout(config, {"attn_pdrop", "attention_probs_dropout_prob", "attention_dropout"}, spec.attentionDropout));
    TRY_VOID(readBiases(config, type, spec));
    TRY_VOID(readParticulars(config, type, spec));
    if (type == "vit") {
        TRY_VOID(readSize(config, {"image_size"}, spec.imageSize));
        TRY_VOID(readSize(config, {"patch_size"}, spec.patchSize));
        TRY_VOID(readSize(config, {"num_channels"}, spec.channels));
        TRY_VOID(readClasses(config, spec.classes));
        spec.tiedHead = false;
    }
    TRY_VOID(validate(spec, config.place()));
    return spec;
}

Result<std::vector<std::int64_t>> readSizes(const JsonCursor& list) {
    TRY(const std::vector<JsonCursor> items, list.items());
    std::vector<std::int64_t> out;
    for (const JsonCursor& item : items) {
        TRY(const std::int64_t size, item.asInt(1, std::int64_t{1} << 32));
        out.push_back(size);
    }
    return out;
}

Result<ConvNetSpec> readConvNet(const JsonCursor& config, const std::string& type) {
    ConvNetSpec spec;
    spec.family = type == "vgg" ? ConvNetSpec::Family::Vgg : type == "efficientnet" ? ConvNetSpec::Family::EfficientNet : ConvNetSpec::Family::ResNet;
    spec.blocksPerStage = type == "vgg" ? std::vector<std::int64_t>{2, 2, 3, 3, 3} : std::vector<std::int64_t>{3, 4, 6, 3};
    spec.classes = 2;
    if (const auto depths = config.find("depths")) {
        TRY(spec.blocksPerStage, readSizes(*depths));
    }
    TRY(const std::string layer, config.stringOr("layer_type", "bottleneck"));
    if (layer != "bottleneck" && layer != "basic")
        return config.error(fmt::format("layer_type is '{}'; expected 'bottleneck' or 'basic'", layer));
    spec.bottleneck = layer == "bottleneck";
    TRY(const bool early, config.boolOr("downsample_in_bottleneck", false));
    if (early) return config.error("downsample_in_bottleneck is not supported; expected the stride in the 3 × 3 convolution");
    TRY_VOID(readSize(config, {"groups"}, spec.groups));
    TRY_VOID(readSize(config, {"width_per_group"}, spec.groupWidth));
    TRY_VOID(readSize(config, {"squeeze_ratio"}, spec.squeeze));
    TRY(spec.widthCoefficient, config.numberOr("width_coefficient", 1, 0, 100));
    TRY(spec.depthCoefficient, config.numberOr("depth_coefficient", 1, 0, 100));
    TRY_VOID(readBool(config, "squeeze_hidden", spec.squeezeHidden));
    TRY_VOID(readSize(config, {"num_channels"}, spec.channels));
    TRY_VOID(readSize(config, {"image_size"}, spec.imageSize));
    TRY_VOID(readClasses(config, spec.classes));
    TRY_VOID(validate(spec, config.place()));
    return spec;
}

Result<MlpSpec> readMlp(const JsonCursor& config) {
    MlpSpec spec;
    TRY(const JsonCursor widths, config.at("widths"));
    TRY(spec.widths, readSizes(widths));
    TRY_VOID(readBool(config, "bias", spec.bias));
    TransformerSpec activation;
    activation.activation = Activation::Relu;
    TRY_VOID(readActivation(config, activation));
    spec.activation = activation.activation;
    TRY_VOID(validate(spec, config.place()));
    return spec;
}

}  // namespace

std::vector<std::string> supportedModelTypes() {
    std::vector<std::string> types = transformerModelTypes();
    types.insert(types.end(), {"resnet", "vgg", "efficientnet", "mlp"});
    return types;
}

Result<ModelSpec> modelFromHfConfig(const JsonCursor& config) {
    if (!config.value().is_object()) return config.error("expected an object with the keys of a Hugging Face config.json");
    const auto inner = config.find("text_config");
    TRY(const std::string type, config.stringOr("model_type", ""));
    const std::optional<TransformerSpec> defaults = transformerDefaults(type);
    const bool image = type == "resnet" || type == "vgg" || type == "efficientnet", perceptron = type == "mlp";
    if (!defaults && !image && !perceptron) {
        if (inner) return modelFromHfConfig(*inner);
        const std::string found = type.empty() ? "the key 'model_type' is missing" : fmt::format("model_type '{}' is not supported", type);
        return config.error(fmt::format("{}; supported are {}", found, fmt::join(supportedModelTypes(), ", ")));
    }
    ModelSpec model;
    TRY(model.name, config.stringOr("name", ""));
    if (model.name.empty()) {
        TRY(model.name, config.stringOr("_name_or_path", type));
    }
    if (model.name.empty()) model.name = type;
    TRY(model.source, config.stringOr("source", ""));
    if (const auto published = config.find("published_parameters")) {
        TRY(const std::int64_t count, published->asInt(1, std::int64_t{1} << 53));
        model.publishedParameters = count;
    }
    if (defaults) {
        TRY(model.architecture, readTransformer(config, type, *defaults));
    } else if (image) {
        TRY(model.architecture, readConvNet(config, type));
    } else {
        TRY(model.architecture, readMlp(config));
    }
    return model;
}

}  // namespace ringside
