// fully_shard (FSDP2) and HSDP; docs/models/fsdp.md tells the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "tests/support/sharded_steps.h"

namespace ringside::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string fsdp2(const std::string& knobs = "") { return "{'name':'fsdp2'" + knobs + "}"; }
std::string hsdp(const std::string& knobs = "") { return "{'name':'hsdp'" + knobs + "}"; }

std::string wrongBy(const std::string& text) {
    const Result<Schedule> schedule = writeSchedule(scenarioOf(text));
    if (schedule) return "accepted";
    EXPECT_EQ(schedule.error().code, ErrorCode::BadInput);
    return schedule.error().toString();
}

// ---- what travels -------------------------------------------------------------------------------------------------------

TEST(Fsdp2, GathersInForwardAndBackwardTheRootOnceAndScattersGradients) {
    for (const std::int64_t ranks : {2, 4, 8})
        for (const std::int64_t k : {1, 3})
            for (const bool noSync : {true, false}) {
                const std::string training = ",'grad_accum':" + std::to_string(k);
                const std::string sync = std::string(",'no_sync':") + (noSync ? "true" : "false");
                const auto sent = [&](const std::string& knobs) { return sentBy(validScheduleOf(smallLlama(fsdp2(sync + knobs), static_cast<int>(ranks), training))); };
                // Every dimension divides by 8, so nothing is padded; bf16 both ways.
                const std::int64_t blocks = 3 * kSmallBlock, reduced = (noSync ? 1 : k) * kSmallParameters;
                EXPECT_EQ(sent(""), 2 * (k * (2 * blocks + kSmallRest) + reduced) / ranks * (ranks - 1)) << ranks << " ranks, " << k;
                EXPECT_EQ(sent(",'reshard_after_forward':true"), 2 * (k * 2 * kSmallParameters + reduced) / ranks * (ranks - 1)) << "the root too";
                EXPECT_EQ(sent(",'reshard_after_forward':false"), 2 * (k * kSmallParameters + reduced) / ranks * (ranks - 1)) << "resharded after each backward, unlike FSDP1";
            }
}

TEST(Fsdp2, LlamaSends43GBPerRankAndStep) {
    // 32 blocks of 218,112,000, 1,050,677,248 besides: (2·6,979,584,000 + 1,050,677,248 + 8,030,261,248)·2 B·15/16. All rows divide by 16.
    for (const char* name : {"fsdp1", "fsdp2"}) {
        const Schedule schedule = scheduleOf("{'model':'llama-3.1-8b','device':'h100-sxm','devices':16,'training':{'seq_len':512,'precision':'bf16-master'},'strategy':'" + std::string(name) + "'}");
        EXPECT_EQ(sentBy(schedule), 43'200'199'680) << name;
    }
}

TEST(Fsdp2, EachParameterIsPaddedToWholeRowsPerRank) {
    // Three ranks: q, o 64 rows → 66; k, v 32 → 33; gate, up 192; down 64 → 66; norms 64 → 66; embedding and head 1000 → 1002.
    const std::int64_t block = 2 * 66 * 64 + 2 * 33 * 64 + 2 * 192 * 64 + 66 * 192 + 2 * 66, rest = 2 * 1002 * 64 + 66;
    const Schedule schedule = validScheduleOf(smallLlama(fsdp2(), 3));
    EXPECT_EQ(sentBy(schedule), 2 * 2 * (3 * 3 * block + 2 * rest) / 3);
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters), 4 * (3 * block + rest) / 3);
}

TEST(Fsdp2, ReducesInReduceDtype) {
    // bf16 parameters and fp32 reductions: 2 + 2 + 4 = 8 bytes per parameter of a block.
    EXPECT_EQ(sentBy(validScheduleOf(smallLlama(fsdp2(",'reduce_dtype':'fp32'"), 4))), (8 * 3 * kSmallBlock + 6 * kSmallRest) / 4 * 3);
    EXPECT_EQ(sentBy(validScheduleOf(smallLlama(fsdp2(), 4, ",'precision':'bf16-autocast'"))), (12 * 3 * kSmallBlock + 8 * kSmallRest) / 4 * 3);
}

