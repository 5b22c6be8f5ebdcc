// DeepSpeed ZeRO stages 1 and 2; docs/models/zero.md tells the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "sim/strategy/zero_partition.h"
#include "tests/support/sharding.h"

namespace ringside::testing {
namespace {

using ::testing::HasSubstr;

const Bytes kNorm4 = ringAllReduce(4, 4);  // one fp32 over 4 ranks

std::string gpt2(const std::string& strategy, const std::string& training = "", const std::string& more = "") {
    return "{'model':'gpt2','device':'a100-80gb-sxm','devices':4,'strategy':{'name':" + strategy + "},'training':{'micro_batch':4,'precision':'bf16-master'" +
           (training.empty() ? "" : "," + training) + "}" + more + "}";
}
constexpr std::int64_t kGpt2Parameters = 124'439'808;

TEST(FlatPartition, IsPaddedToTwoElementsPerRank) {
    const std::vector<std::int64_t> sizes{10, 5};
    EXPECT_EQ(FlatPartition(sizes, 4).padded(), 16);  // 15 up to a multiple of 8
    EXPECT_EQ(FlatPartition(sizes, 4).share(), 4);
    EXPECT_EQ(FlatPartition(sizes, 1).padded(), 16);
}

TEST(FlatPartition, ABucketGoesToTheOwnersOfItsSlices) {
    // Flat: parameter 0 has [0, 10), parameter 1 [10, 15); shares of 4. A bucket in backward's order holds 1, then 0.
    const std::vector<std::int64_t> sizes{10, 5};
    const std::vector<std::uint32_t> bucket{1, 0};
    const std::vector<OwnedRun> runs = FlatPartition(sizes, 4).ownersOf(bucket);
    const std::vector<std::pair<std::int64_t, std::int64_t>> expected{{2, 2}, {3, 3}, {0, 4}, {1, 4}, {2, 2}};
    ASSERT_EQ(runs.size(), expected.size());
    for (std::size_t r = 0; r < runs.size(); ++r) EXPECT_EQ(std::pair(runs[r].owner, runs[r].elements), expected[r]) << r;
}

TEST(Zero, StageOneMovesThreeTimesTheParametersAndNotTwo) {
    // The "reduce_scatter" is an all-reduce: 2Ψ, and Ψ for the gather after the step; 2 bytes each, whatever N.
    for (const int n : {2, 4, 7, 8}) {
        const Bytes expected = ringAllReduce(2 * kMlpParameters, n) + ringGather(2 * roundedUp(kMlpParameters, 2 * n), n) + ringAllReduce(4, n);
        EXPECT_EQ(wireOf(mlp(n, "'zero1'")), expected) << n;
        EXPECT_EQ(wireOf(mlp(n, "'zero2'")), expected) << n;
    }
    EXPECT_EQ(wireOf(gpt2("'zero1'")), ringAllReduce(2 * kGpt2Parameters, 4) + ringGather(2 * kGpt2Parameters, 4) + kNorm4);
}

TEST(Zero, AccumulationCostsStageTwoAReductionPerMicroStepAndStageOneNothing) {
    const Bytes reduce = ringAllReduce(2 * kMlpParameters, 4), gather = ringGather(2 * kMlpParameters, 4);
    for (const int k : {1, 2, 5}) {
        const std::string accumulate = "'grad_accum':" + std::to_string(k);
        EXPECT_EQ(wireOf(mlp(4, "'zero1'", accumulate)), reduce + gather + kNorm4);
        EXPECT_EQ(wireOf(mlp(4, "'zero2'", accumulate)), k * reduce + gather + kNorm4);
    }
}

TEST(Zero, ReducingToOwnersSendsEachGradientOnce) {
    // `reduce` sends the buffer once along a chain: (Ψ + Ψ)·(N − 1)/N.
    const std::string owners = "'zero1','use_multi_rank_bucket_allreduce':false";
    EXPECT_EQ(wireOf(mlp(4, owners)), 2 * ringGather(2 * kMlpParameters, 4) + kNorm4);
    // Stage 1 reduces in registration order, so that 4 ranks own one slice each of the one bucket.
    const auto reduces = collectivesOf(scheduleOf(mlp(4, owners)), TaskRole::BucketReduce);
    ASSERT_EQ(reduces.size(), 4U);
    for (const CollectiveWork& work : reduces) {
        EXPECT_EQ(work.op, CollectiveOp::Reduce);
        EXPECT_EQ(work.elements, kMlpParameters / 4);
    }
}

TEST(Zero, WhatTravelsHasTheTypeOfTheParameters) {
    // 16-bit gradients even where plain data parallelism would keep fp32 ones.
    for (const CollectiveWork& work : collectivesOf(scheduleOf(mlp(4, "'zero2'")), TaskRole::BucketReduce)) EXPECT_EQ(work.dtype, DType::Bf16);
    EXPECT_EQ(wireOf(mlp(4, "'zero1'", "'precision':'fp32'")), ringAllReduce(4 * kMlpParameters, 4) + ringGather(4 * kMlpParameters, 4) + kNorm4);
}

TEST(Zero, ASmallModelReducesOnceWhenBackwardIsOverEvenWithOverlap) {
    // GPT-2 has 0.12e9 elements; a bucket is flushed when the next gradient would exceed 0.5e9.
    for (const char* strategy : {"'zero2'", "'zero2','overlap_comm':true", "'zero1','overlap_comm':true"}) {
        const Schedule schedule = scheduleOf(gpt2(strategy));
        ASSERT_EQ(countTasks(schedule, TaskRole::BucketReduce), 1) << strategy;
        EXPECT_GT(tasksOf(schedule, TaskRole::BucketReduce).front(), lastOf(schedule, Phase::Backward)) << strategy;
        EXPECT_EQ(predictionOf(gpt2(strategy)).breakdown.communicationHidden, Time()) << strategy;
    }
}

TEST(Zero, SmallerBucketsOverlapOnlyWithOverlapComm) {
    const std::string small = ",'reduce_bucket_size':5e6";
    EXPECT_GT(predictionOf(gpt2("'zero2','overlap_comm':true" + small)).breakdown.communicationHidden, Time());
    EXPECT_EQ(predictionOf(gpt2("'zero2'" + small)).breakdown.communicationHidden, Time()) << "the hooks reduce on the compute stream";
    const Schedule blocking = scheduleOf(gpt2("'zero2'" + small));
    for (const TaskId t : tasksOf(blocking, TaskRole::BucketReduce)) EXPECT_EQ(blocking.programs.front().tasks[t].stream, kComputeStream);
    // Stage 1 without it waits for the end of backward, however small the buckets.
    const Schedule late = scheduleOf(gpt2("'zero1'" + small));
    EXPECT_GT(countTasks(late, TaskRole::BucketReduce), 10);
    EXPECT_GT(tasksOf(late, TaskRole::BucketReduce).front(), lastOf(late, Phase::Backward));
}

TEST(Zero, NoBucketExceedsItsSizeUnlessOneTensorDoes) {
    for (const CollectiveWork& work : collectivesOf(scheduleOf(gpt2("'zero2','reduce_bucket_size':5e6")), TaskRole::BucketReduce))
        EXPECT_TRUE(work.elements <= 5'000'000 || work.elements == 50257 * 768) << work.elements;
}

TEST(Zero, WithOverlapOneBucketMayBeUnderWayAndNotTwo) {
    // The compute stream waits, before it goes on filling, for what is on the reduction stream when a bucket is flushed: the bucket before.
    const Prediction p = predictionOf(scenarioOf(gpt2("'zero2','overlap_comm':true,'reduce_bucket_size':5e6")), {false, false, false});
    const RankProgram& program = p.schedule->programs.front();
    const std::vector<TaskTimes>& times = p.timeline.classes.front();
    const std::vector<TaskId> kept = tasksOf(*p.schedule, TaskRole::BucketSlice), copies = tasksOf(*p.schedule, TaskRole::BucketCopyIn);
    ASSERT_GT(kept.size(), 4U);
    for (std::size_t b = 0; b + 2 < kept.size(); ++b)
        for (const TaskId copy : copies)
            if (copy > kept[b + 1]) {
                EXPECT_LE(times[kept[b]].end, times[copy].start) << "bucket " << b;
            }
    EXPECT_EQ(program.streams[program.tasks[kept.front()].stream].name, "reduction");
}

TEST(Zero, OverlapAlternatesBetweenTwoBucketsOfTheFullSize) {
    // 5e8 elements · 2 B, twice with overlap_comm; allocated at the first gradient and freed when backward is over. The flattened copy of
    // the slice comes on top.
    EXPECT_EQ(mostLive(scheduleOf(gpt2("'zero2'")), MemoryCategory::Buckets), 1'000'000'000 + 2 * kGpt2Parameters);
    EXPECT_EQ(mostLive(scheduleOf(gpt2("'zero2','overlap_comm':true")), MemoryCategory::Buckets), 2'000'000'000 + 2 * kGpt2Parameters);
    EXPECT_EQ(mostLive(scheduleOf(gpt2("'zero2','reduce_scatter':false")), MemoryCategory::Buckets), 1'000'000'000);
    EXPECT_EQ(mostLive(scheduleOf(gpt2("'zero2','contiguous_gradients':false")), MemoryCategory::Buckets), 2 * kGpt2Parameters);
    EXPECT_EQ(persistentBytes(scheduleOf(gpt2("'zero2'")), MemoryCategory::Buckets), 0);
}

TEST(Zero, OverlapEndsBackwardWithASynchronisedDevice) {
    EXPECT_EQ(countTasks(scheduleOf(gpt2("'zero2','overlap_comm':true")), TaskRole::Synchronize), 1);
    EXPECT_EQ(countTasks(scheduleOf(gpt2("'zero2'")), TaskRole::Synchronize), 0);
}

TEST(Zero, ParametersAreGatheredAtOnceAfterTheStepAndNothingHidesIt) {
    const Schedule schedule = scheduleOf(mlp(4, "'zero1','overlap_comm':true"));
    const auto gathers = collectivesOf(schedule, TaskRole::ParameterGather);
    ASSERT_EQ(gathers.size(), 1U);
    EXPECT_EQ(gathers[0].op, CollectiveOp::AllGather);
    EXPECT_EQ(gathers[0].elements, kMlpParameters);
    EXPECT_EQ(schedule.programs.front().tasks[tasksOf(schedule, TaskRole::ParameterGather).front()].stream, kComputeStream);
}

TEST(Zero, EveryStepReadsTheGradientNorm) {
    for (const char* strategy : {"'zero1'", "'zero2'"}) {
        const Schedule schedule = scheduleOf(mlp(4, strategy));
        EXPECT_EQ(countTasks(schedule, TaskRole::NormReduce), 1);
        EXPECT_EQ(countTasks(schedule, TaskRole::NormRead), 1);
        EXPECT_EQ(countTasks(scheduleOf(mlp(4, strategy, "'gradient_clipping':true")), TaskRole::NormReduce), 1) << "clipping uses the same";
    }
}

TEST(Zero, PersistentStateIsThePapers) {
    // 16Ψ → stage 1: 4Ψ + 12Ψ/N, stage 2: 2Ψ + 14Ψ/N. Ψ is a multiple of 2N here, so that nothing is padded.
    for (const int n : {2, 4, 8}) {
        const std::int64_t psi = kMlpParameters;
        ASSERT_EQ(psi % (2 * n), 0);
        for (const char* stage : {"'zero1'", "'zero2'"}) {
            const Schedule schedule = scheduleOf(mlp(n, stage));
            EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters), 2 * psi);
            EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState), 12 * psi / n);
        }
        // Gradients are not persistent: 2Ψ of them wait for the reduction in stage 1, with the slice that the reduction makes …
        EXPECT_GE(mostLive(scheduleOf(mlp(n, "'zero1'")), MemoryCategory::Gradients), 2 * psi);
        // … and 2Ψ/N in stage 2, with one gradient on its way into the bucket, or with the fp32 copy of the slice that the step makes.
        const Bytes slice = 2 * psi / n, largest = 2 * 4096 * 4096;
        EXPECT_LE(mostLive(scheduleOf(mlp(n, "'zero2'")), MemoryCategory::Gradients), std::max(slice + largest + 2 * 4096, slice + 4 * psi / n));
    }
}

TEST(Zero, TheStepItselfNeedsTheEstimatorsEighteenBytes) {
    // DeepSpeed's own estimate for stage 2 is 2Ψ + 18Ψ/N: the 16-bit slice (2) and its fp32 copy (4) meet in the step, beside master and moments (12).
    const Schedule schedule = scheduleOf(mlp(2, "'zero2'"));
    const Bytes most = mostLive(schedule, MemoryCategory::Parameters) + mostLive(schedule, MemoryCategory::Gradients) + mostLive(schedule, MemoryCategory::OptimizerState);
    EXPECT_EQ(most, 2 * kMlpParameters + 18 * kMlpParameters / 2);
}

TEST(Zero, AnFp32CopyIsUpdatedEvenInFp32Training) {
    // DeepSpeed clones its partition: 4 B of parameters, and 4 + 8 B per owned element.
    EXPECT_EQ(persistentBytes(scheduleOf(mlp(4, "'zero1'", "'precision':'fp32'")), MemoryCategory::OptimizerState), 12 * kMlpParameters / 4);
    EXPECT_EQ(persistentBytes(scheduleOf(mlp(4, "'zero1'", "'precision':'bf16'")), MemoryCategory::OptimizerState), 12 * kMlpParameters / 4) << "in bf16 too";
}

TEST(Zero, OffloadMovesFp32GradientsDownAndParametersUp) {
    const std::int64_t share = kMlpParameters / 4;
    for (const char* stage : {"'zero1','offload_optimizer':'cpu'", "'zero2','offload_optimizer':'cpu'"}) {
        const Schedule schedule = scheduleOf(mlp(4, stage));
        EXPECT_EQ(copiedBytes(schedule, TaskRole::OffloadToHost), 4 * share) << "cast on the device first: twice the bytes";
        EXPECT_EQ(copiedBytes(schedule, TaskRole::OffloadToDevice), 2 * share);
        // Gradient scaled in place; fp32 master and two moments read and written, gradient read, 16-bit parameter written: 8 + 24 + 4 + 2 B.
        EXPECT_EQ(hostAmount(schedule, TaskRole::HostOptimizer), 38.0 * static_cast<double>(share));
        EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState), 0);
        EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState, true), (12 + 4 + 2) * share) << "state, fp32 gradients, parameters on their way";
        EXPECT_EQ(countTasks(schedule, TaskRole::OptimizerKernel), 0);
    }
}

