// torch.nn.DataParallel; docs/models/data-parallel.md tells the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kGpt2Parameters = 124'439'808;

std::string gpt2(int devices, const std::string& training = "'micro_batch':2", const std::string& strategy = "'dp'") {
    return "{'model':'gpt2','device':'a100-80gb-sxm','devices':" + std::to_string(devices) + ",'training':{" + training + "},'strategy':" + strategy + "}";
}

std::int64_t elements(const std::vector<CollectiveWork>& works) {
    std::int64_t sum = 0;
    for (const CollectiveWork& work : works) sum += work.elements;
    return sum;
}

const RankProgram& replica(const Schedule& schedule) { return schedule.programs[schedule.classes[1].program]; }

TEST(DataParallel, BroadcastsTheModelInEveryForwardAndReducesEveryGradient) {
    for (const int accumulation : {1, 3}) {
        const Schedule schedule = scheduleOf(gpt2(4, "'micro_batch':2,'grad_accum':" + std::to_string(accumulation)));
        EXPECT_EQ(elements(collectivesOf(schedule, TaskRole::Replicate)), accumulation * kGpt2Parameters);
        EXPECT_EQ(elements(collectivesOf(schedule, TaskRole::SumGradient)), accumulation * kGpt2Parameters);
    }
}

TEST(DataParallel, SendsTheModelTheGradientsAndTheLogits) {
    // Mean over the ranks: Ψ·4 broadcast and Ψ·4 reduced along a chain that one rank ends, so 3/4 of each; b·s·V logits of 2 B come from three
    // of four ranks, and their gradients go to three of four.
    const std::int64_t logits = 2LL * 1024 * 50257 * 2;
    const Schedule schedule = scheduleOf(gpt2(4));
    EXPECT_EQ(bytesSentPerRank(CollectiveOp::Gather, 4 * logits, 4), 3 * logits / 4);
    EXPECT_EQ(bytesSentPerRank(CollectiveOp::Scatter, 4 * logits, 4), 3 * logits / 4);
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 2 * 3 * kGpt2Parameters + 2 * (3 * logits / 4));
}

TEST(DataParallel, ChunksAreBelowTenMebibytesUnlessOneTensorIsNot) {
    const Schedule schedule = scheduleOf(gpt2(4));
    int above = 0;
    for (const CollectiveWork& work : collectivesOf(schedule, TaskRole::Replicate)) above += work.bytes() >= 10 * kMiB;
    // wte alone (147 MiB), no other tensor of GPT-2 reaches 10 MiB: c_fc has 768·3072·4 B = 9 MiB.
    EXPECT_EQ(above, 1);
    EXPECT_GT(collectivesOf(schedule, TaskRole::Replicate).size(), 30U);
}

TEST(DataParallel, NoGradientIsReducedBeforeBackwardIsOver) {
    const Schedule schedule = scheduleOf(gpt2(4));
    for (const RankProgram& program : schedule.programs) {
        std::size_t lastBackward = 0, firstSum = program.tasks.size();
        for (std::size_t t = program.tasks.size(); t-- > 0;) {
            if (program.tasks[t].phase == Phase::Backward) lastBackward = std::max(lastBackward, t);
            if (program.tasks[t].role == TaskRole::SumGradient) firstSum = t;
        }
        EXPECT_GT(firstSum, lastBackward);
    }
    EXPECT_EQ(predictionOf(gpt2(4)).breakdown.communicationHidden, Time()) << "nothing overlaps";
}

TEST(DataParallel, TheLossIsComputedOnDevice0ForTheWholeBatch) {
    const Schedule schedule = scheduleOf(gpt2(4));
    const auto lossBytes = [&](const RankProgram& program) {
        double bytes = 0;
        for (const Task& task : program.tasks)
            if (task.role == TaskRole::Op && schedule.workload->layers[static_cast<std::size_t>(task.layer)].name == "loss") bytes += schedule.kernels[task.work].bytes;
        return bytes;
    };
    EXPECT_EQ(lossBytes(replica(schedule)), 0);
    // Per logit: cast 2 + 4 B, log softmax 8 B, its gradient 4 + 12 B, cast back 6 B; and three values per row.
    const double logits = 4 * 2 * 1024 * 50257.0, rows = 4 * 2 * 1024;
    EXPECT_NEAR(lossBytes(schedule.programs.front()), logits * 36 + rows * 12, 0.01 * logits);
    // Eight times the devices, eight times the loss: time on device 0 grows with them, though every replica does the same as before.
    EXPECT_GT(predictionOf(gpt2(8)).stepSeconds, predictionOf(gpt2(2)).stepSeconds * 1.2);
}

