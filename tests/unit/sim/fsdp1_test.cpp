// FullyShardedDataParallel (FSDP1); docs/models/fsdp.md tells the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "tests/support/sharded_steps.h"

namespace ringside::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string fsdp1(const std::string& knobs = "") { return "{'name':'fsdp1'" + knobs + "}"; }

const std::vector<std::pair<TaskRole, std::string>> kGatherAndScatter = {{TaskRole::Unshard, "gather"}, {TaskRole::ShardReduce, "scatter"}};

// ---- what travels -------------------------------------------------------------------------------------------------------

struct Wire {
    const char* strategy;
    bool noSync;
    // Per optimizer step with `k` micro-steps: gathers of blocks, gathers of the root, reductions of everything.
    std::int64_t (*blocks)(std::int64_t k);
    std::int64_t (*root)(std::int64_t k);
    std::int64_t (*reductions)(std::int64_t k);
};
constexpr auto kOnce = [](std::int64_t) -> std::int64_t { return 1; };
constexpr auto kEach = [](std::int64_t k) { return k; };
constexpr auto kTwiceEach = [](std::int64_t k) { return 2 * k; };

TEST(Fsdp1, SendsWhatItsShardingStrategySays) {
    // FULL_SHARD gathers blocks in forward and in backward, the root once; SHARD_GRAD_OP keeps what it gathered until a reduction.
    const Wire rows[] = {{"full_shard", true, kTwiceEach, kEach, kOnce}, {"full_shard", false, kTwiceEach, kEach, kEach},
                         {"shard_grad_op", true, kOnce, kOnce, kOnce},   {"shard_grad_op", false, kEach, kEach, kEach}};
    for (const Wire& row : rows)
        for (const std::int64_t ranks : {2, 4, 8})
            for (const std::int64_t k : {1, 3}) {
                const Schedule schedule = validScheduleOf(smallLlama(fsdp1(std::string(",'sharding_strategy':'") + row.strategy + "','no_sync':" + (row.noSync ? "true" : "false")),
                                                                     static_cast<int>(ranks), ",'grad_accum':" + std::to_string(k)));
                // bf16 gathers, bf16 reductions (reduce_dtype defaults to param_dtype), each (N−1)/N of the whole.
                const std::int64_t elements = row.blocks(k) * 3 * kSmallBlock + row.root(k) * kSmallRest + row.reductions(k) * kSmallParameters;
                EXPECT_EQ(sentBy(schedule), 2 * elements / ranks * (ranks - 1)) << row.strategy << " no_sync " << row.noSync << " on " << ranks << ", " << k << " micro-steps";
            }
}

TEST(Fsdp1, NoShardAllReduces) {
    for (const std::int64_t k : {1, 3})
        for (const bool noSync : {true, false}) {
            const std::string knobs = std::string(",'sharding_strategy':'no_shard','no_sync':") + (noSync ? "true" : "false");
            const Schedule schedule = validScheduleOf(smallLlama(fsdp1(knobs), 4, ",'grad_accum':" + std::to_string(k)));
            EXPECT_EQ(sentBy(schedule), 2 * (2 * 3 * kSmallParameters / 4) * (noSync ? 1 : k));  // 2·(N−1)/N · Ψ · 2 B
            EXPECT_EQ(countTasks(schedule, TaskRole::Unshard), 0);
        }
}

TEST(Fsdp1, UnitsArePaddedToTheRanks) {
    // Three ranks: 49,280 → 49,281 and 128,064 = 3·42,688.
    const Schedule schedule = validScheduleOf(smallLlama(fsdp1(), 3));
    EXPECT_EQ(sentBy(schedule), 2 * 2 * (3 * 3 * 49'281 + 2 * 128'064) / 3);
}

