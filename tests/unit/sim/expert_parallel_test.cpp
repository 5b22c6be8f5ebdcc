// Expert parallelism: experts are shared out, and their gradients are averaged by those who hold the same ones.
#include <gmock/gmock.h>

#include "sim/player/prices.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const std::string kMixtral = "{'model': {'model_type': 'mixtral', 'num_hidden_layers': 2, 'num_attention_heads': 8, 'num_key_value_heads': 8, 'hidden_size': 256, 'intermediate_size': 512,"
                             "'vocab_size': 1000, 'max_position_embeddings': 512, 'num_local_experts': 8, 'num_experts_per_tok': 2, 'tie_word_embeddings': false},"
                             "'device': 'h100-sxm', 'devices': 8, 'training': {'precision': 'fp32', 'seq_len': 128}, 'strategy': ";

std::string wrongBy(const std::string& text) {
    const Result<Scenario> scenario = tryScenario(text);
    if (!scenario) return scenario.error().toString();
    const Result<Schedule> schedule = writeSchedule(*scenario);
    return schedule ? "accepted" : schedule.error().toString();
}

TEST(ExpertParallel, ExpertsAndTheRestTravelInBucketsOfTheirOwn) {
    // 2 layers of 8 experts with 3·256·512 weights each; with ep 4 a rank holds 2 of them and averages them with one other.
    const std::int64_t expertsOfARank = 2LL * 2 * 3 * 256 * 512;
    for (const std::string strategy : {"ddp", "naive", "megatron"}) {
        SCOPED_TRACE(strategy);
        const Schedule schedule = scheduleOf(kMixtral + "{'name': '" + strategy + "', 'ep': 4}}");
        const Result<void> valid = validateSchedule(schedule);
        EXPECT_TRUE(valid) << valid.error().toString();
        std::map<std::string, std::int64_t> reduced;
        for (const Task& task : schedule.programs.front().tasks) {
            if (task.kind != TaskKind::Collective) continue;
            const CollectiveWork& work = schedule.collectives[task.work];
            if (work.op == CollectiveOp::AllReduce || work.op == CollectiveOp::ReduceScatter) reduced[schedule.axes[work.axis].name] += work.elements;
        }
        EXPECT_GE(reduced["expert dp"], expertsOfARank);
        EXPECT_LE(reduced["expert dp"], expertsOfARank + 65536) << "padding at most";
        EXPECT_GT(reduced["dp"], 0);
    }
}

TEST(ExpertParallel, TokensGoToTheirExpertsAndBackInBothPasses) {
    const Schedule schedule = scheduleOf(kMixtral + "{'name': 'ddp', 'ep': 4}}");
    int exchanges = 0;
    for (const Task& task : schedule.programs.front().tasks)
        exchanges += task.kind == TaskKind::Collective && schedule.collectives[task.work].op == CollectiveOp::AllToAll;
    EXPECT_EQ(exchanges, 2 * 4);  // two layers: dispatch and combine, forward and backward
}

/// Seconds of a large dispatch by `flex`, and of the same rows each sent by itself.
std::pair<double, double> dispatchSeconds(int devicesPerNode, double networkScale = 1) {
    std::string text = kMixtral + "{'name': 'megatron', 'ep': 8, 'moe_token_dispatcher': 'flex'}, 'devices_per_node': " + std::to_string(devicesPerNode) + "}";
    Scenario scenario = scenarioOf(text);
    scenario.pricing.networkScale = networkScale;
    Schedule schedule = scheduleOf(scenario);
    double seconds[2] = {0, 0};
    for (double& total : seconds) {
        std::size_t dispatch = 0;
        while (schedule.collectives[dispatch].op != CollectiveOp::AllToAll) ++dispatch;
        schedule.collectives[dispatch].elements = 1 << 28;
        total = priceSchedule(schedule, scenario.cluster, scenario.profiles, DType::Bf16, scenario.pricing)->collectives[dispatch].cost.seconds;
        schedule.collectives[dispatch].spread = {};
    }
    return {seconds[0], seconds[1]};
}

TEST(ExpertParallel, TokensCrossTheNetworkOncePerNodeWithTheFlexDispatcher) {
    // Two of eight experts: 8·(1 − 7·6/(8·7)) = 2 ranks of eight, and 2·(1 − 4·3/(8·7)) = 1.571 nodes of two.
    const auto [once, each] = dispatchSeconds(4);
    EXPECT_NEAR(once / each, 1.571 / 2, 0.01);
    const auto [inNode, alike] = dispatchSeconds(8);
    EXPECT_EQ(inNode, alike) << "one node: nothing to spare";
    // However fast the network is, the links of the node carry every copy.
    const auto [bound, faster] = dispatchSeconds(4, 1000);
    EXPECT_GT(bound / faster, 0.9) << "the network's share does not show";
}

TEST(ExpertParallel, SavesTheMemoryOfTheExpertsItDoesNotHold) {
    const auto parameters = [](int ep) { return categoryBytes(predictionOf(kMixtral + fmt::format("{{'name': 'ddp', 'ep': {}}}}}", ep)), MemoryCategory::Parameters); };
    // 16 experts of 3·256·512 weights of 4 B; three quarters of them are elsewhere.
    EXPECT_NEAR(static_cast<double>(parameters(1) - parameters(4)), 0.75 * 16 * 3 * 256 * 512 * 4, 64 * 1024);
}

