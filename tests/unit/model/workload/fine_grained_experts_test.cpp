// Mixtures of experts with a size of their own, shared experts, dense blocks among them, and the ways in which tokens travel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/json_cursor.h"
#include "model/workload/hf_config.h"
#include "shard_test_models.h"

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TransformerSpec specOf(const char* text) {
    const Json json = parseJson(text, "config.json").value();
    return std::get<TransformerSpec>(modelFromHfConfig(JsonCursor(json, "config.json")).value().architecture);
}

std::string errorOf(const char* text) {
    const Json json = parseJson(text, "config.json").value();
    const auto result = modelFromHfConfig(JsonCursor(json, "config.json"));
    return result ? "no error" : result.error().toString();
}

Workload build(const std::string& name, std::int64_t tokens, const ModelShard& shard = {}, GatedKernel kernel = GatedKernel::Eager) {
    TrainingConfig training = shardTraining("bf16", 1, tokens);
    training.gatedActivation = kernel;
    return buildWorkload(catalogModel(name), training, shard).value();
}

const LayerType& expertBlock(const Workload& workload) { return workload.typeOf(workload.layers.size() - 2); }

TEST(FineGrainedExperts, ActiveParametersAreThoseThatTheirNamesPromise) {
    struct Row {
        const char* name;
        std::int64_t active;
        double published;  // billions, as the model cards round them
    };
    // Total less the experts that a token does not use: 3·h·f each.
    for (const Row& row : {Row{"qwen3-30b-a3b", 3'353'032'704, 3.3}, Row{"qwen3-235b-a22b", 22'190'763'520, 22}, Row{"deepseek-v2", 21'375'800'320, 21},
                           Row{"deepseek-v3", 37'552'282'624, 37}, Row{"kimi-k2", 32'861'477'888, 32}}) {
        const ModelSpec model = catalogModel(row.name);
        const double active = activeParameters(std::get<TransformerSpec>(model.architecture), build(row.name, 16));
        EXPECT_DOUBLE_EQ(active, static_cast<double>(row.active)) << row.name;
        EXPECT_NEAR(active / 1e9, row.published, 0.03 * row.published) << row.name;
    }
}

TEST(FineGrainedExperts, HaveTheirOwnSizeAndAreFedTheirShareOfTheTokens) {
    const Workload workload = build("qwen3-30b-a3b", 4096);
    // 4096 tokens × 8 choices over 128 experts: 256 rows each, 2048 → 2·768 → 2048.
    EXPECT_EQ(shardOp(expertBlock(workload), "mlp.experts.gate_up_proj").forward.front().shape, (GemmShape{128, 256, 2 * 768, 2048}));
    EXPECT_EQ(shardOp(expertBlock(workload), "mlp.experts.down_proj").forward.front().shape, (GemmShape{128, 256, 2048, 768}));
}

TEST(FineGrainedExperts, SharedOnesAreADenseMlpBesideThem) {
    const Workload workload = build("deepseek-v2", 256);
    // Two of 1536, every token: one MLP of 3072.
    EXPECT_EQ(shardOp(expertBlock(workload), "mlp.shared_experts.gate_proj").forward.front().shape, (GemmShape{1, 256, 3072, 5120}));
    EXPECT_EQ(shardOp(expertBlock(workload), "mlp.shared_experts.down_proj").forward.front().shape, (GemmShape{1, 256, 5120, 3072}));
}

TEST(FineGrainedExperts, StandInEveryBlockButTheDenseOnes) {
    const Workload workload = build("deepseek-v3", 16);
    std::vector<std::size_t> dense;
    for (std::size_t l = 0; l < workload.layers.size(); ++l)
        if (workload.typeOf(l).name == "dense_block") dense.push_back(l);
    EXPECT_THAT(dense, ElementsAre(1, 2, 3));
    EXPECT_EQ(workload.types.size(), 4u);  // embedding, dense block, block, head
}

TEST(FineGrainedExperts, DenseBlocksFollowTheKeysOfEachClass) {
    const char* qwen = R"({"model_type": "qwen3_moe", "num_hidden_layers": 6, "decoder_sparse_step": 2, "mlp_only_layers": [1]})";
    EXPECT_THAT(specOf(qwen).denseLayers, ElementsAre(0, 1, 2, 4));  // sparse where (i + 1) divides by the step, and not named
    const char* deepSeek = R"({"model_type": "deepseek_v3", "num_hidden_layers": 6, "first_k_dense_replace": 2, "moe_layer_freq": 2})";
    EXPECT_THAT(specOf(deepSeek).denseLayers, ElementsAre(0, 1, 3, 5));  // sparse from the second on where i divides by the frequency
    EXPECT_THAT(specOf(R"({"model_type": "qwen3_moe"})").denseLayers, IsEmpty());
    EXPECT_THAT(specOf(R"({"model_type": "kimi_k2"})").denseLayers, ElementsAre(0, 1, 2));
    // Dense throughout: no experts at all.
    EXPECT_EQ(specOf(R"({"model_type": "deepseek_v3", "num_hidden_layers": 2, "first_k_dense_replace": 2})").experts, 0);
}

TEST(FineGrainedExperts, DefaultsAreThoseOfTransformers) {
    const TransformerSpec v3 = specOf(R"({"model_type": "deepseek_v3"})");
    EXPECT_EQ(v3.experts, 256);
    EXPECT_EQ(v3.headDim, 192);
    EXPECT_TRUE(v3.router.sigmoid && v3.router.bias && v3.router.normalize);
    const TransformerSpec qwen = specOf(R"({"model_type": "qwen3_moe"})");
    EXPECT_EQ(qwen.expertWidth(), 768);
    EXPECT_FALSE(qwen.router.normalize);
    EXPECT_TRUE(qwen.queryKeyNorm);
    // What transformers leaves out is asked for by another name.
    EXPECT_EQ(specOf(R"({"model_type": "deepseek_v3", "num_nextn_predict_layers": 1})").predictionModules, 0);
    EXPECT_EQ(specOf(R"({"model_type": "deepseek_v3", "mtp_num_layers": 1})").predictionModules, 1);
}

TEST(FineGrainedExperts, RefusalsNameTheKey) {
    EXPECT_THAT(errorOf(R"({"model_type": "deepseek_v2"})"), HasSubstr("num_experts_per_tok is missing"));
    EXPECT_THAT(errorOf(R"({"model_type": "deepseek_v3", "scoring_func": "tanh"})"), HasSubstr("expected softmax or sigmoid"));
    EXPECT_THAT(errorOf(R"({"model_type": "deepseek_v3", "num_key_value_heads": 8})"), HasSubstr("8 key/value heads for 128 attention heads"));
    EXPECT_THAT(errorOf(R"({"model_type": "qwen3_moe", "mlp_only_layers": [24]})"), HasSubstr("mlp_only_layers"));
}

TEST(RouterCorrections, AreStateAndNotTrained) {
    // 58 blocks of 256: with them DeepSeek-V3's 671,026,419,200.
    const Workload workload = build("deepseek-v3", 16);
    EXPECT_EQ(bufferElementCount(workload), 58 * 256);
    EXPECT_EQ(parameterCount(workload) + bufferElementCount(workload), 671'026'419'200);
    const Workload kimi = build("kimi-k2", 16);
    EXPECT_EQ(parameterCount(kimi) + bufferElementCount(kimi), 1'026'408'232'448);
}

TEST(RoutingWeights, MultipliedInsideAFusedActivationSpareTheirOutputs) {
    const Workload eager = build("qwen3-30b-a3b", 512), fused = build("qwen3-30b-a3b", 512, {}, GatedKernel::Fused);
    // Per row (512 × 8): without the output of the experts, 2048 in bf16, act(gate), 768, and with a copy of the weight in fp32; the weights by token stay
    // with the router.
    EXPECT_EQ(savedBytes(expertBlock(eager)) - savedBytes(expertBlock(fused)), 4096 * (2 * 2048 + 2 * 768 - 4));
    EXPECT_DOUBLE_EQ(forwardFlops(eager), forwardFlops(fused));
}

TEST(ExpertDispatch, SortsWhatArrivesWhereARankHasSeveralExperts) {
    const auto sorts = [](std::int64_t ep) {
        int count = 0;
        const Workload workload = build("qwen3-30b-a3b", 512, expertShard(ep));
        for (const Op& op : expertBlock(workload).ops) count += op.name.ends_with(".sort");
        return count;
    };
    EXPECT_EQ(sorts(1), 0);  // sorted when they were gathered
    EXPECT_EQ(sorts(8), 2);  // before the experts and after
    EXPECT_EQ(sorts(128), 0);
}

TEST(ExpertDispatch, ByTheFlexDispatcherSendsATokenOnceToEachRank) {
    ModelShard shard = expertShard(8);
    shard.sendsTokensOnce = true;
    const LayerType block = expertBlock(build("deepseek-v3", 4096, shard));
    // Of 256 experts a rank holds 32: none of a token's eight with (224·223·…·217)/(256·255·…·249) = 0.33817, so that 8·(1 − 0.33817) = 5.2947 ranks get it.
    const std::int64_t rows = 21687;  // 4096 · 5.2947
    std::vector<std::int64_t> sent;
    for (const OpCollective& collective : collectivesOf(block, false)) sent.push_back(collective.elements);
    EXPECT_THAT(sent, ElementsAre(rows * 7168, rows * 7168));
    // The experts' products are the same.
    EXPECT_EQ(shardOp(block, "mlp.experts.down_proj").forward.front().shape, (GemmShape{32, 1024, 7168, 2048}));
}

TEST(ExpertDispatch, IsTheSameByBothDispatchersWhereNothingTravels) {
    ModelShard shard;
    shard.sendsTokensOnce = true;
    EXPECT_DOUBLE_EQ(forwardFlops(build("qwen3-30b-a3b", 256, shard)), forwardFlops(build("qwen3-30b-a3b", 256)));
}

TEST(WholeExperts, SpreadOverTheTensorAxisTooAndGatherNothing) {
    ModelShard shard = expertShard(8, 2, true);
    const LayerType cut = expertBlock(build("qwen3-235b-a22b", 1024, shard));
    shard.wholeExperts = true;
    const LayerType whole = expertBlock(build("qwen3-235b-a22b", 1024, shard));
    // Half of the tokens, all of the width: as much work, no gather of rows between the all-to-alls and the products.
    EXPECT_EQ(shardOp(cut, "mlp.experts.gate_up_proj").forward.front().shape, (GemmShape{16, 512, 1536, 4096}));
    EXPECT_EQ(shardOp(whole, "mlp.experts.gate_up_proj").forward.front().shape, (GemmShape{16, 256, 2 * 1536, 4096}));
    for (const Parameter& parameter : whole.parameters)
        if (parameter.name.starts_with("mlp.experts")) {
            EXPECT_TRUE(parameter.expert && !parameter.tensorSharded) << parameter.name;
        }
    const auto gathers = [](const LayerType& block) {
        int count = 0;
        for (const OpCollective& collective : collectivesOf(block, false)) count += collective.op == CollectiveOp::AllGather;
        return count;
    };
    EXPECT_EQ(gathers(cut), gathers(whole) + 1);
}

TEST(WholeExperts, NeedSequenceParallelism) {
    ModelShard shard = expertShard(8, 2);
    shard.wholeExperts = true;
    const auto refused = buildWorkload(catalogModel("qwen3-235b-a22b"), shardTraining("bf16", 1, 1024), shard);
    EXPECT_THAT(refused.error().toString(), HasSubstr("set sequence_parallel to true"));
}

}  // namespace
}  // namespace ringside
