// Reading config.json: aliases, null, defaults, and errors that say what is off.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/json_cursor.h"
#include "model/catalog/model_catalog.h"
#include "model/workload/hf_config.h"

namespace ringside {
namespace {

using testing::HasSubstr;

Result<ModelSpec> read(const char* text) {
    const Json json = parseJson(text, "config.json").value();
    return modelFromHfConfig(JsonCursor(json, "config.json"));
}

TransformerSpec readTransformer(const char* text) { return std::get<TransformerSpec>(read(text).value().architecture); }

std::string errorOf(const char* text) {
    const auto result = read(text);
    return result ? "no error" : result.error().toString();
}

std::int64_t countOf(const char* text) {
    TrainingConfig training;
    training.seqLen = 16;
    return parameterCount(buildWorkload(read(text).value(), training).value());
}

TEST(HfConfig, MissingKeysTakeTheDefaultsOfTheClass) {
    // GPT2Config() is GPT-2 small, LlamaConfig() the 7B model.
    EXPECT_EQ(countOf(R"({"model_type": "gpt2"})"), 124'439'808);
    EXPECT_EQ(countOf(R"({"model_type": "llama"})"), 6'738'415'616);
    EXPECT_EQ(countOf(R"({"model_type": "mixtral"})"), 46'702'792'704);
    EXPECT_EQ(readTransformer(R"({"model_type": "mistral"})").kvHeads, 8);
    EXPECT_EQ(readTransformer(R"({"model_type": "qwen3"})").headDim, 128);
}

TEST(HfConfig, AliasesMeanTheSame) {
    const TransformerSpec a = readTransformer(R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 512})");
    const TransformerSpec b = readTransformer(
        R"({"model_type": "gpt2", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "max_position_embeddings": 512})");
    EXPECT_EQ(a.hidden, 1024);
    EXPECT_EQ(a.hidden, b.hidden);
    EXPECT_EQ(a.layers, b.layers);
    EXPECT_EQ(a.heads, b.heads);
    EXPECT_EQ(a.contextLength, b.contextLength);
    EXPECT_EQ(a.ffn, 4096);
}

TEST(HfConfig, NullMeansDerive) {
    const TransformerSpec spec =
        readTransformer(R"({"model_type": "qwen3", "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": null, "head_dim": null})");
    EXPECT_EQ(spec.kvHeads, 32);
    EXPECT_EQ(spec.headDim, 64);
    EXPECT_EQ(readTransformer(R"({"model_type": "gpt2", "n_embd": 256, "n_head": 4, "n_inner": null})").ffn, 1024);
}

TEST(HfConfig, AMultimodalFileIsReadFromItsTextConfig) {
    const TransformerSpec spec = readTransformer(R"({"model_type": "llava", "text_config": {"model_type": "llama", "num_hidden_layers": 3}})");
    EXPECT_EQ(spec.layers, 3);
}

TEST(HfConfig, BiasesFollowTheClass) {
    const TransformerSpec qwen = readTransformer(R"({"model_type": "qwen2"})");
    EXPECT_TRUE(qwen.queryKeyValueBias);
    EXPECT_FALSE(qwen.attentionOutputBias);
    const TransformerSpec llama = readTransformer(R"({"model_type": "llama", "attention_bias": true})");
    EXPECT_TRUE(llama.queryKeyValueBias && llama.attentionOutputBias);
}

TEST(HfConfig, OtherFamiliesCountTheirPublishedParameters) {
    // facebook/opt-125m: 125,239,296.
    EXPECT_EQ(countOf(R"({"model_type": "opt"})"), 125'239'296);
    // EleutherAI/pythia-1b: 1,011,781,632.
    EXPECT_EQ(countOf(R"({"model_type": "gpt_neox", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 8,
                          "intermediate_size": 8192, "vocab_size": 50304})"), 1'011'781'632);
    // microsoft/phi-1_5: 1,418,270,720.
    EXPECT_EQ(countOf(R"({"model_type": "phi"})"), 1'418'270'720);
    // google/gemma-7b: 8,537,680,896; google/gemma-2-2b: 2,614,341,888.
    EXPECT_EQ(countOf(R"({"model_type": "gemma"})"), 8'537'680'896);
    EXPECT_EQ(countOf(R"({"model_type": "gemma2"})"), 2'614'341'888);
    // Qwen/Qwen3-8B: 8,190,735,360.
    EXPECT_EQ(countOf(R"({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
                          "intermediate_size": 12288})"), 8'190'735'360);
    // mosaicml/mpt-7b, with ALiBi and no biases: 6,649,286,656.
    EXPECT_EQ(countOf(R"({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": 50432})"), 6'649'286'656);
    // BertForMaskedLM of bert-base-uncased has no pooler but a transform and a bias: 109,514,298.
    EXPECT_EQ(countOf(R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})"), 109'514'298);
}

TEST(HfConfig, AnUnsupportedTypeIsRefusedWithTheListOfSupportedOnes) {
    const std::string error = errorOf(R"({"model_type": "mamba"})");
    EXPECT_THAT(error, HasSubstr("model_type 'mamba' is not supported"));
    for (const std::string& type : supportedModelTypes()) EXPECT_THAT(error, HasSubstr(type));
    EXPECT_THAT(errorOf("{}"), HasSubstr("'model_type' is missing"));
    EXPECT_THAT(errorOf("[]"), HasSubstr("expected an object"));
}

TEST(HfConfig, SizesThatDoNotFitTogetherAreRefused) {
    EXPECT_THAT(errorOf(R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 30})"),
                HasSubstr("30 attention heads do not divide the hidden size 4096"));
    EXPECT_THAT(errorOf(R"({"model_type": "llama", "num_key_value_heads": 5})"), HasSubstr("5 key/value heads do not divide 32"));
    EXPECT_THAT(errorOf(R"({"model_type": "llama", "hidden_size": -1})"), HasSubstr("hidden_size"));
    EXPECT_THAT(errorOf(R"({"model_type": "llama", "hidden_size": "big"})"), HasSubstr("expected a whole number"));
    EXPECT_THAT(errorOf(R"({"model_type": "llama", "num_hidden_layers": 1000000})"), HasSubstr("layers is 1000000"));
    EXPECT_THAT(errorOf(R"({"model_type": "llama", "hidden_act": "mish"})"), HasSubstr("'mish' is not supported"));
    EXPECT_THAT(errorOf(R"({"model_type": "opt", "word_embed_proj_dim": 512})"), HasSubstr("word_embed_proj_dim"));
    EXPECT_THAT(errorOf(R"({"model_type": "mlp"})"), HasSubstr("widths"));
    EXPECT_THAT(errorOf(R"({"model_type": "resnet", "depths": []})"), HasSubstr("stages"));
}

TEST(Catalog, FindsByNameAliasAndHubName) {
    const ModelCatalog catalog = ModelCatalog::builtin().value();
    EXPECT_EQ(catalog.find("gpt2-small").value().name, "gpt2");
    EXPECT_EQ(catalog.find("ResNet50").value().name, "resnet-50");
    EXPECT_EQ(catalog.find("meta-llama/Llama-3.1-8B").value().name, "llama-3.1-8b");
    const auto missing = catalog.find("gtp2-xl");
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().toString(), HasSubstr("gpt2-xl"));
}

TEST(Catalog, NamesAndAliasesAreUniqueAndLowerCase) {
    const ModelCatalog catalog = ModelCatalog::builtin().value();
    std::vector<std::string> names = catalog.names();
    EXPECT_GE(names.size(), 50u);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
    for (const std::string& name : names) EXPECT_EQ(catalog.find(name).value().name, name);
}

TEST(ResolveModel, TakesANameAFileOrADirectory) {
    const ModelCatalog catalog = ModelCatalog::builtin().value();
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "ringside_resolve_model" / "tiny-llama";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << R"({"model_type": "llama", "num_hidden_layers": 2})";
    EXPECT_EQ(resolveModel(catalog, "gpt2-xl").value().name, "gpt2-xl");
    EXPECT_EQ(resolveModel(catalog, (folder / "config.json").string()).value().name, "tiny-llama");
    EXPECT_EQ(std::get<TransformerSpec>(resolveModel(catalog, folder.string()).value().architecture).layers, 2);
    EXPECT_FALSE(resolveModel(catalog, (folder / "missing.json").string()));
    EXPECT_THAT(resolveModel(catalog, folder.parent_path().string()).error().toString(), HasSubstr("holds no config.json"));
    std::filesystem::remove_all(folder.parent_path());
}

}  // namespace
}  // namespace ringside