TEST(Fsdp2, ReshardingOverFewerRanksGathersFromThemInBackward) {
    const Schedule schedule = validScheduleOf(smallLlama(fsdp2(",'reshard_after_forward':2"), 8));
    // Forward over 8 ranks (7/8), backward over 2 (1/2), reductions over 8.
    EXPECT_EQ(sentBy(schedule), 2 * (kSmallParameters / 8 * 7 + kSmallParameters / 2 + kSmallParameters / 8 * 7));
    // Half of what was gathered stays, in bf16.
    EXPECT_GE(mostAlive(schedule, MemoryCategory::Buckets, BufferRole::Shard), 2 * kSmallParameters / 2);
    EXPECT_THAT(wrongBy(smallLlama(fsdp2(",'reshard_after_forward':3"), 8)), AllOf(HasSubstr("strategy.reshard_after_forward"), HasSubstr("divides 8")));
}

TEST(Hsdp, ScattersWithinTheGroupAndReducesTheShardBetweenThem) {
    for (const char* knobs : {"", ",'shard_group':4"}) {  // a node has 4 devices
        const Schedule schedule = validScheduleOf(smallLlama(hsdp(knobs), 8, "", ",'devices_per_node':4"));
        EXPECT_EQ(sentBy(schedule), 2 * (3 * 3 * kSmallBlock + 2 * kSmallRest) / 4 * 3 + 2 * kSmallParameters / 4);
        for (const TaskId t : tasksWith(schedule, TaskRole::ReplicaReduce)) {
            const int unit = schedule.programs.front().tasks[t].part;
            EXPECT_EQ(streamOf(schedule, t), "all-reduce");
            EXPECT_TRUE(waitsFor(schedule, t, taskOf(schedule, TaskRole::ShardReduce, unit, Phase::GradientSync)));
        }
        EXPECT_EQ(countTasks(schedule, TaskRole::ReplicaReduce), 4);
    }
    // Groups of 2: a copy of everything in each of 4 groups.
    const Schedule pairs = validScheduleOf(smallLlama(hsdp(",'shard_group':2"), 8));
    EXPECT_EQ(sentBy(pairs), 2 * (3 * 3 * kSmallBlock + 2 * kSmallRest) / 2 + 2 * 2 * 3 * (kSmallParameters / 2) / 4);
    EXPECT_EQ(persistentBytes(pairs, MemoryCategory::Parameters), 4 * kSmallParameters / 2);
}

TEST(Hsdp, OnOneNodeIsFsdp2) {
    EXPECT_EQ(predictionOf(smallLlama(hsdp(), 4)).stepSeconds, predictionOf(smallLlama(fsdp2(), 4)).stepSeconds);
}

TEST(Hsdp, KeepsTheNetworkBetweenNodesFreeWhereItIsSlow) {
    // Four nodes with 25 Gbit/s between them. Through a node's NIC go, with FSDP2, two gathers and a reduction of 31/32·Ψ; with HSDP the
    // eight all-reduces of Ψ/8, 2·3/4 of it each: 2.9Ψ against 1.5Ψ.
    const auto step = [](const std::string& strategy) {
        return predictionOf("{'model':'gpt2-large','device':'a100-80gb-sxm','devices':32,'devices_per_node':8,'network':'ethernet-25g','training':{'micro_batch':2},'strategy':" + strategy + "}")
            .stepSeconds;
    };
    EXPECT_LT(1.7 * step(hsdp()), step(fsdp2()));
}

// ---- who waits for whom ---------------------------------------------------------------------------------------------------

TEST(Fsdp2, CopiesInOnItsOwnStreamAndOutOnTheComputeStream) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp2(), 4));
    for (const Phase phase : {Phase::Forward, Phase::Backward})
        for (const int unit : {1, 2, 3}) {
            const TaskId in = taskOf(schedule, TaskRole::UnshardCopyIn, unit, phase), gather = taskOf(schedule, TaskRole::Unshard, unit, phase),
                         out = taskOf(schedule, TaskRole::UnshardCopyOut, unit, phase);
            EXPECT_EQ(streamOf(schedule, in), "all-gather copy-in");
            EXPECT_EQ(streamOf(schedule, gather), "all-gather");
            EXPECT_EQ(streamOf(schedule, out), "compute");
            EXPECT_TRUE(waitsFor(schedule, gather, in));
            EXPECT_TRUE(waitsFor(schedule, out, gather));
            EXPECT_LT(out, firstOp(schedule, phase, unit)) << "unit u is layer u";
        }
    const TaskId copyIn = taskOf(schedule, TaskRole::ReduceCopyIn, 2, Phase::GradientSync), scatter = taskOf(schedule, TaskRole::ShardReduce, 2, Phase::GradientSync);
    EXPECT_EQ(streamOf(schedule, copyIn), "compute");
    EXPECT_EQ(streamOf(schedule, scatter), "reduce-scatter");
    EXPECT_TRUE(waitsFor(schedule, scatter, copyIn));
}