TEST(Zero, OffloadedAccumulationGoesUpAndDownInStageTwoOnly) {
    const std::int64_t share = kMlpParameters / 4;
    // Three micro-steps: down 2, then up 2 and down 2, then up 2 and (fp32) down 4; the parameters go up once: 2.
    const Schedule two = scheduleOf(mlp(4, "'zero2','offload_optimizer':'cpu'", "'grad_accum':3"));
    EXPECT_EQ(copiedBytes(two, TaskRole::OffloadToHost), (2 + 2 + 4) * share);
    EXPECT_EQ(copiedBytes(two, TaskRole::OffloadToDevice), (2 + 2 + 2) * share);
    const Schedule one = scheduleOf(mlp(4, "'zero1','offload_optimizer':'cpu'", "'grad_accum':3"));
    EXPECT_EQ(copiedBytes(one, TaskRole::OffloadToHost), 4 * share);
    EXPECT_EQ(copiedBytes(one, TaskRole::OffloadToDevice), 2 * share);
}

TEST(Zero, TheHostsStepIsExposed) {
    EXPECT_GT(predictionOf(gpt2("'zero1','offload_optimizer':'cpu'")).stepSeconds, predictionOf(gpt2("'zero1'")).stepSeconds);
    const Prediction p = predictionOf(scenarioOf(gpt2("'zero1','offload_optimizer':'cpu'")), {false, false, false});
    const TaskId update = tasksOf(*p.schedule, TaskRole::HostOptimizer).back(), gather = tasksOf(*p.schedule, TaskRole::ParameterGather).front();
    EXPECT_LE(p.timeline.classes[0][update].end, p.timeline.classes[0][gather].start);
}