TEST(Fsdp1, OriginalParametersAreAlignedToSixteenBytes) {
    // One unit of the whole perceptron, fp32, two ranks.
    const std::string text = "{'model':'mlp','device':'a100-80gb-sxm','devices':2,'training':{'precision':'fp32'},'strategy':{'name':'fsdp1','wrap':'none','use_orig_params':";
    const Schedule aligned = validScheduleOf(text + "true}}"), packed = validScheduleOf(text + "false}}");
    std::int64_t at = 0, sum = 0;
    for (std::size_t l = 0; l < aligned.workload->layers.size(); ++l)
        for (const Parameter& p : aligned.workload->typeOf(l).parameters) {
            at = (at + 3) / 4 * 4 + p.elements();  // 16 bytes are 4 elements of fp32
            sum += p.elements();
        }
    EXPECT_EQ(collectivesOf(aligned, TaskRole::Unshard)[0].elements, (at + 1) / 2 * 2);
    EXPECT_EQ(collectivesOf(packed, TaskRole::Unshard)[0].elements, (sum + 1) / 2 * 2);
}

TEST(Fsdp1, GathersInTheParametersTypeAndReducesInReduceDtype) {
    // bf16 parameters, fp32 reductions: blocks 2 + 2 + 4, the root 2 + 4 bytes per parameter.
    const Schedule fp32 = validScheduleOf(smallLlama(fsdp1(",'reduce_dtype':'fp32'"), 4));
    EXPECT_EQ(sentBy(fp32), (8 * 3 * kSmallBlock + 6 * kSmallRest) / 4 * 3);
    // Under autocast parameters are fp32 and travel so: 12 and 8.
    EXPECT_EQ(sentBy(validScheduleOf(smallLlama(fsdp1(), 4, ",'precision':'bf16-autocast'"))), (12 * 3 * kSmallBlock + 8 * kSmallRest) / 4 * 3);
    // param_dtype says the same as bf16-master.
    const std::string chosen = "{'model':" + kSmallLlama + ",'device':'a100-80gb-sxm','devices':4,'training':{'seq_len':64},'strategy':{'name':'fsdp1','param_dtype':'bf16'}}";
    EXPECT_EQ(sentBy(validScheduleOf(chosen)), sentBy(validScheduleOf(smallLlama(fsdp1(), 4))));
}

TEST(Fsdp1, HybridShardingReducesOnlyTheShardBetweenNodes) {
    const std::string nodes = ",'devices_per_node':4";
    const Schedule schedule = validScheduleOf(smallLlama(fsdp1(",'sharding_strategy':'hybrid_shard'"), 8, "", nodes));
    // Within a node of 4: 3/4 of what FULL_SHARD moves; between 2 nodes 2·1/2 of a quarter of the gradients.
    EXPECT_EQ(sentBy(schedule), 2 * (3 * 3 * kSmallBlock + 2 * kSmallRest) / 4 * 3 + 2 * kSmallParameters / 4);
    for (const TaskId t : tasksWith(schedule, TaskRole::ReplicaReduce)) {
        EXPECT_EQ(streamOf(schedule, t), "all-reduce");
        EXPECT_TRUE(waitsFor(schedule, t, taskOf(schedule, TaskRole::ShardReduce, schedule.programs.front().tasks[t].part, Phase::GradientSync)));
    }
    // hybrid_shard_zero2 does not gather again in backward.
    EXPECT_EQ(sentBy(validScheduleOf(smallLlama(fsdp1(",'sharding_strategy':'hybrid_shard_zero2'"), 8, "", nodes))), 2 * 2 * kSmallParameters / 4 * 3 + 2 * kSmallParameters / 4);
    // One node has nobody to reduce with.
    EXPECT_EQ(countTasks(validScheduleOf(smallLlama(fsdp1(",'sharding_strategy':'hybrid_shard'"), 4)), TaskRole::ReplicaReduce), 0);
}

// ---- who waits for whom ---------------------------------------------------------------------------------------------------

TEST(Fsdp1, BackwardPrefetchIssuesTheNextGatherBeforeThisUnitsGradientsAndTheReductionAfterBoth) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp1(), 4));
    EXPECT_THAT(issueOrder(schedule, kGatherAndScatter, {Phase::Backward, Phase::GradientSync}),
                ElementsAre("gather 3", "gather 2", "scatter 3", "gather 1", "scatter 2", "scatter 1", "scatter 0"));
    // Unit u is block u, which is layer u (the embedding is layer 0).
    EXPECT_LT(taskOf(schedule, TaskRole::Unshard, 3, Phase::Backward), firstOp(schedule, Phase::Backward, 4)) << "before the head's backward";
    EXPECT_LT(taskOf(schedule, TaskRole::Unshard, 2, Phase::Backward), firstOp(schedule, Phase::Backward, 3));
}