TEST(Fsdp2, AGatherWaitsForTheCopyOutOfTheUnitBeforeTheLastSoThatTwoOutputsAreAlive) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp2(), 4));
    for (const int unit : {2, 3})
        EXPECT_TRUE(waitsFor(schedule, taskOf(schedule, TaskRole::ShardCast, unit, Phase::Forward), taskOf(schedule, TaskRole::UnshardCopyOut, unit - 2, Phase::Forward)))
            << "the cast is the first thing on the copy-in stream";
    EXPECT_EQ(mostAlive(schedule, MemoryCategory::Buckets, BufferRole::UnshardOutput), 2 * (kSmallRest + kSmallBlock)) << "the root's and the first block's";
}

TEST(Fsdp2, BackwardGathersTheNextUnitBehindTheCopyOutOfThisOneAndBeforeItsGradients) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp2(), 4));
    EXPECT_THAT(issueOrder(schedule, {{TaskRole::Unshard, "gather"}, {TaskRole::UnshardCopyOut, "out"}, {TaskRole::ShardReduce, "scatter"}}, {Phase::Backward, Phase::GradientSync}),
                ElementsAre("gather 3", "out 3", "gather 2", "scatter 3", "out 2", "gather 1", "scatter 2", "out 1", "scatter 1", "scatter 0"));
    EXPECT_LT(taskOf(schedule, TaskRole::Unshard, 3, Phase::Backward), firstOp(schedule, Phase::Backward, 4)) << "the root's pre-backward gathers the last block";
    EXPECT_LT(taskOf(schedule, TaskRole::Unshard, 2, Phase::Backward), firstOp(schedule, Phase::Backward, 3));
    EXPECT_TRUE(waitsFor(schedule, taskOf(schedule, TaskRole::ShardCast, 2, Phase::Backward), taskOf(schedule, TaskRole::UnshardCopyOut, 3, Phase::Backward)));
}

TEST(Fsdp2, ComputeWaitsForTheReduceScatterOfTheUnitBefore) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp2(), 4));
    const auto copyIn = [&](int unit) { return taskOf(schedule, TaskRole::ReduceCopyIn, unit, Phase::GradientSync); };
    const auto scatter = [&](int unit) { return taskOf(schedule, TaskRole::ShardReduce, unit, Phase::GradientSync); };
    EXPECT_TRUE(waitsFor(schedule, copyIn(2), scatter(3)));
    EXPECT_TRUE(waitsFor(schedule, copyIn(1), scatter(2)));
    EXPECT_TRUE(waitsFor(schedule, copyIn(0), scatter(1)));
    // So that the inputs of at most two, the root's at the end, are alive.
    EXPECT_EQ(mostAlive(schedule, MemoryCategory::Buckets, BufferRole::UnitGradient), 2 * kSmallRest);
    // And a slow network stalls compute: one reduce-scatter per block cannot hide behind less compute than it takes.
    const Prediction p = predictionOf("{'model':'gpt2','device':'a100-80gb-sxm','devices':16,'devices_per_node':8,'network':'ethernet-25g','training':{'micro_batch':1},'strategy':" + fsdp2() + "}");
    EXPECT_GT(p.breakdown.communicationExposed.seconds(), 0.5 * p.stepSeconds);
}

// CPU tensors have no streams in PyTorch: the step is the sum of its parts.
TEST(Fsdp2, WithoutOverlapEveryCollectiveIsExposedAndNothingElseChanges) {
    for (const std::string& name : {fsdp2(), hsdp(",'shard_group':2"), fsdp2(",'reshard_after_forward':2"), fsdp2(",'forward_prefetch':2")}) {
        const std::string held = name.substr(0, name.size() - 1) + ",'overlap_comm':false}";
        const Schedule schedule = validScheduleOf(smallLlama(held, 4)), usual = scheduleOf(smallLlama(name, 4));
        EXPECT_EQ(streamOf(schedule, taskOf(schedule, TaskRole::Unshard, 2, Phase::Forward)), "compute");
        EXPECT_EQ(streamOf(schedule, taskOf(schedule, TaskRole::ShardReduce, 2, Phase::GradientSync)), "compute");
        EXPECT_EQ(sentBy(schedule), sentBy(usual));
        EXPECT_EQ(schedule.programs.front().tasks.size(), usual.programs.front().tasks.size());
        const Prediction p = predictionOf(smallLlama(held, 4));
        EXPECT_EQ(p.breakdown.communicationHidden, Time());
        EXPECT_GT(p.breakdown.communicationExposed, predictionOf(smallLlama(name, 4)).breakdown.communicationExposed);
    }
}