TEST(Zero, RepeatedMicroStepsAreWrittenOnceAndCountedOften) {
    for (const char* strategy : {"'zero1'", "'zero2'", "'zero2','overlap_comm':true,'reduce_bucket_size':5e6", "'zero2','offload_optimizer':'cpu'", "'zero3'", "'megatron'"}) {
        const Scenario scenario = scenarioOf(mlp(4, strategy, "'grad_accum':20"));
        const Result<Schedule> all = writeSchedule(scenario), few = writeSchedule(scenario, 4);
        ASSERT_TRUE(all && few) << strategy;
        EXPECT_LT(few->programs.front().tasks.size(), all->programs.front().tasks.size() / 3) << strategy;
        EXPECT_EQ(bytesSentPerRank(*few, few->classes[0]), bytesSentPerRank(*all, all->classes[0])) << strategy;
        const auto seconds = [&](const Schedule& schedule) {
            const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
            return play(schedule, *prices)->stepTime.seconds();
        };
        EXPECT_NEAR(predictionOf(scenario).stepSeconds, seconds(*all), 1e-3 * seconds(*all)) << strategy;
    }
}

TEST(Zero, RanksWithUnequalBatchesStillMeetInTheSameCollectives) {
    for (const char* strategy : {"'zero1'", "'zero2','overlap_comm':true", "'zero3','zero_hpz_partition_size':2,'max_reuse_distance':0", "'zero-redundancy-optimizer'",
                                 "'megatron','num_distributed_optimizer_instances':2"}) {
        const Schedule schedule = scheduleOf("{'model':'mlp','device':'a100-80gb-sxm','devices':4,'training':{'rank_batches':[8,8,4,4]},'strategy':{'name':" + std::string(strategy) + "}}");
        EXPECT_EQ(schedule.programs.size(), 2U) << strategy;
        const Result<void> valid = validateSchedule(schedule);
        EXPECT_TRUE(valid) << strategy << ": " << valid.error().toString();
    }
}

