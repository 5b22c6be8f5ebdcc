// Latent attention and multi-token prediction of the DeepSeek models, against counts by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/json_cursor.h"
#include "model/workload/hf_config.h"
#include "shard_test_models.h"

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// V3's attention: q 7168 → 1536 → 128·192; keys and values 7168 → 512 + 64, 512 → 128·(128 + 128); out 128·128 → 7168.
constexpr std::int64_t kV3Attention = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168, kV3AttentionNorms = 1536 + 512;

Workload build(const std::string& name, const TrainingConfig& training, const ModelShard& shard = {}) { return buildWorkload(catalogModel(name), training, shard).value(); }

Workload v3(const ModelShard& shard = {}, std::int64_t seqLen = 1024) { return build("deepseek-v3", shardTraining("bf16", 1, seqLen), shard); }

ModelSpec v3WithPrediction(std::int64_t modules) {
    ModelSpec model = catalogModel("deepseek-v3");
    std::get<TransformerSpec>(model.architecture).predictionModules = modules;
    return model;
}

TEST(LatentAttention, ProjectsDownToOneVectorAndUpToAllHeads) {
    const LayerType block = v3().typeOf(1);
    std::int64_t attention = 0;
    for (const Parameter& parameter : block.parameters)
        if (parameter.name.starts_with("self_attn.")) attention += parameter.elements();
    EXPECT_EQ(attention, kV3Attention + kV3AttentionNorms);
    EXPECT_EQ(shardOp(block, "self_attn.kv_a_proj_with_mqa").attributes[1], 512 + 64);
    EXPECT_EQ(shardOp(block, "self_attn.kv_b_proj").attributes[1], 128 * (128 + 128));
    EXPECT_EQ(shardOp(block, "self_attn.o_proj").attributes[0], 128 * 128);
}

TEST(LatentAttention, WithoutAQueryRankProjectsQueriesStraight) {
    const LayerType block = build("deepseek-v2-lite", shardTraining("bf16", 1, 1024)).typeOf(1);
    EXPECT_EQ(shardOp(block, "self_attn.q_proj").attributes[1], 16 * 192);
    for (const Parameter& parameter : block.parameters) EXPECT_THAT(parameter.name, testing::Not(HasSubstr("q_a_")));
}

TEST(LatentAttention, CountsScoresOverTheHeadOfKeysAndContextOverThatOfValues) {
    const LayerType block = v3({}, 4096).typeOf(1);
    const Op& attention = shardOp(block, "attention");
    // Forward QKᵀ over 192 and PV over 128; backward the scores again, dQ and dK over 192, dP and dV over 128.
    const double pairs = 128.0 * 4096 * 4096;
    EXPECT_DOUBLE_EQ(attention.forward.front().flops, 2 * pairs * (192 + 128));
    EXPECT_DOUBLE_EQ(attention.backward.front().flops, 2 * pairs * (3 * 192 + 2 * 128));
    EXPECT_EQ(attention.forward.front().shape.k, 192);
    EXPECT_EQ(attention.forward.front().valueHead, 128);
    // q and k of 192, v and the context of 128 features per head, in bf16; a log-sum-exp per head.
    EXPECT_DOUBLE_EQ(attention.forward.front().bytes, 4096.0 * 128 * (2 * (192 + 192 + 128 + 128) + 4));
}

TEST(LatentAttention, ForwardFlopsAreTwoPerWeightAndTokenPlusAttention) {
    const TrainingConfig training = shardTraining("bf16", 1, 4096);
    for (const char* name : {"deepseek-v2", "deepseek-v2-lite", "deepseek-v3", "kimi-k2"}) {
        const ModelSpec model = catalogModel(name);
        const auto& spec = std::get<TransformerSpec>(model.architecture);
        const Workload workload = buildWorkload(model, training).value();
        // Every active parameter but the embedding and the norms is a weight of a product.
        double weights = activeParameters(spec, workload) - static_cast<double>(spec.vocab * spec.hidden);
        for (std::size_t l = 0; l < workload.layers.size(); ++l)
            for (const Parameter& parameter : workload.typeOf(l).parameters)
                if (parameter.shape.size() == 1) weights -= static_cast<double>(parameter.elements());
        const double attention = static_cast<double>(spec.layers) * 2 * 4096 * static_cast<double>(spec.heads) * (192 + 128);
        EXPECT_DOUBLE_EQ(forwardFlops(workload), 4096 * (2 * weights + attention)) << name;
    }
}

TEST(LatentAttention, KeepsTheVectorsTheHeadsAndNothingOfTheJointProjection) {
    TrainingConfig training = shardTraining("bf16", 1, 512);
    training.gatedActivation = GatedKernel::Fused;
    const Workload workload = buildWorkload(catalogModel("deepseek-v3"), training).value();
    // A dense block, per token: two norm inputs and what they feed (4·7168), the query's vector before and after its norm (2·1536), that of keys and values
    // (2·512), q and k (2·128·192), v and context (2·128·128), gate, up and their product (3·18432), two bytes each; log-sum-exp of 128 heads and four
    // norms' statistics in fp32.
    EXPECT_EQ(savedBytes(workload.typeOf(1)), 512 * (2 * (4 * 7168 + 2 * 1536 + 2 * 512 + 2 * 128 * 192 + 2 * 128 * 128 + 3 * 18432) + 4 * (128 + 4)));
}