TEST(Fsdp2, TheHostNeverWaitsButForTheLoss) {
    EXPECT_EQ(countTasks(scheduleOf(smallLlama(fsdp2(), 4, ",'grad_accum':3")), TaskKind::HostSync), 1);
    EXPECT_GT(countTasks(scheduleOf(smallLlama("{'name':'fsdp1'}", 4, ",'grad_accum':3")), TaskKind::HostSync), 10);
}

TEST(Fsdp2, NothingIsRecordedOnOtherStreamsSoMemoryDoesNotDependOnTheHost) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp2(), 4));
    for (const Buffer& buffer : schedule.programs.front().buffers) EXPECT_FALSE(buffer.deferredFree);
}

TEST(Fsdp2, TheRootIsReducedAfterEverythingElse) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp2(), 4));
    EXPECT_GT(taskOf(schedule, TaskRole::ReduceCopyIn, 0, Phase::GradientSync), lastOp(schedule, Phase::Backward, 0));
    EXPECT_GT(predictionOf(smallLlama(fsdp2(), 4)).breakdown.communicationExposed, Time());
}

TEST(Fsdp2, ForwardPrefetchGathersSoManyUnitsAhead) {
    for (const int depth : {1, 2}) {
        const Schedule schedule = validScheduleOf(smallLlama(fsdp2(",'forward_prefetch':" + std::to_string(depth)), 4));
        EXPECT_LT(taskOf(schedule, TaskRole::Unshard, 1 + depth, Phase::Forward), firstOp(schedule, Phase::Forward, 1));
        EXPECT_EQ(taskOf(schedule, TaskRole::Unshard, 3, Phase::Forward) < firstOp(schedule, Phase::Forward, 1), depth == 2);
    }
}

TEST(Fsdp2, OnlyFp16IsDividedByKernels) {
    EXPECT_EQ(countTasks(scheduleOf(smallLlama(fsdp2(), 4)), TaskRole::UnitDivide), 0) << "NCCL averages";
    // 4 ranks: by 2 before and by 2 behind, four units.
    const std::string fp16 = "{'model':" + kSmallLlama + ",'device':'a100-80gb-sxm','devices':4,'training':{'seq_len':64},'strategy':{'name':'fsdp2','param_dtype':'fp16'}}";
    EXPECT_EQ(countTasks(validScheduleOf(fp16), TaskRole::UnitDivide), 8);
}

// ---- what is kept -----------------------------------------------------------------------------------------------------------

TEST(Fsdp2, KeepsSixteenBytesPerParameterOverTheRanks) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp2(), 4));
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters), 4 * kSmallParameters / 4);
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState), 8 * kSmallParameters / 4);
    EXPECT_EQ(mostAlive(schedule, MemoryCategory::Gradients, BufferRole::GradientShard), 4 * kSmallParameters / 4);
    // Gathered: the root all the time, and a block in forward and one in backward while the next is on its way.
    EXPECT_EQ(mostAlive(schedule, MemoryCategory::Buckets, BufferRole::UnshardedUnit), 2 * (kSmallRest + kSmallBlock));
    EXPECT_EQ(mostAlive(scheduleOf(smallLlama(fsdp2(",'reshard_after_forward':false"), 4)), MemoryCategory::Buckets, BufferRole::UnshardedUnit), 2 * kSmallParameters);
}

TEST(Fsdp2, AtThePeakOfAStepWithFewTokensStateIsSharded) {
    // With one token the optimizer step is the peak: 4Ψ/N shards, 4Ψ/N gradients, 8Ψ/N moments, each tensor in blocks of 512 bytes.
    const Prediction p = predictionOf("{'model':'gpt2-large','device':'a100-80gb-sxm','devices':4,'training':{'seq_len':16,'precision':'bf16-master','optimizer':'adamw'},'strategy':" + fsdp2() + "}");
    const double psi = static_cast<double>(p.parameters);
    const auto per = [&](MemoryCategory category) { return static_cast<double>(categoryBytes(p, category)) / psi * 4; };
    EXPECT_NEAR(per(MemoryCategory::Parameters), 4, 0.1);
    EXPECT_NEAR(per(MemoryCategory::OptimizerState), 8, 0.1);
    // No second master copy beside the shards.
    EXPECT_LT(per(MemoryCategory::OptimizerState), 8.2);
}

