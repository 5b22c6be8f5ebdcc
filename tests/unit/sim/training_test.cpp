// What precision, optimizer and recompute do to a step's time and memory.
#include <gtest/gtest.h>

#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

constexpr double kGpt2Parameters = 124'439'808;

std::string gpt2(const std::string& training, const std::string& more = "") {
    return "{'model':'gpt2','device':'a100-80gb-sxm','devices':1,'training':{" + training + "}" + more + "}";
}

/// Bytes per parameter in a category at the peak.
double perParameter(const Prediction& p, MemoryCategory category) { return static_cast<double>(categoryBytes(p, category)) / kGpt2Parameters; }

TEST(OptimizerMemory, IsWhatTheTableSaysForFp32Parameters) {
    // Bytes per parameter: none, the momentum, two moments, two 8-bit moments with a scale per 256. The allocator's blocks may
    // add up to 2 MiB to each of the 148 tensors.
    const std::pair<const char*, double> table[] = {{"sgd", 0}, {"momentum", 4}, {"adam", 8}, {"adamw", 8}, {"adamw-fused", 8}, {"adam-8bit", 2.03}};
    for (const auto& [optimizer, bytes] : table) {
        const Prediction p = predictionOf(gpt2("'micro_batch':1,'optimizer':'" + std::string(optimizer) + "'"));
        EXPECT_NEAR(perParameter(p, MemoryCategory::OptimizerState), bytes, 0.3) << optimizer;
        EXPECT_NEAR(perParameter(p, MemoryCategory::Parameters), 4, 0.2) << optimizer;
    }
}

TEST(OptimizerMemory, AdafactorKeepsRowsAndColumns) {
    // The largest matrix, 50257×768, needs 4·(50257 + 768) B = 0.2 MB; all others less. Far below one byte per parameter.
    const Prediction p = predictionOf(gpt2("'optimizer':'adafactor'"));
    EXPECT_GT(categoryBytes(p, MemoryCategory::OptimizerState), 0);
    EXPECT_LT(perParameter(p, MemoryCategory::OptimizerState), 0.05);
}

TEST(OptimizerMemory, DoesNotExistBeforeTheFirstStepEnds) {
    PredictOptions options{false, true, false};
    const Prediction first = predictionOf(scenarioOf(gpt2("'micro_batch':1", ",'step':'first'")), options);
    const auto stateAt = [&](std::size_t sample) { return first.memory.samples[sample].bytes[static_cast<std::size_t>(MemoryCategory::OptimizerState)]; };
    EXPECT_EQ(stateAt(0), 0);
    EXPECT_NEAR(static_cast<double>(stateAt(first.memory.samples.size() - 1)), 8 * kGpt2Parameters, 0.3 * kGpt2Parameters);
}

TEST(OptimizerMemory, ForeachHoldsAListAsLargeAsTheParametersAndFusedDoesNot) {
    const auto workspace = [](const char* optimizer) {
        return perParameter(predictionOf(gpt2("'seq_len':32,'optimizer':'" + std::string(optimizer) + "'")), MemoryCategory::Workspace);
    };
    EXPECT_NEAR(workspace("adamw"), 4, 0.1);
    EXPECT_LT(workspace("adamw-fused"), 1.3);  // what backward needs for a moment
}

TEST(PrecisionMemory, FollowsTheStoredTypes) {
    struct Row {
        const char* precision;
        double parameters, state;
    };
    // AdamW. bf16-master: 2 B of bf16, and 4 master + 8 moments in fp32.
    for (const Row& row : {Row{"fp32", 4, 8}, Row{"tf32", 4, 8}, Row{"bf16-autocast", 4, 8}, Row{"bf16", 2, 4}, Row{"bf16-master", 2, 12}}) {
        const Prediction p = predictionOf(gpt2("'seq_len':32,'precision':'" + std::string(row.precision) + "'"));
        EXPECT_NEAR(perParameter(p, MemoryCategory::Parameters), row.parameters, 0.2) << row.precision;
        EXPECT_NEAR(perParameter(p, MemoryCategory::OptimizerState), row.state, 0.4) << row.precision;
    }
}