TEST(Fsdp1, BackwardPrefetchPostIssuesItBehindThisUnitsGradientsButBeforeTheReduction) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp1(",'backward_prefetch':'post'"), 4));
    EXPECT_THAT(issueOrder(schedule, kGatherAndScatter, {Phase::Backward, Phase::GradientSync}),
                ElementsAre("gather 3", "gather 2", "scatter 3", "gather 1", "scatter 2", "scatter 1", "scatter 0"));
    EXPECT_GT(taskOf(schedule, TaskRole::Unshard, 2, Phase::Backward), taskOf(schedule, TaskRole::ReduceCopyIn, 3, Phase::Backward));
    EXPECT_GT(taskOf(schedule, TaskRole::Unshard, 3, Phase::Backward), lastOp(schedule, Phase::Backward, 4)) << "nobody prefetches the first";
}

TEST(Fsdp1, WithoutBackwardPrefetchAGatherComesBehindTheReduction) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp1(",'backward_prefetch':'none'"), 4));
    EXPECT_THAT(issueOrder(schedule, kGatherAndScatter, {Phase::Backward, Phase::GradientSync}),
                ElementsAre("gather 3", "scatter 3", "gather 2", "scatter 2", "gather 1", "scatter 1", "scatter 0"));
}

TEST(Fsdp1, WithoutBackwardPrefetchGathersAreExposed) {
    const auto with = [](const std::string& prefetch) {
        return predictionOf("{'model':'gpt2-xl','device':'a100-80gb-sxm','devices':8,'training':{'micro_batch':4},'strategy':" + fsdp1(",'backward_prefetch':'" + prefetch + "'") + "}");
    };
    const Prediction pre = with("pre"), post = with("post"), none = with("none");
    EXPECT_GT(none.breakdown.communicationExposed.seconds(), 5 * pre.breakdown.communicationExposed.seconds());
    // Gathers wait for nothing on the compute stream: where the host is ahead, it is all the same when in backward they are issued.
    EXPECT_NEAR(post.stepSeconds, pre.stepSeconds, 1e-3 * pre.stepSeconds);
}

TEST(Fsdp1, TheRootIsGatheredOnceAndFreedAfterBackward) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp1(), 4));
    int gathers = 0;
    for (const TaskId t : tasksWith(schedule, TaskRole::Unshard)) gathers += schedule.programs.front().tasks[t].part == 0;
    EXPECT_EQ(gathers, 1);
    // Root and two blocks (the one computing and the one prefetched) are gathered at once.
    EXPECT_EQ(mostAlive(schedule, MemoryCategory::Buckets, BufferRole::UnshardedUnit), 2 * (kSmallRest + 2 * kSmallBlock));
    // Behind the gradients only one block is.
    EXPECT_EQ(mostAlive(scheduleOf(smallLlama(fsdp1(",'backward_prefetch':'post'"), 4)), MemoryCategory::Buckets, BufferRole::UnshardedUnit), 2 * (kSmallRest + kSmallBlock));
    EXPECT_EQ(mostAlive(scheduleOf(smallLlama(fsdp1(",'sharding_strategy':'shard_grad_op'"), 4)), MemoryCategory::Buckets, BufferRole::UnshardedUnit), 2 * kSmallParameters);
}

TEST(Fsdp1, TheHostWaitsUntilAllButTwoUnitsAreFree) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp1(), 4));
    const std::vector<TaskId> limits = tasksWith(schedule, TaskRole::RateLimit);
    ASSERT_GE(limits.size(), 2U);
    // Blocks 1 and 2 are free when block 3 is asked for: the host waits for block 1's last forward kernel.
    EXPECT_EQ(schedule.programs.front().tasks[limits[0]].part, 1);
    EXPECT_EQ(limits[0] + 1, taskOf(schedule, TaskRole::Unshard, 3, Phase::Forward));
    EXPECT_TRUE(waitsFor(schedule, limits[0], lastOp(schedule, Phase::Forward, 1)));
    EXPECT_EQ(countTasks(scheduleOf(smallLlama(fsdp1(",'limit_all_gathers':false"), 4)), TaskRole::RateLimit), 0);
}