TEST(ExpertParallel, WholeExpertsSpreadOverTheTensorAxisAsWell) {
    const std::string strategy = "{'name': 'megatron', 'tp': 2, 'ep': 8, 'sequence_parallel': true";
    const Schedule schedule = scheduleOf(kMixtral + strategy + ", 'etp': 1}}");
    EXPECT_TRUE(validateSchedule(schedule));
    const auto axis = std::find_if(schedule.axes.begin(), schedule.axes.end(), [](const CommAxis& one) { return one.name == "ep"; });
    ASSERT_NE(axis, schedule.axes.end());
    EXPECT_EQ(axis->size, 8);  // of 4 data-parallel ranks × 2
    EXPECT_EQ(axis->stride, 1);
    // Cut over the tensor axis there are only four ranks to share experts out over.
    EXPECT_THAT(wrongBy(kMixtral + strategy + "}}"), HasSubstr("8 expert-parallel ranks do not divide the 4 ranks"));
    EXPECT_THAT(wrongBy(kMixtral + "{'name': 'megatron', 'tp': 4, 'etp': 2}}"), HasSubstr("expected tp, which is 4, or 1"));
}

TEST(ExpertParallel, OverlapHidesTheExchangesOfOneMicroBatchBehindAnother) {
    const auto step = [](const std::string& more, int accumulation) {
        return predictionOf("{'model': 'qwen3-30b-a3b', 'device': 'h100-sxm', 'devices': 16, 'training': {'precision': 'bf16-master', 'seq_len': 4096, 'grad_accum': " + std::to_string(accumulation) +
                            "}, 'strategy': {'name': 'megatron', 'ep': 16" + more + "}}");
    };
    const Prediction apart = step("", 8), overlapped = step(", 'overlap_moe_expert_parallel_comm': true", 8);
    EXPECT_LT(overlapped.stepSeconds, 0.9 * apart.stepSeconds);
    EXPECT_LT(overlapped.breakdown.communicationExposed.seconds(), 0.6 * apart.breakdown.communicationExposed.seconds());
    // What the forward allocates, the backward beside it has freed: hardly more memory.
    EXPECT_NEAR(static_cast<double>(overlapped.memory.peakAllocated), static_cast<double>(apart.memory.peakAllocated), 0.02 * static_cast<double>(apart.memory.peakAllocated));
    // One micro-batch has nothing beside it.
    EXPECT_NEAR(step(", 'overlap_moe_expert_parallel_comm': true", 1).stepSeconds, step("", 1).stepSeconds, 1e-9);
}

TEST(ExpertParallel, OverlapWorksInAnInterleavedPipelineAndIsRefusedInAPlainOne) {
    const auto scenario = [](const std::string& more) {
        return "{'model': {'model_type': 'qwen3_moe', 'num_hidden_layers': 8, 'num_attention_heads': 8, 'num_key_value_heads': 4, 'head_dim': 64, 'hidden_size': 512, 'moe_intermediate_size': 256,"
               "'num_experts': 8, 'num_experts_per_tok': 2, 'vocab_size': 1000}, 'device': 'h100-sxm', 'devices': 8, 'training': {'precision': 'bf16-master', 'seq_len': 512, 'grad_accum': 8},"
               "'strategy': {'name': 'megatron', 'pp': 2, 'ep': 4, 'overlap_moe_expert_parallel_comm': true" + more + "}}";
    };
    const Schedule schedule = scheduleOf(scenario(", 'pipeline_schedule': 'interleaved', 'virtual_stages': 2"));
    const Result<void> valid = validateSchedule(schedule);
    EXPECT_TRUE(valid) << valid.error().toString();
    EXPECT_THAT(wrongBy(scenario("")), HasSubstr("set pipeline_schedule to interleaved"));
}

TEST(PipelineLayout, SaysHowManyBlocksEachStageHas) {
    const auto scenario = [](const std::string& layout) {
        return "{'model': {'model_type': 'llama', 'num_hidden_layers': 5, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'hidden_size': 128, 'intermediate_size': 256, 'vocab_size': 1000},"
               "'device': 'h100-sxm', 'devices': 2, 'training': {'seq_len': 128}, 'strategy': {'name': 'megatron', 'pp': 2" + layout + "}}";
    };
    const auto layersOfFirst = [&](const std::string& layout) {
        const Schedule schedule = scheduleOf(scenario(layout));
        return schedule.programs.front().parameters.back().layer;
    };
    EXPECT_EQ(layersOfFirst(""), 3);  // the embedding is layer 0
    EXPECT_EQ(layersOfFirst(", 'pipeline_layout': [1, 4]"), 1);
    EXPECT_THAT(wrongBy(scenario(", 'pipeline_layout': [2, 1]")), HasSubstr("the 5 blocks"));
    EXPECT_THAT(wrongBy(scenario(", 'pipeline_layout': [1, 2, 2]")), HasSubstr("one for each of 2 chunks"));
}

}  // namespace
}  // namespace ringside