TEST(Fsdp2, ShardingMoreNeverKeepsMore) {
    // persistent bytes per rank: FSDP2 over 8 ≤ HSDP in groups of 4 ≤ groups of 2 ≤ DDP.
    const auto kept = [](const std::string& strategy) {
        const Schedule schedule = scheduleOf(smallLlama(strategy, 8));
        return persistentBytes(schedule, MemoryCategory::Parameters) + persistentBytes(schedule, MemoryCategory::OptimizerState);
    };
    EXPECT_LT(kept(fsdp2()), kept(hsdp(",'shard_group':4")));
    EXPECT_LT(kept(hsdp(",'shard_group':4")), kept(hsdp(",'shard_group':2")));
    EXPECT_LT(kept(hsdp(",'shard_group':2")), kept("'ddp'"));
}

TEST(Fsdp2, WithoutSyncWholeGradientsAccumulateInReduceDtype) {
    const auto whole = [](const std::string& knobs, const std::string& training) {
        return mostAlive(scheduleOf(smallLlama(fsdp2(knobs), 4, training)), MemoryCategory::Gradients, BufferRole::Gradient);
    };
    EXPECT_EQ(whole("", ",'grad_accum':3"), 2 * kSmallParameters);
    EXPECT_EQ(whole(",'reduce_dtype':'fp32'", ",'grad_accum':3"), 4 * kSmallParameters);
    // Reduced in each micro-step they stay in the type autograd made them in, a unit at a time; the root's come over the whole backward.
    EXPECT_LE(whole(",'reduce_dtype':'fp32','no_sync':false", ",'grad_accum':3"), 2 * (kSmallRest + kSmallBlock));
}

TEST(Fsdp2, GradientShardsAreAddedTensorByTensor) {
    // 2 later micro-steps × (3 blocks of 9 tensors, embedding, norm, head).
    EXPECT_EQ(countTasks(validScheduleOf(smallLlama(fsdp2(",'no_sync':false"), 4, ",'grad_accum':3")), TaskRole::ShardAccumulate), 2 * 30);
    EXPECT_EQ(countTasks(validScheduleOf(smallLlama("{'name':'fsdp1','no_sync':false}", 4, ",'grad_accum':3")), TaskRole::ShardAccumulate), 2 * 4) << "FSDP1's are flat";
}

TEST(Fsdp2, OffloadingKeepsEverythingOnTheHost) {
    for (const char* training : {"", ",'grad_accum':2", ",'gradient_clipping':true,'optimizer':'adamw-fused'"})
        for (const char* knobs : {"", ",'no_sync':false", ",'reshard_after_forward':2"}) {
            const Schedule schedule = validScheduleOf(smallLlama(fsdp2(",'cpu_offload':true" + std::string(knobs)), 4, training));
            EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters), 0);
            for (const auto& [category, width] : {std::pair{MemoryCategory::Parameters, 4}, {MemoryCategory::Gradients, 4}, {MemoryCategory::OptimizerState, 8}})
                EXPECT_EQ(persistentBytes(schedule, category, true), width * kSmallParameters / 4);
            EXPECT_EQ(countTasks(schedule, TaskRole::HostOptimizer), 1);
            EXPECT_EQ(countTasks(schedule, TaskRole::OptimizerKernel), 0);
        }
    // Added on the host where every micro-step reduces: 4 units once more.
    EXPECT_EQ(countTasks(scheduleOf(smallLlama(fsdp2(",'cpu_offload':true,'no_sync':false"), 4, ",'grad_accum':2")), TaskRole::ShardAccumulate), 4);
    EXPECT_GT(predictionOf(smallLlama(fsdp2(",'cpu_offload':true"), 4)).memory.hostBytes, 0);
}

TEST(Fsdp2, AdafactorStaysFactoredOverRows) {
    // A shard of rows keeps its rows' and the columns' statistics; FSDP1's flat piece cannot be factored.
    const std::string adafactor = ",'optimizer':'adafactor'";
    EXPECT_LT(4 * persistentBytes(scheduleOf(smallLlama(fsdp2(), 4, adafactor)), MemoryCategory::OptimizerState),
              persistentBytes(scheduleOf(smallLlama("{'name':'fsdp1'}", 4, adafactor)), MemoryCategory::OptimizerState));
}