TEST(DataParallel, OnlyDevice0HasAnOptimizer) {
    const Schedule schedule = scheduleOf(gpt2(4));
    EXPECT_GT(countTasks(schedule, TaskRole::OptimizerKernel), 0);
    for (const Task& task : replica(schedule).tasks) EXPECT_NE(task.role, TaskRole::OptimizerKernel);
    for (const Buffer& buffer : replica(schedule).buffers) EXPECT_NE(buffer.category, MemoryCategory::OptimizerState);
}

TEST(DataParallel, Device0HoldsMostAndIsTheOneReported) {
    const Prediction prediction = predictionOf(gpt2(8));
    const Schedule& schedule = *prediction.schedule;
    EXPECT_EQ(schedule.classes[prediction.memoryClass].ranks.first, 0);
    // 4Ψ parameters and 8Ψ state, up to the allocator's rounding; gathered logits of the whole batch and the loss' own values besides.
    EXPECT_NEAR(static_cast<double>(categoryBytes(prediction, MemoryCategory::OptimizerState)), 8.0 * kGpt2Parameters, 2e6);
    const double whole = 8 * 2 * 1024 * 50257.0;
    EXPECT_GT(static_cast<double>(categoryBytes(prediction, MemoryCategory::Activations)), whole * (2 + 4));
    EXPECT_GT(prediction.memory.peakAllocated, predictionOf(gpt2(8, "'micro_batch':2", "'ddp'")).memory.peakAllocated);
}

TEST(DataParallel, OneInterpreterLaunchesForAllDevices) {
    const Schedule schedule = scheduleOf(gpt2(8));
    for (const RankProgram& program : schedule.programs) EXPECT_EQ(program.interpreterThreads, 8);
}

TEST(DataParallel, CannotLeaveItsNode) {
    const Result<Schedule> schedule = writeSchedule(scenarioOf("{'model':'mlp','device':'a100-80gb-sxm','devices':16,'devices_per_node':8,'strategy':'dp'}"));
    ASSERT_FALSE(schedule);
    EXPECT_THAT(schedule.error().toString(), AllOf(HasSubstr("cannot leave its node"), HasSubstr("2 nodes"), HasSubstr("'ddp'")));
}

TEST(DataParallel, IsSlowerThanDdp) { EXPECT_GT(predictionOf(gpt2(8)).stepSeconds, 1.5 * predictionOf(gpt2(8, "'micro_batch':2", "'ddp'")).stepSeconds); }

TEST(DataParallel, SchedulesAreValidAndFold) {
    for (const char* model : {"mlp", "resnet-18", "gpt2", "bert-base", "vit-b-16"})
        for (const int devices : {1, 2, 8})
            for (const char* training : {"'micro_batch':2", "'grad_accum':3,'precision':'fp16-autocast','gradient_clipping':true", "'precision':'bf16-master','recompute':'full'"})
                for (const char* step : {"steady", "first"}) {
                    const Scenario scenario = scenarioOf("{'model':'" + std::string(model) + "','device':'a100-80gb-sxm','devices':" + std::to_string(devices) + ",'training':{" + training +
                                                         "},'strategy':'dp','step':'" + step + "'}");
                    const Schedule schedule = scheduleOf(scenario);
                    const Result<void> valid = validateSchedule(schedule);
                    EXPECT_TRUE(valid) << model << " on " << devices << ": " << (valid ? "" : valid.error().toString());
                    const Prices prices = *priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                    EXPECT_EQ(play(schedule, prices)->stepTime, play(unfoldRanks(schedule), prices)->stepTime);
                }
}

}  // namespace
}  // namespace ringside::testing
