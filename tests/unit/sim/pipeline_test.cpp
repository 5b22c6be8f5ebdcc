// Pipelines: the order of passes, and what a pipelined step costs.
#include <gmock/gmock.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "sim/strategy/pipeline_order.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// "F0 F1 B0 …"; with several chunks "F0.1".
std::string drawn(const std::vector<PipelinePass>& order, bool chunks = false) {
    std::string text;
    for (const PipelinePass& pass : order) {
        if (!text.empty()) text += ' ';
        text += (pass.forward ? "F" : "B") + std::to_string(pass.microStep) + (chunks ? "." + std::to_string(pass.chunk) : "");
    }
    return text;
}

TEST(PipelineOrder, GPipeRunsAllForwardsFirst) {
    EXPECT_EQ(drawn(pipelineOrder(PipelineKind::GPipe, 1, 2, 1, 3)), "F0 F1 F2 B0 B1 B2");
}

TEST(PipelineOrder, OneForwardOneBackwardWarmsUpWithAsManyForwardsAsStagesFollow) {
    EXPECT_EQ(drawn(pipelineOrder(PipelineKind::OneForwardOneBackward, 0, 4, 1, 5)), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
    EXPECT_EQ(drawn(pipelineOrder(PipelineKind::OneForwardOneBackward, 3, 4, 1, 5)), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
    EXPECT_EQ(drawn(pipelineOrder(PipelineKind::OneForwardOneBackward, 0, 4, 1, 2)), "F0 F1 B0 B1");  // fewer micro-batches than stages
}

TEST(PipelineOrder, InterleavedTakesChunksInTurnsOfAsManyMicroBatchesAsStages) {
    // Two stages, two chunks: stage 0 warms up with 2·(2−0−1) + (2−1)·2 = 4 forwards.
    EXPECT_EQ(drawn(pipelineOrder(PipelineKind::Interleaved, 0, 2, 2, 2), true), "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
    EXPECT_EQ(drawn(pipelineOrder(PipelineKind::Interleaved, 1, 2, 2, 2), true), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0");
}

TEST(PipelineOrder, EveryPassHappensOnceAndBackwardAfterForward) {
    for (const PipelineKind kind : {PipelineKind::GPipe, PipelineKind::OneForwardOneBackward, PipelineKind::Interleaved})
        for (int stages : {2, 3, 4})
            for (int stage = 0; stage < stages; ++stage)
                for (int groups : {1, 2, 3}) {
                    const int chunks = kind == PipelineKind::Interleaved ? 3 : 1, microSteps = groups * stages;
                    std::map<std::pair<int, int>, int> seen;
                    for (const PipelinePass& pass : pipelineOrder(kind, stage, stages, chunks, microSteps)) {
                        int& state = seen[{pass.microStep, pass.chunk}];
                        EXPECT_EQ(state, pass.forward ? 0 : 1);
                        ++state;
                    }
                    EXPECT_EQ(static_cast<int>(seen.size()), chunks * microSteps);
                }
}

const char* kLlama = "{'model_type': 'llama', 'num_hidden_layers': 8, 'num_attention_heads': 8, 'num_key_value_heads': 8, 'hidden_size': 1024,"
                     "'intermediate_size': 4096, 'vocab_size': 32000, 'max_position_embeddings': 2048, 'tie_word_embeddings': false}";

Scenario pipeline(const std::string& strategy, int devices, int gradAccum, const std::string& training = "") {
    return scenarioOf(fmt::format("{{'model': {}, 'device': 'h100-sxm', 'devices': {}, 'training': {{'grad_accum': {}, 'precision': 'bf16'{}}}, 'strategy': {{'name': 'ddp', {}}}}}", kLlama,
                                  devices, gradAccum, training, strategy));
}

TEST(Pipeline, EveryKindPassesTheValidatorAndFoldsExactly) {
    for (const char* strategy : {"'pp': 2", "'pp': 4, 'pipeline_schedule': 'gpipe'", "'pp': 2, 'pipeline_schedule': 'interleaved', 'virtual_stages': 4", "'pp': 2, 'tp': 2",
                                 "'pp': 2, 'tp': 2, 'sequence_parallel': true", "'pp': 2, 'cp': 2", "'pp': 2, 'cp': 2, 'context_balanced': false"}) {
        SCOPED_TRACE(strategy);
        const Scenario scenario = pipeline(strategy, 8, 8, ", 'recompute': 'full'");
        const Schedule schedule = scheduleOf(scenario);
        const Result<void> valid = validateSchedule(schedule);
        EXPECT_TRUE(valid) << valid.error().toString();
        const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, DType::Bf16, scenario.pricing);
        ASSERT_TRUE(prices);
        EXPECT_EQ(play(schedule, *prices)->stepTime, play(unfoldRanks(schedule), *prices)->stepTime);
    }
}

TEST(Pipeline, ABubbleOfStagesMinusOneMicroBatchesIsAddedByBothGPipeAndOneForwardOneBackward) {
    // Ideal: m micro-batches of t. With p stages: (m + p − 1)·t. The stages are not alike (embedding, head), so t is taken from
    // the growth with m, and the whole must be within a fifth of the formula.
    for (const char* kind : {"gpipe", "1f1b"}) {
        const std::string strategy = fmt::format("'pp': 4, 'pipeline_schedule': '{}'", kind);
        const double t8 = predictionOf(pipeline(strategy, 4, 8)).stepSeconds, t16 = predictionOf(pipeline(strategy, 4, 16)).stepSeconds;
        const double t = (t16 - t8) / 8;
        EXPECT_NEAR(t16, (16 + 3) * t, 0.2 * t16) << kind;
        EXPECT_GT(t16, (16 + 1) * t) << kind;
    }
}

TEST(Pipeline, OneForwardOneBackwardSavesMemoryNotTime) {
    const Prediction gpipe = predictionOf(pipeline("'pp': 4, 'pipeline_schedule': 'gpipe'", 4, 16)), plain = predictionOf(pipeline("'pp': 4", 4, 16));
    EXPECT_NEAR(plain.stepSeconds, gpipe.stepSeconds, 0.02 * gpipe.stepSeconds);
    EXPECT_LT(categoryBytes(plain, MemoryCategory::Activations), categoryBytes(gpipe, MemoryCategory::Activations) / 2);
}

TEST(Pipeline, InterleavingShrinksTheBubble) {
    EXPECT_LT(predictionOf(pipeline("'pp': 4, 'pipeline_schedule': 'interleaved', 'virtual_stages': 2", 4, 4)).stepSeconds, predictionOf(pipeline("'pp': 4", 4, 4)).stepSeconds);
}

TEST(Pipeline, AMiddleStageSendsOneActivationForwardAndOneGradientBackPerMicroBatch) {
    // b·s·h = 1·2048·1024 elements of 2 bytes each way; 4 micro-batches; one data-parallel rank, so nothing else is sent.
    const Schedule schedule = scheduleOf(pipeline("'pp': 4", 4, 4));
    const Bytes activation = Bytes{2048} * 1024 * 2;
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 4 * activation);
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[1]), 8 * activation);
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[3]), 4 * activation);
}