TEST(Fsdp1, WithoutTheLimitTheHostRunsAheadAndGatheredUnitsPileUp) {
    // Freed blocks come back only when compute is through with them (recordStream), but the host asks for the next ones earlier.
    const auto buckets = [](const std::string& knobs) {
        const std::string text = "{'model':'gpt2-xl','device':'a100-80gb-sxm','devices':8,'training':{'micro_batch':8,'seq_len':512},'strategy':" + fsdp1(knobs) + "}";
        const Prediction p = predictionOf(scenarioOf(text), {false, true, false});
        Bytes most = 0;
        for (const MemorySample& sample : p.memory.samples) most = std::max(most, sample.bytes[static_cast<std::size_t>(MemoryCategory::Buckets)]);
        return most;
    };
    EXPECT_GT(buckets(",'limit_all_gathers':false"), 2 * buckets(""));
}

TEST(Fsdp1, ForwardPrefetchGathersTheNextUnitBeforeThisOneFromTheSecondStepOn) {
    const auto ahead = [](const Schedule& schedule) { return taskOf(schedule, TaskRole::Unshard, 2, Phase::Forward) < firstOp(schedule, Phase::Forward, 1); };
    EXPECT_FALSE(ahead(scheduleOf(smallLlama(fsdp1(), 4))));
    EXPECT_TRUE(ahead(validScheduleOf(smallLlama(fsdp1(",'forward_prefetch':1"), 4))));
    EXPECT_FALSE(ahead(validScheduleOf(smallLlama(fsdp1(",'forward_prefetch':1"), 4, "", ",'step':'first'")))) << "the order is not known yet";
}

TEST(Fsdp1, StreamsAreThoseOfPyTorch) {
    const Schedule schedule = scheduleOf(smallLlama(fsdp1(",'reduce_dtype':'fp32'"), 4));
    EXPECT_EQ(streamOf(schedule, taskOf(schedule, TaskRole::ShardCast, 1, Phase::Forward)), "pre-unshard");
    EXPECT_EQ(streamOf(schedule, taskOf(schedule, TaskRole::Unshard, 1, Phase::Forward)), "unshard");
    EXPECT_EQ(streamOf(schedule, taskOf(schedule, TaskRole::ReduceCopyIn, 1, Phase::Backward)), "compute");
    EXPECT_EQ(streamOf(schedule, taskOf(schedule, TaskRole::ShardCast, 1, Phase::GradientSync)), "post-backward");
    EXPECT_EQ(streamOf(schedule, taskOf(schedule, TaskRole::ShardReduce, 1, Phase::GradientSync)), "post-backward");
    // Compute waits for a unit before its first op, and for the last reduction before the optimizer.
    EXPECT_TRUE(waitsFor(schedule, firstOp(schedule, Phase::Forward, 1), taskOf(schedule, TaskRole::Unshard, 1, Phase::Forward)));
    const TaskId last = tasksWith(schedule, TaskRole::UnitDivide).back();  // of the root, behind its reduce-scatter
    EXPECT_GT(last, taskOf(schedule, TaskRole::ShardReduce, 0, Phase::GradientSync));
    EXPECT_EQ(streamOf(schedule, last), "post-backward");
    EXPECT_TRUE(waitsFor(schedule, tasksWith(schedule, TaskRole::OptimizerKernel).front(), last));
}

TEST(Fsdp1, GradientsAreDividedBeforeAndAfterTheSum) {
    // 4 ranks: by 2 and by 2; 2 ranks: by 2 before only. Four units.
    EXPECT_EQ(countTasks(scheduleOf(smallLlama(fsdp1(), 4)), TaskRole::UnitDivide), 8);
    EXPECT_EQ(countTasks(scheduleOf(smallLlama(fsdp1(), 2)), TaskRole::UnitDivide), 4);
}

// ---- what is kept -----------------------------------------------------------------------------------------------------------

