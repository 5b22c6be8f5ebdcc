// PyTorch's ZeroRedundancyOptimizer on DDP's reducer; docs/models/zero.md tells the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "sim/strategy/greedy_partition.h"
#include "tests/support/sharding.h"

namespace ringside::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kName = "'zero-redundancy-optimizer'";

TEST(GreedyPartition, GivesTheLargestFirstToWhoeverHasLeast) {
    // 8 → rank 0, 7 → 1, 6 → 1 (13), 5 → 0 (13), 4 → 0, the lower of two equals (17).
    const std::vector<std::int64_t> sizes{8, 7, 6, 5, 4};
    const auto owned = greedyPartition(sizes, 2);
    ASSERT_EQ(owned.size(), 2U);
    EXPECT_THAT(owned[0].tensors, ElementsAre(0U, 3U, 4U));
    EXPECT_THAT(owned[1].tensors, ElementsAre(1U, 2U));
    EXPECT_EQ(owned[0].elements, 17);
}

TEST(GreedyPartition, NeverSplitsATensor) {
    // One tensor dominates: its owner has ten times the mean, and most ranks have nothing.
    const std::vector<std::int64_t> sizes{1000, 1, 1};
    const auto owned = greedyPartition(sizes, 16);
    ASSERT_EQ(owned.size(), 3U);
    EXPECT_EQ(owned[0].elements, 1000);
    EXPECT_EQ(owned[1].elements, 1);
}

TEST(ZeroRedundancyOptimizer, AllReducesGradientsAndBroadcastsParameters) {
    // (2Ψ·4 B of fp32 gradients and Ψ·2 B of bf16 parameters) · (N − 1)/N.
    for (const int n : {2, 4, 8}) EXPECT_EQ(wireOf(mlp(n, kName + ",'bucket_mb':1000")), ringAllReduce(4 * kMlpParameters, n) + ringGather(2 * kMlpParameters, n)) << n;
    EXPECT_EQ(wireOf(mlp(4, kName, "'grad_accum':3")), wireOf(mlp(4, kName)));
    EXPECT_EQ(wireOf(mlp(4, kName + ",'no_sync':false", "'grad_accum':3")) - ringGather(2 * kMlpParameters, 4), 3 * (wireOf(mlp(4, kName)) - ringGather(2 * kMlpParameters, 4)));
}

TEST(ZeroRedundancyOptimizer, BroadcastsEveryTensorOrOneBucketPerOwner) {
    const auto tensors = collectivesOf(scheduleOf(mlp(4, kName)), TaskRole::ParameterBroadcast);
    ASSERT_EQ(tensors.size(), 6U);
    for (const CollectiveWork& work : tensors) EXPECT_EQ(work.op, CollectiveOp::Broadcast);
    const auto buckets = collectivesOf(scheduleOf(mlp(4, kName + ",'parameters_as_bucket_view':true")), TaskRole::ParameterBroadcast);
    ASSERT_EQ(buckets.size(), 4U);
    // Rank 0 owns the 4096 × 4096 matrix alone.
    EXPECT_EQ(buckets[0].elements, 4096 * 4096);
}

TEST(ZeroRedundancyOptimizer, BroadcastsFollowTheUpdateAndNothingHidesThem) {
    const Prediction p = predictionOf(scenarioOf(mlp(4, kName)), {false, false, false});
    const TaskId update = tasksOf(*p.schedule, TaskRole::OptimizerKernel).back();
    for (const TaskId t : tasksOf(*p.schedule, TaskRole::ParameterBroadcast)) EXPECT_GE(p.timeline.classes[0][t].start, p.timeline.classes[0][update].end);
}

TEST(ZeroRedundancyOptimizer, OnlyOptimizerStateIsSaved) {
    // The heaviest of 4 ranks owns the 4096 × 4096 matrix: 12 B each for master and moments, where DDP has them for all.
    const Schedule shared = scheduleOf(mlp(4, kName)), ddp = scheduleOf(mlp(4, "'ddp'"));
    EXPECT_EQ(persistentBytes(shared, MemoryCategory::OptimizerState), 12 * 4096 * 4096);
    EXPECT_EQ(persistentBytes(ddp, MemoryCategory::OptimizerState), 12 * kMlpParameters);
    for (const MemoryCategory same : {MemoryCategory::Parameters, MemoryCategory::Buckets}) EXPECT_EQ(persistentBytes(shared, same), persistentBytes(ddp, same));
    EXPECT_EQ(mostLive(shared, MemoryCategory::Gradients), mostLive(ddp, MemoryCategory::Gradients));
}

TEST(ZeroRedundancyOptimizer, MoreRanksDoNotHelpBeyondTheLargestTensor) {
    EXPECT_EQ(persistentBytes(scheduleOf(mlp(8, kName)), MemoryCategory::OptimizerState), 12 * 4096 * 4096);
}

TEST(ZeroRedundancyOptimizer, ClippingStillGoesOverAllGradients) {
    const auto kernels = [](const std::string& strategy) { return countTasks(scheduleOf(mlp(4, strategy, "'gradient_clipping':true")), TaskRole::ClipGradients); };
    EXPECT_EQ(kernels(kName), kernels("'ddp'"));
}

TEST(ZeroRedundancyOptimizer, OneRankHasNobodyToTellAnything) {
    const Schedule schedule = scheduleOf(mlp(1, kName));
    EXPECT_TRUE(schedule.collectives.empty());
    EXPECT_EQ(predictionOf(mlp(1, kName)).stepSeconds, predictionOf(mlp(1, "'ddp'")).stepSeconds);
}

TEST(ZeroRedundancyOptimizer, TakesTheReducersKnobsAndNoOthers) {
    EXPECT_THAT(refusal(mlp(4, kName + ",'overlap_comm':true")), HasSubstr("no such setting"));
    EXPECT_LT(wireOf(mlp(4, kName + ",'comm_hook':'bf16'")), wireOf(mlp(4, kName)));
}

TEST(ZeroRedundancyOptimizer, ScheduleIsValidAndFoldsWithEveryKnob) {
    for (const char* knob : {"", ",'parameters_as_bucket_view':true", ",'gradient_as_bucket_view':true", ",'find_unused_parameters':true", ",'comm_hook':'fp16'", ",'no_sync':false"})
        for (const char* training : {"'grad_accum':3", "'precision':'fp16-autocast','gradient_clipping':true", "'precision':'fp32'"})
            for (const char* step : {"steady", "first"}) {
                const Scenario scenario = scenarioOf(mlp(4, kName + knob, training, ",'step':'" + std::string(step) + "'"));
                const Schedule schedule = scheduleOf(scenario), unfolded = unfoldRanks(schedule);
                const Result<void> valid = validateSchedule(schedule);
                ASSERT_TRUE(valid) << knob << training << ": " << valid.error().toString();
                const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                ASSERT_TRUE(prices);
                EXPECT_EQ(play(schedule, *prices)->stepTime, play(unfolded, *prices)->stepTime) << knob;
            }
}

}  // namespace
}  // namespace ringside::testing
