#include "calibrate/published/published_model.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ringside {
namespace {

/// Lower case letters and digits only: "LLAMA3.1_405B" and "llama-3.1-405b" are one name.
std::string plain(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

struct KnownModel {
    std::string_view word;   ///< in the plain name
    std::string_view model;  ///< of the catalogue
};
/// Models that sources name without their sizes. More particular words stand first.
constexpr KnownModel kByName[] = {
    {"llama31405b", "llama-3.1-405b"}, {"llama3405b", "llama-3.1-405b"}, {"llama370b", "llama-3-70b"}, {"llama3170b", "llama-3.1-70b"}, {"llama38b", "llama-3-8b"},
    {"llama318b", "llama-3.1-8b"},     {"llama321b", "llama-3.2-1b"},    {"llama323b", "llama-3.2-3b"}, {"llama213b", "llama-2-13b"}, {"llama27b", "llama-2-7b"},
    {"llama270b", "llama-2-70b"},      {"llamalike70b", "llama-2-70b"},  {"llamalike7b", "llama-2-7b"}, {"mixtral8x7b", "mixtral-8x7b"}, {"mistral7b", "mistral-7b"},
    {"qwen2505b", "qwen2.5-0.5b"},     {"qwen2515b", "qwen2.5-1.5b"},    {"qwen253b", "qwen2.5-3b"},    {"qwen257b", "qwen2.5-7b"}, {"qwen2514b", "qwen2.5-14b"},
    {"qwen330ba3b", "qwen3-30b-a3b"},  {"qwen3235ba22b", "qwen3-235b-a22b"}, {"qwen332b", "qwen3-32b"},   {"kimik2", "kimi-k2"},
    {"qwen2532b", "qwen2.5-32b"},      {"qwen2572b", "qwen2.5-72b"},     {"gpt2xl", "gpt2-xl"},         {"gpt2large", "gpt2-large"}, {"gpt2medium", "gpt2-medium"},
    {"gpt3175b", "gpt3-175b"},         {"vitl16", "vit-l-16"},           {"vitb16", "vit-b-16"},        {"resnet152", "resnet-152"}, {"resnet101", "resnet-101"},
    {"seresnext101", "se-resnext-101-32x4d"}, {"resnext101", "resnext-101-32x4d"}, {"resnext50", "resnext-50-32x4d"}, {"efficientnetwideseb0", "efficientnet-widese-b0"},
    {"efficientnetwideseb4", "efficientnet-widese-b4"}, {"efficientnetb0", "efficientnet-b0"}, {"efficientnetb4", "efficientnet-b4"}, {"resnet34", "resnet-34"},         {"resnet18", "resnet-18"},        {"vgg16", "vgg-16"},
};

/// Published architectures that the catalogue does not hold.
struct KnownSizes {
    std::string_view word;
    const char* config;
};
constexpr KnownSizes kSizes[] = {
    {"gpt320b", R"({"name": "gpt3-20b", "model_type": "gpt2", "n_layer": 44, "n_embd": 6144, "n_head": 48, "n_inner": 24576, "vocab_size": 51200, "n_positions": 2048})"},
    {"gpt37b", R"({"name": "gpt-7b", "model_type": "gpt2", "n_layer": 32, "n_embd": 4096, "n_head": 32, "vocab_size": 50304, "n_positions": 2048})"},
};

/// Words of architectures that the model has no form of; the rest of the reason.
struct Unsupported {
    std::string_view word, why;
};
constexpr Unsupported kUnsupported[] = {
    {"efficientdet", "a detector"}, {"gpunet", "a mixture of convolutions that a search found"}, {"maskrcnn", "a detector of two stages"}, {"ssd", "a detector"}, {"nnunet", "a U-Net"}, {"unet", "a U-Net"},
    {"transformerxl", "relative attention with a memory"}, {"bart", "an encoder and a decoder"}, {"gnmt", "a recurrent network"}, {"jasper", "one-dimensional convolutions"},
    {"ncf", "embedding tables"}, {"dlrm", "embedding tables"}, {"hifigan", "a vocoder"}, {"moflow", "a flow model"}, {"tft", "a recurrent network"},
    {"deepseekv4", "an attention of its own kind"},
    {"gpt7bish", "sizes that the source does not state"}, {"nemotron3", "state-space layers"}, {"nemotron", "an architecture that the source does not state"}, {"gptoss", "sliding windows and a mixture of experts"},
    {"albert", "layers that share parameters"}, {"flant5", "an encoder and a decoder"},
};

Result<void> needs(const PublishedModel& model) {
    const char* missing = !model.layers ? "layers" : !model.hidden ? "hidden" : nullptr;
    if (missing) return badInput("", fmt::format("the model '{}' is not known by name, and its {} are not stated", model.name, missing));
    return {};
}

/// Where the heads are not stated: GPT-3's of the same width, else of size 96, 128 or 64, the first that divides.
std::int64_t headsOf(const PublishedModel& model, std::vector<std::string>& assumed) {
    if (model.heads) return *model.heads;
    constexpr std::pair<std::int64_t, std::int64_t> kGpt3[] = {{768, 12}, {1024, 16}, {1536, 16}, {2048, 16}, {2560, 32}, {4096, 32}, {5120, 40}, {12288, 96}};
    std::int64_t heads = 0;
    for (const auto& [hidden, own] : kGpt3)
        if (hidden == *model.hidden) heads = own;
    for (const std::int64_t size : {96, 128, 64})
        if (heads == 0 && *model.hidden % size == 0) heads = *model.hidden / size;
    if (heads == 0) heads = 1;
    assumed.push_back(fmt::format("heads not stated: {} of size {}", heads, *model.hidden / heads));
    return heads;
}

MappedModel bert(const PublishedModel& model, const std::string& name) {
    MappedModel out;
    out.style = ModelStyle::Bert;
    const bool large = has(name, "large");
    out.model = {{"name", model.name}, {"model_type", "bert"}, {"num_hidden_layers", model.layers.value_or(large ? 24 : 12)}, {"hidden_size", model.hidden.value_or(large ? 1024 : 768)},
                 {"num_attention_heads", model.heads.value_or(large ? 16 : 12)}, {"intermediate_size", model.ffn.value_or(large ? 4096 : 3072)}, {"vocab_size", model.vocab.value_or(30522)},
                 {"max_position_embeddings", std::max<std::int64_t>(512, model.seqLen.value_or(512))}, {"type_vocab_size", 2}};
    // Question answering and classification have a head of two columns, which is nothing; pre-training predicts words.
    if (!has(name, "squad") && !has(name, "uncased")) out.model["architectures"] = Json::array({"BertForPreTraining"});
    return out;
}

Result<MappedModel> mpt(const PublishedModel& model) {
    MappedModel out;
    out.style = ModelStyle::Mpt;
    TRY_VOID(needs(model));
    const std::int64_t ffn = model.ffn.value_or(4 * *model.hidden);
    if (ffn % *model.hidden != 0) return badInput("", fmt::format("an MPT with a feed-forward size of {} is not supported; expected a multiple of {}", ffn, *model.hidden));
    out.model = {{"name", model.name}, {"model_type", "mpt"}, {"n_layers", *model.layers}, {"d_model", *model.hidden}, {"n_heads", headsOf(model, out.assumed)}, {"expansion_ratio", ffn / *model.hidden},
                 {"max_seq_len", model.seqLen.value_or(2048)}, {"vocab_size", model.vocab.value_or(50368)}, {"no_bias", false}, {"attn_config", {{"alibi", false}}}};
    return out;
}

Result<MappedModel> gpt(const PublishedModel& model) {
    MappedModel out;
    out.style = ModelStyle::Gpt;
    TRY_VOID(needs(model));
    constexpr std::int64_t kGpt2Vocab = 50257;
    if (!model.vocab) out.assumed.push_back(fmt::format("vocabulary not stated: {}, GPT-2's", kGpt2Vocab));
    out.model = {{"name", model.name}, {"model_type", "gpt2"}, {"n_layer", *model.layers}, {"n_embd", *model.hidden}, {"n_head", headsOf(model, out.assumed)}, {"n_inner", model.ffn.value_or(4 * *model.hidden)},
                 {"vocab_size", model.vocab.value_or(kGpt2Vocab)}, {"n_positions", std::max<std::int64_t>(1024, model.seqLen.value_or(1024))}};
    return out;
}

/// DeepSeek-V2 and V3: what a record states of the sizes, else those of the published model.
MappedModel deepSeek(const PublishedModel& model, const std::string& name) {
    MappedModel out;
    const bool second = has(name, "deepseekv2");
    out.model = second ? Json{{"model_type", "deepseek_v2"}, {"num_hidden_layers", 60}, {"hidden_size", 5120}, {"num_attention_heads", 128}, {"intermediate_size", 12288},
                              {"moe_intermediate_size", 1536}, {"n_routed_experts", 160}, {"num_experts_per_tok", 6}, {"first_k_dense_replace", 1}, {"n_group", 8}, {"vocab_size", 102400}}
                       : Json{{"model_type", "deepseek_v3"}};  // whose class is V3
    out.model["name"] = model.name;
    out.model["max_position_embeddings"] = std::max<std::int64_t>(4096, model.seqLen.value_or(4096));
    const auto stated = [&](const char* key, std::optional<std::int64_t> value) {
        if (value) out.model[key] = *value;
    };
    stated("num_hidden_layers", model.layers);
    stated("hidden_size", model.hidden);
    stated("num_attention_heads", model.heads);
    stated("num_key_value_heads", model.heads);
    stated("intermediate_size", model.ffn);
    stated("vocab_size", model.vocab);
    if (has(name, "truncated")) {
        out.model["first_k_dense_replace"] = 1;
        out.assumed.push_back("dense blocks not stated: one, as the source's run script has it");
    } else if (!second && !has(name, "womtp")) {
        out.model["mtp_num_layers"] = 1;
        if (!has(name, "wmtp")) out.assumed.push_back("multi-token prediction not stated: one module, as the model has");
    }
    return out;
}

Result<MappedModel> llama(const PublishedModel& model, const char* type) {
    MappedModel out;
    TRY_VOID(needs(model));
    if (!model.ffn || !model.vocab) return badInput("", fmt::format("the model '{}' is not known by name, and its {} is not stated", model.name, model.ffn ? "vocab" : "ffn"));
    const std::int64_t heads = headsOf(model, out.assumed);
    out.model = {{"name", model.name}, {"model_type", type}, {"num_hidden_layers", *model.layers}, {"hidden_size", *model.hidden}, {"num_attention_heads", heads},
                 {"num_key_value_heads", model.kvHeads.value_or(heads)}, {"intermediate_size", *model.ffn}, {"vocab_size", *model.vocab},
                 {"max_position_embeddings", std::max<std::int64_t>(4096, model.seqLen.value_or(4096))}};
    return out;
}

}  // namespace

Result<MappedModel> modelOf(const PublishedModel& model) {
    const std::string name = plain(model.name);
    if (name.empty() || name == "seecontext") return badInput("", "the model is not stated");
    for (const Unsupported& one : kUnsupported)
        if (has(name, one.word)) return badInput("", fmt::format("the model '{}' is not supported: {}", model.name, one.why));
    MappedModel out;
    if (has(name, "resnet50")) {
        out.style = ModelStyle::ConvNet;
        out.model = "resnet-50";
        return out;
    }
    if (has(name, "bert")) return bert(model, name);
    if (has(name, "deepseekv2") || has(name, "deepseekv3")) return deepSeek(model, name);
    const bool sized = model.layers && model.hidden;
    if (has(name, "mpt")) return mpt(model);
    if (sized && (has(name, "llama") || has(name, "mistral") || (model.kvHeads && model.heads && *model.kvHeads != *model.heads))) return llama(model, "llama");
    if (sized && has(name, "qwen3")) return llama(model, "qwen3");
    if (sized && has(name, "qwen2")) return llama(model, "qwen2");
    if (sized) return gpt(model);
    for (const KnownModel& one : kByName)
        if (has(name, one.word)) {
            out.model = std::string(one.model);
            const bool image = has(std::string(one.model), "resne") || one.model.starts_with("vgg") || one.model.starts_with("efficientnet");
            out.style = image ? ModelStyle::ConvNet : one.model.starts_with("gpt") ? ModelStyle::Gpt : ModelStyle::Llama;
            return out;
        }
    for (const KnownSizes& one : kSizes)
        if (has(name, one.word) || (one.word == "gpt37b" && has(name, "gpt7b"))) {
            TRY(out.model, parseJson(one.config, std::string(one.word)));
            out.style = name.starts_with("gpt") ? ModelStyle::Gpt : ModelStyle::Llama;
            out.assumed.push_back("sizes not stated: those usually published for this name");
            return out;
        }
    return badInput("", fmt::format("the model '{}' is not supported: its sizes are not stated and the catalogue does not know it", model.name));
}

}  // namespace ringside