TEST(Zero, OneRankHasNobodyToReduceWith) {
    for (const char* strategy : {"'zero1'", "'zero2'", "'zero2','offload_optimizer':'cpu'"}) {
        const Schedule schedule = scheduleOf(mlp(1, strategy));
        EXPECT_TRUE(schedule.collectives.empty()) << strategy;
        EXPECT_EQ(countTasks(schedule, TaskRole::BucketCopyIn), 0) << strategy;
        EXPECT_TRUE(validateSchedule(schedule)) << strategy;
    }
}

TEST(Zero, SettingsThatDeepSpeedRefusesAreRefused) {
    EXPECT_THAT(refusal(mlp(4, "'zero2','pp':2")), HasSubstr("no such setting"));
    EXPECT_THAT(refusal(mlp(4, "'zero1','ep':2")), HasSubstr("no such setting"));
    EXPECT_THAT(refusal(mlp(4, "'zero1','offload_param':'cpu'")), HasSubstr("no such setting"));
    EXPECT_THAT(refusal(mlp(4, "'zero1','offload_optimizer':'disk'")), HasSubstr("offload_optimizer"));
    EXPECT_THAT(writeRefusal(mlp(4, "'zero2','offload_optimizer':'nvme'")), ::testing::AllOf(HasSubstr("offload_optimizer"), HasSubstr("zero3")));
}