TEST(LatentAttention, OfATensorShardSplitsHeadsAndRepeatsWhatLeadsDown) {
    const Workload whole = v3(), shard = v3(tensorShard(4));
    const auto attentionOf = [](const Workload& workload) {
        std::int64_t elements = 0;
        for (const Parameter& parameter : workload.typeOf(1).parameters)
            if (parameter.name.starts_with("self_attn.")) elements += parameter.elements();
        return elements;
    };
    const std::int64_t down = 7168 * 1536 + 7168 * 576;
    EXPECT_EQ(attentionOf(shard), down + kV3AttentionNorms + (kV3Attention - down) / 4);
    // What leads down sees all tokens: no part of its gradient is elsewhere. With sequence parallelism it sees a quarter.
    EXPECT_EQ(partialGradientElements(shard), 0);
    std::int64_t partial = 0;
    const Workload split = v3(tensorShard(4, true));
    for (const Parameter& parameter : split.typeOf(1).parameters)
        if (parameter.partialOverTensor) partial += parameter.elements();
    EXPECT_EQ(partial, down + kV3AttentionNorms + 2 * 7168);
}

TEST(LatentAttention, IsComputedByEveryAttentionKernelAndContextKindWithTheSameFlops) {
    TrainingConfig training = shardTraining("bf16", 1, 1024);
    const double flash = forwardFlops(build("deepseek-v2-lite", training));
    training.attention = AttentionKernel::Math;
    EXPECT_DOUBLE_EQ(forwardFlops(build("deepseek-v2-lite", training)), flash);
    training.attention = AttentionKernel::Flash;
    const Workload ulysses = build("deepseek-v2-lite", training, contextShard(4, ContextKind::Ulysses));
    EXPECT_DOUBLE_EQ(4 * forwardFlops(ulysses), flash);
    // q 16 heads of 192 and k as many, v and the context of 128.
    EXPECT_THAT(elementsOf(ulysses.typeOf(1), false, CollectiveOp::AllToAll), ElementsAre(256 * 16 * 192, 256 * 16 * 192, 256 * 16 * 128, 256 * 16 * 128));
    const Workload ring = build("deepseek-v2-lite", training, contextShard(4));
    EXPECT_EQ(shardOp(ring.typeOf(1), "attention").ring.exchange.elements, 256 * 16 * (192 + 128));
}

TEST(Prediction, AddsABlockAProjectionOfTwoStatesAndThreeNorms) {
    const TrainingConfig training = shardTraining("bf16", 1, 256);
    const std::int64_t plain = parameterCount(buildWorkload(catalogModel("deepseek-v3"), training).value());
    const std::int64_t experts = std::int64_t{256 + 1} * 3 * 7168 * 2048 + 256 * 7168;
    const std::int64_t module = kV3Attention + kV3AttentionNorms + 2 * 7168 + experts + 2 * 7168 * 7168 + 3 * 7168;
    // README_WEIGHTS.md of DeepSeek-V3: 11.5 B parameters of its own; the embedding and the head are shared.
    EXPECT_NEAR(static_cast<double>(module), 11.5e9, 0.12e9);
    EXPECT_EQ(parameterCount(buildWorkload(v3WithPrediction(1), training).value()), plain + module);
    EXPECT_EQ(parameterCount(buildWorkload(v3WithPrediction(2), training).value()), plain + 2 * module);
}

TEST(Prediction, SendsTheStatesOfEveryModuleThroughTheHead) {
    const Workload workload = buildWorkload(v3WithPrediction(2), shardTraining("bf16", 1, 256)).value();
    const LayerType& head = workload.types.back();
    EXPECT_EQ(head.values[0].shape, (Shape{3, 256, 7168}));
    // m = 3·256 tokens against the vocabulary.
    EXPECT_EQ(shardOp(head, "lm_head").forward.front().shape, (GemmShape{1, 3 * 256, 129280, 7168}));
}

TEST(Prediction, CountsItsBlockAndTheHeadOnceMoreAsModelFlops) {
    const TrainingConfig training = shardTraining("bf16", 1, 4096);
    const ModelSpec plain = catalogModel("deepseek-v3"), predicting = v3WithPrediction(1);
    const double before = modelFlopsPerSample(plain, buildWorkload(plain, training).value());
    const double after = modelFlopsPerSample(predicting, buildWorkload(predicting, training).value());
    // Active in its block: nine experts, the router, attention; the projection; the head.
    const double weights = static_cast<double>(kV3Attention + kV3AttentionNorms + 2 * 7168 + 9 * 3 * 7168 * 2048 + 256 * 7168 + 2 * 7168 * 7168 + 3 * 7168 + 129280 * 7168);
    EXPECT_DOUBLE_EQ(after - before, 4096 * (6 * weights + 12.0 * 128 * 160 * 4096));
}

TEST(Prediction, IsRefusedWithATiedHead) {
    const Json config = parseJson(R"({"model_type": "deepseek_v3", "mtp_num_layers": 1, "tie_word_embeddings": true})", "config.json").value();
    EXPECT_THAT(modelFromHfConfig(JsonCursor(config, "config.json")).error().toString(), HasSubstr("mtp_num_layers to 0"));
}

}  // namespace
}  // namespace ringside