TEST(Fsdp1, KeepsSixteenBytesPerParameterOverTheRanks) {
    // fp32 shard 4Ψ/N, which is the master, and Adam's 8Ψ/N stay; the gradient's 4Ψ/N live from its reduction to the optimizer step.
    const Schedule schedule = scheduleOf(smallLlama(fsdp1(), 4));
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters), 4 * kSmallParameters / 4);
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState), 8 * kSmallParameters / 4);
    EXPECT_EQ(mostAlive(schedule, MemoryCategory::Gradients, BufferRole::GradientShard), 4 * kSmallParameters / 4);
    // keep_low_precision_grads leaves them in bf16.
    EXPECT_EQ(mostAlive(scheduleOf(smallLlama(fsdp1(",'keep_low_precision_grads':true"), 4)), MemoryCategory::Gradients, BufferRole::GradientShard), 2 * kSmallParameters / 4);
    // Pure bf16: shard 2, moments 4, gradient 2.
    const Schedule pure = scheduleOf(smallLlama(fsdp1(), 4, ",'precision':'bf16'"));
    EXPECT_EQ(persistentBytes(pure, MemoryCategory::Parameters), 2 * kSmallParameters / 4);
    EXPECT_EQ(persistentBytes(pure, MemoryCategory::OptimizerState), 4 * kSmallParameters / 4);
    EXPECT_EQ(mostAlive(pure, MemoryCategory::Gradients, BufferRole::GradientShard), 2 * kSmallParameters / 4);
}

TEST(Fsdp1, NoSyncKeepsWholeGradientsAndReducingEachTimeOnlyShards) {
    const auto whole = [](const std::string& knobs) { return mostAlive(scheduleOf(smallLlama(fsdp1(knobs), 4, ",'grad_accum':3")), MemoryCategory::Gradients, BufferRole::UnitGradient); };
    EXPECT_EQ(whole(""), 2 * kSmallParameters);
    // Otherwise a unit's flat gradient goes with its reduction; each is at most the root's.
    EXPECT_EQ(whole(",'no_sync':false"), 2 * kSmallRest);
    EXPECT_EQ(mostAlive(scheduleOf(smallLlama(fsdp1(",'no_sync':false"), 4, ",'grad_accum':3")), MemoryCategory::Gradients, BufferRole::GradientShard), 4 * kSmallParameters / 4);
}

TEST(Fsdp1, AShardIsCastBeforeEveryGatherAndTheGradientBehindTheReduction) {
    const auto casts = [](const std::string& text, Phase phase) {
        const Schedule schedule = scheduleOf(text);
        int count = 0;
        for (const TaskId t : tasksWith(schedule, TaskRole::ShardCast)) count += schedule.programs.front().tasks[t].phase == phase;
        return count;
    };
    EXPECT_EQ(casts(smallLlama(fsdp1(), 4), Phase::Forward), 4);
    EXPECT_EQ(casts(smallLlama(fsdp1(), 4), Phase::Backward), 3);
    EXPECT_EQ(casts(smallLlama(fsdp1(), 4), Phase::GradientSync), 4);
    EXPECT_EQ(casts(smallLlama(fsdp1(",'reduce_dtype':'fp32'"), 4), Phase::GradientSync), 4) << "before instead of behind";
    EXPECT_EQ(casts(smallLlama(fsdp1(",'keep_low_precision_grads':true"), 4), Phase::GradientSync), 0);
    EXPECT_EQ(casts(smallLlama(fsdp1(), 4, ",'precision':'bf16'"), Phase::Forward), 0);
}

TEST(Fsdp1, OffloadingKeepsEverythingOnTheHost) {
    const Schedule schedule = validScheduleOf(smallLlama(fsdp1(",'cpu_offload':true"), 4));
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters), 0);
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState), 0);
    for (const auto& [category, width] : {std::pair{MemoryCategory::Parameters, 4}, {MemoryCategory::Gradients, 4}, {MemoryCategory::OptimizerState, 8}})
        EXPECT_EQ(persistentBytes(schedule, category, true), width * kSmallParameters / 4);
    // A copy of the shard before each of the 7 gathers, one of each gradient behind its reduction, and the host's own optimizer.
    EXPECT_EQ(countTasks(schedule, TaskRole::OffloadToDevice), 7);
    EXPECT_EQ(countTasks(schedule, TaskRole::OptimizerKernel), 0);
    ASSERT_EQ(countTasks(schedule, TaskRole::HostOptimizer), 1);
    int copies = 0;
    for (const TaskId t : tasksWith(schedule, TaskRole::OffloadToHost)) copies += schedule.programs.front().tasks[t].kind == TaskKind::Copy;
    EXPECT_EQ(copies, 4);
    EXPECT_GT(predictionOf(smallLlama(fsdp1(",'cpu_offload':true"), 4)).stepSeconds, predictionOf(smallLlama(fsdp1(), 4)).stepSeconds);
    EXPECT_TRUE(validateSchedule(scheduleOf(smallLlama(fsdp1(",'cpu_offload':true"), 4, ",'gradient_clipping':true", ",'step':'first'"))));
}