TEST(Zero, StageOneRunsInAPipelineAndReducesWhenItIsThrough) {
    const std::string text = "{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'strategy':{'name':'zero1','pp':2,'overlap_comm':true},'training':{'grad_accum':4,'precision':'bf16-master'}}";
    const Schedule schedule = scheduleOf(text);
    ASSERT_TRUE(validateSchedule(schedule)) << validateSchedule(schedule).error().toString();
    EXPECT_GT(tasksOf(schedule, TaskRole::BucketReduce).front(), lastOf(schedule, Phase::Backward));
}

TEST(Zero, ScheduleIsValidAndFoldsWithEveryKnob) {
    const std::vector<std::string> knobs = {"", ",'overlap_comm':true", ",'reduce_scatter':false", ",'contiguous_gradients':false", ",'use_multi_rank_bucket_allreduce':false",
                                            ",'offload_optimizer':'cpu'", ",'contiguous_gradients':false,'overlap_comm':true,'reduce_scatter':false",
                                            ",'use_multi_rank_bucket_allreduce':false,'contiguous_gradients':false,'overlap_comm':true",
                                            ",'offload_optimizer':'cpu','overlap_comm':true"};
    for (const char* stage : {"'zero1'", "'zero2'"})
        for (const std::string& knob : knobs)
            for (const char* bucket : {"", ",'reduce_bucket_size':1e6"})
                for (const char* training : {"'grad_accum':3", "'recompute':'full'", "'precision':'fp16-autocast'"}) {
                    const Scenario scenario = scenarioOf(gpt2(stage + knob + bucket, training));
                    const Schedule schedule = scheduleOf(scenario), unfolded = unfoldRanks(schedule);
                    const Result<void> valid = validateSchedule(schedule);
                    ASSERT_TRUE(valid) << stage << knob << bucket << training << ": " << valid.error().toString();
                    const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                    ASSERT_TRUE(prices);
                    EXPECT_EQ(play(schedule, *prices)->stepTime, play(unfolded, *prices)->stepTime) << stage << knob;
                }
}

}  // namespace
}  // namespace ringside::testing