TEST(Pipeline, StagesThatCannotBeFilledAreRefused) {
    const Result<Prediction> tooMany = predict(pipeline("'pp': 16", 16, 16));
    ASSERT_FALSE(tooMany);
    EXPECT_THAT(tooMany.error().toString(), HasSubstr("has 8 blocks, which cannot be cut into 16 stages"));
    const Result<Prediction> uneven = predict(pipeline("'pp': 4, 'pipeline_schedule': 'interleaved'", 4, 6));
    ASSERT_FALSE(uneven);
    EXPECT_THAT(uneven.error().toString(), HasSubstr("needs a multiple of 4 micro-batches, found 6"));
    EXPECT_THAT(refusal("{'model': 'gpt2', 'device': 'h100-sxm', 'devices': 8, 'strategy': {'name': 'ddp', 'tp': 3}}"), HasSubstr("does not divide 8 devices"));
}

TEST(Pipeline, WhoeverSharesTheEmbeddingIsInTheLastStage) {
    const auto written = [](int modules) {
        return writeSchedule(scenarioOf(fmt::format("{{'model': {{'model_type': 'deepseek_v3', 'hidden_size': 256, 'intermediate_size': 512, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 4, "
                                                  "'vocab_size': 1000, 'max_position_embeddings': 512, 'n_routed_experts': 8, 'num_experts_per_tok': 2, 'moe_intermediate_size': 64, 'first_k_dense_replace': 0, "
                                                  "'q_lora_rank': null, 'kv_lora_rank': 64, 'qk_nope_head_dim': 32, 'qk_rope_head_dim': 16, 'v_head_dim': 32, 'n_group': 2, 'topk_group': 1, 'mtp_num_layers': {}}}, "
                                                  "'device': 'h100-sxm', 'devices': {}, 'strategy': {{'name': 'ddp', 'pp': {}}}, 'training': {{'grad_accum': 4}}}}",
                                                  modules, 2 + modules, 2 + modules)));
    };
    const Result<Schedule> one = written(1);  // block, block, module
    ASSERT_TRUE(one) << one.error().toString();
    EXPECT_TRUE(validateSchedule(*one));
    const Result<Schedule> two = written(2);  // the first module would stand before the last stage
    ASSERT_FALSE(two);
    EXPECT_THAT(two.error().toString(), HasSubstr("which shares the embedding, is not in the last of 4 pipeline chunks"));
}

TEST(Pipeline, AnInterleavedOneCannotReduceInEveryMicroStep) {
    const Result<Prediction> refused = predict(pipeline("'pp': 4, 'pipeline_schedule': 'interleaved', 'no_sync': false", 8, 8));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().toString(), HasSubstr("buckets cannot be reduced in every micro-step"));
}

TEST(Pipeline, ATiedEmbeddingIsSummedBetweenFirstAndLastStage) {
    const Schedule schedule = scheduleOf("{'model': 'gpt2', 'device': 'h100-sxm', 'devices': 2, 'strategy': {'name': 'ddp', 'pp': 2}, 'training': {'grad_accum': 2}}");
    EXPECT_TRUE(validateSchedule(schedule));
    // 50257 · 768 elements, once on each stage.
    for (const RankProgram& program : schedule.programs) {
        int sums = 0;
        for (const Task& task : program.tasks) sums += task.kind == TaskKind::Collective && schedule.collectives[task.work].op == CollectiveOp::AllReduce && schedule.collectives[task.work].elements == 50257 * 768;
        EXPECT_EQ(sums, 1);
    }
}

}  // namespace
}  // namespace ringside