TEST(Fsdp1, RefusesWhatItCannotOffload) {
    const auto wrong = [](const std::string& text) {
        const Result<Schedule> schedule = writeSchedule(scenarioOf(text));
        return schedule ? std::string("accepted") : schedule.error().toString();
    };
    EXPECT_THAT(wrong(smallLlama(fsdp1(",'cpu_offload':true,'no_sync':false"), 4, ",'grad_accum':2")), HasSubstr("strategy.cpu_offload"));
    EXPECT_THAT(wrong(smallLlama(fsdp1(",'cpu_offload':true,'sharding_strategy':'no_shard'"), 4)), HasSubstr("needs shards"));
    EXPECT_THAT(refusal(smallLlama(fsdp1(",'tp':2"), 4)), HasSubstr("no such setting"));
    EXPECT_THAT(refusal(smallLlama(fsdp1(",'sharding_strategy':'zero3'"), 4)), HasSubstr("sharding_strategy"));
}

TEST(Fsdp1, BufferDtypeHalvesModuleBuffers) {
    const auto state = [](const std::string& knobs) {
        const Schedule schedule = scheduleOf("{'model':'resnet-18','device':'a100-80gb-sxm','devices':2,'strategy':" + fsdp1(knobs) + "}");
        Bytes bytes = 0;
        for (const Buffer& buffer : schedule.programs.front().buffers) bytes += buffer.role == BufferRole::State ? buffer.bytes : 0;
        return bytes;
    };
    // ResNet-18: running mean and variance of 4800 channels, and 20 counters of 8 bytes.
    EXPECT_EQ(state(""), 2 * 4800 * 4 + 20 * 8);
    EXPECT_EQ(state(",'buffer_dtype':'bf16'"), 2 * 4800 * 2 + 20 * 8);
}

// ---- as a whole ---------------------------------------------------------------------------------------------------------------

TEST(Fsdp1, OneDeviceIsTheSingleDevice) {
    const std::string one = "{'model':'gpt2','device':'a100-80gb-sxm','devices':1,'strategy':'";
    EXPECT_EQ(predictionOf(one + "fsdp1'}").stepSeconds, predictionOf(one + "single'}").stepSeconds);
}

TEST(Fsdp1, EveryCombinationOfKnobsIsValidAndFoldsWithoutADifference) {
    for (const char* sharding : {"full_shard", "shard_grad_op", "hybrid_shard", "hybrid_shard_zero2", "no_shard"})
        for (const char* knobs : {"", ",'backward_prefetch':'post','forward_prefetch':1", ",'limit_all_gathers':false,'use_orig_params':false,'reduce_dtype':'fp32'",
                                  ",'wrap':'size','min_wrap_elements':20000,'no_sync':false", ",'keep_low_precision_grads':true,'no_sync':false,'backward_prefetch':'none'"})
            for (const char* training : {"", ",'grad_accum':3", ",'recompute':'full','precision':'bf16-autocast','grad_accum':2", ",'precision':'fp16-autocast','gradient_clipping':true"}) {
                const Scenario scenario = scenarioOf(smallLlama(fsdp1(",'sharding_strategy':'" + std::string(sharding) + "'" + knobs), 6, training, ",'devices_per_node':2"));
                const Schedule schedule = scheduleOf(scenario);
                const Result<void> valid = validateSchedule(schedule);
                ASSERT_TRUE(valid) << sharding << knobs << training << ": " << valid.error().toString();
                const Schedule unfolded = unfoldRanks(schedule);
                const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                EXPECT_EQ(play(schedule, *prices)->stepTime, play(unfolded, *prices)->stepTime) << sharding << knobs << training;
            }
}

}  // namespace
}  // namespace ringside::testing