TEST(PrecisionTime, LowerPrecisionIsFasterOnTensorCores) {
    const auto step = [](const char* precision) { return predictionOf(gpt2("'micro_batch':8,'precision':'" + std::string(precision) + "'")).stepSeconds; };
    EXPECT_LT(step("bf16"), step("bf16-autocast"));
    EXPECT_LT(step("bf16-autocast"), step("tf32"));
    EXPECT_LT(step("tf32"), step("fp32"));
}

TEST(PrecisionTime, Fp16UnscalesAndWaitsForTheOverflowFlag) {
    EXPECT_GT(countTasks(scheduleOf(gpt2("'precision':'fp16-autocast'")), TaskRole::Unscale), 0);
    EXPECT_EQ(countTasks(scheduleOf(gpt2("'precision':'bf16-autocast'")), TaskRole::Unscale), 0);
}

TEST(RecomputeTest, KeepsFewerActivationsTheMoreItRecomputes) {
    const auto activations = [](const char* mode) {
        return categoryBytes(predictionOf(gpt2("'micro_batch':8,'attention':'math','recompute':'" + std::string(mode) + "'")), MemoryCategory::Activations);
    };
    EXPECT_LT(activations("selective"), activations("none"));
    EXPECT_LT(activations("full"), activations("selective"));
    // Selective drops the s² tensors: scores and probabilities of 12 heads, 8 samples, 1024² positions, 12 layers, in bf16:
    // 12·8·1024²·12·2 B = 2.4 GB for each of them that is saved.
    EXPECT_GT(activations("none") - activations("selective"), Bytes{2'000'000'000});
}

TEST(RecomputeTest, FullAddsAboutOneForwardOfCompute) {
    const auto compute = [](const char* mode) {
        return predictionOf(gpt2("'micro_batch':8,'recompute':'" + std::string(mode) + "'")).breakdown.compute.seconds();
    };
    // Forward is a third of forward plus backward (2×); blocks are most of it, the head is not run again.
    const double ratio = compute("full") / compute("none");
    EXPECT_GT(ratio, 1.15);
    EXPECT_LT(ratio, 4.0 / 3 + 0.02);
}

TEST(RecomputeTest, OnlyHfuCountsTheWorkDoneAgain) {
    const Prediction none = predictionOf(gpt2("'micro_batch':8")), full = predictionOf(gpt2("'micro_batch':8,'recompute':'full'"));
    EXPECT_EQ(none.mfu, none.hfu);
    // All blocks again: less than 4/3, because the head's share of the FLOPs is not run again. GPT-2's blocks hold
    // 12·(12·768² + 2·1024·768) of those plus the head's 50257·768 multiply-adds per token: 72.7 %, so 1 + 0.727/3 = 1.242.
    EXPECT_NEAR(full.hfu / full.mfu, 1.242, 0.003);
    EXPECT_LT(full.mfu, none.mfu);
}

TEST(RecomputeTest, RunsEveryBlockTwice) {
    const auto tasks = [](const Schedule& schedule, Phase phase) {
        int count = 0;
        for (const Task& task : schedule.programs.front().tasks) count += task.phase == phase && task.role == TaskRole::Op;
        return count;
    };
    const Schedule full = scheduleOf(gpt2("'recompute':'full'")), none = scheduleOf(gpt2("'recompute':'none'"));
    EXPECT_EQ(tasks(none, Phase::Recompute), 0);
    EXPECT_GT(tasks(full, Phase::Recompute), tasks(full, Phase::Forward) / 2);
    EXPECT_LT(tasks(full, Phase::Recompute), tasks(full, Phase::Forward)) << "embedding and head run once";
}

// GPT-2's block ends with the product ffn → hidden and the residual sum. Backward needs what the product reads, not what it writes, so neither runs again.
TEST(RecomputeTest, EarlyStopLeavesOutWhatOnlyTheOutputNeeds) {
    const auto again = [](const Schedule& schedule) {
        std::vector<std::string> names;
        for (const Task& task : schedule.programs.front().tasks)
            if (task.phase == Phase::Recompute && task.role == TaskRole::Op && task.layer == 1) names.push_back(schedule.workload->typeOf(1).ops[static_cast<std::size_t>(task.op)].name);
        return names;
    };
    const std::vector<std::string> whole = again(scheduleOf(gpt2("'precision':'bf16','recompute':'full'"))), early = again(scheduleOf(gpt2("'precision':'bf16','recompute':'full','recompute_early_stop':true")));
    ASSERT_LT(early.size(), whole.size());
    EXPECT_TRUE(std::equal(early.begin(), early.end(), whole.begin()));
    for (std::size_t i = early.size(); i < whole.size(); ++i) EXPECT_TRUE(whole[i] == "mlp.c_proj" || whole[i].find("residual") != std::string::npos || whole[i].find("add") != std::string::npos) << whole[i];
    // A block's products are 12·768² multiply-adds per token, the last of them 4·768²; attention adds 2·1024·768.
    const Prediction full = predictionOf(gpt2("'micro_batch':8,'precision':'bf16','recompute':'full'")), stopped = predictionOf(gpt2("'micro_batch':8,'precision':'bf16','recompute':'full','recompute_early_stop':true"));
    EXPECT_LT(stopped.stepSeconds, full.stepSeconds);
    EXPECT_NEAR((stopped.hfu / stopped.mfu - 1) / (full.hfu / full.mfu - 1), 1 - 4.0 * 768 * 768 / (12.0 * 768 * 768 + 2.0 * 1024 * 768), 0.003);
    EXPECT_EQ(categoryBytes(stopped, MemoryCategory::OptimizerState), categoryBytes(full, MemoryCategory::OptimizerState));
}

TEST(RecomputeTest, EarlyStopIsRefusedWhereCheckpointsReEnter) {
    const auto scenario = [](const char* strategy) { return tryScenario("{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'training':{'recompute':'full','recompute_early_stop':true},'strategy':{'name':'" + std::string(strategy) + "'}}"); };
    for (const char* strategy : {"zero1", "zero3", "megatron"}) EXPECT_FALSE(scenario(strategy)) << strategy;
    for (const char* strategy : {"ddp", "fsdp1", "fsdp2"}) EXPECT_TRUE(scenario(strategy)) << strategy;
}

// Two metrics, each with an fp32 copy (2 + 4 bytes per logit) and log-probabilities (4 + 4): 28 bytes per logit more, and the step waits for them.
TEST(LossMetrics, TakeTheCrossEntropyOfTheLogitsOnceMoreEach) {
    const auto lossBytes = [](const char* more) {
        const Schedule schedule = scheduleOf(gpt2("'micro_batch':8,'precision':'bf16','loss':'fused'" + std::string(more)));
        double bytes = 0;
        for (const KernelWork& kernel : schedule.workload->types.back().ops.back().forward) bytes += kernel.bytes;
        return bytes;
    };
    EXPECT_DOUBLE_EQ(lossBytes(",'loss_metrics':2") - lossBytes(""), 28.0 * 8 * 1024 * 50257);
    EXPECT_FALSE(tryScenario(gpt2("'loss':'fused-linear','loss_metrics':1")));
}

TEST(GradientClipping, AddsKernelsBeforeTheOptimizer) {
    EXPECT_GT(countTasks(scheduleOf(gpt2("'gradient_clipping':true")), TaskRole::ClipGradients), 0);
    EXPECT_EQ(countTasks(scheduleOf(gpt2("'gradient_clipping':false")), TaskRole::ClipGradients), 0);
}

}  // namespace
}  // namespace ringside::testing