// ---- as a whole ---------------------------------------------------------------------------------------------------------------

TEST(Fsdp2, OneDeviceIsTheSingleDevice) {
    const std::string one = "{'model':'gpt2','device':'a100-80gb-sxm','devices':1,'strategy':'";
    for (const char* name : {"fsdp2", "hsdp"}) EXPECT_EQ(predictionOf(one + name + "'}").stepSeconds, predictionOf(one + "single'}").stepSeconds);
}

TEST(Fsdp2, RefusesTiedParametersInAPipelineAndExpertsInGroups) {
    EXPECT_THAT(wrongBy("{'model':'gpt2','device':'a100-80gb-sxm','devices':4,'strategy':" + fsdp2(",'pp':2") + "}"), AllOf(HasSubstr("strategy.pp"), HasSubstr("ties parameters")));
    EXPECT_THAT(refusal(smallLlama(fsdp2(",'shard_group':2"), 4)), HasSubstr("no such setting"));
    EXPECT_THAT(wrongBy(smallLlama(hsdp(",'ep':2"), 4)), AllOf(HasSubstr("strategy.ep"), HasSubstr("use fsdp2")));
}

TEST(Fsdp2, APipelineStageGathersOnceWhereItDoesNotReshard) {
    const auto gathers = [](const std::string& knobs) { return countTasks(validScheduleOf(smallLlama(fsdp2(",'pp':3" + knobs), 6, ",'grad_accum':4")), TaskRole::Unshard); };
    // The first of three stages has the embedding as its root and one block.
    EXPECT_EQ(gathers(",'reshard_after_forward':false"), 2);
    EXPECT_GT(gathers(""), 4);
}

// The reduce-scatter's stream does not wait for the all-reduce's: memory that the latter still reads must not go to the former.
TEST(Hsdp, WhatReplicasReduceIsKeptUntilBackwardEnds) {
    const Schedule schedule = validScheduleOf(smallLlama("{'name':'hsdp'}", 4, ",'precision':'bf16-master'", ",'devices_per_node':2"));
    const RankProgram& program = schedule.programs.front();
    const TaskId lastReduction = tasksWith(schedule, TaskRole::ReplicaReduce).back();
    int freed = 0;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        for (const BufferUse& use : program.usesOf(program.tasks[t])) {
            const Buffer& buffer = program.buffers[use.buffer];
            if (use.kind != UseKind::Free || buffer.role != BufferRole::GradientShard || buffer.category != MemoryCategory::Buckets) continue;
            EXPECT_GT(t, lastReduction);
            EXPECT_EQ(program.tasks[t].phase, Phase::GradientSync) << "the optimizer does not find it";
            ++freed;
        }
    EXPECT_EQ(freed, static_cast<int>(tasksWith(schedule, TaskRole::ReplicaReduce).size()));
}

TEST(Fsdp2, EveryCombinationOfKnobsIsValidAndFoldsWithoutADifference) {
    for (const char* name : {"fsdp2", "hsdp"})
        for (const char* knobs : {"", ",'reshard_after_forward':false,'no_sync':false", ",'reshard_after_forward':true,'forward_prefetch':2", ",'reshard_after_forward':2,'reduce_dtype':'fp32'",
                                  ",'wrap':'size','min_wrap_elements':20000,'no_sync':false", ",'wrap':'none'", ",'pp':3", ",'pp':3,'reshard_after_forward':false,'pipeline_schedule':'gpipe'"})
            for (const char* training : {"", ",'grad_accum':3", ",'recompute':'full','precision':'bf16-autocast','grad_accum':6", ",'precision':'fp16-autocast','gradient_clipping':true"}) {
                const Scenario scenario = scenarioOf(smallLlama("{'name':'" + std::string(name) + "'" + knobs + "}", 12, training, ",'devices_per_node':2"));
                const Schedule schedule = scheduleOf(scenario);
                const Result<void> valid = validateSchedule(schedule);
                ASSERT_TRUE(valid) << name << knobs << training << ": " << valid.error().toString();
                const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                EXPECT_EQ(play(schedule, *prices)->stepTime, play(unfoldRanks(schedule), *prices)->stepTime) << name << knobs << training;
            }
}

}  // namespace
}  // namespace ringside::testing
