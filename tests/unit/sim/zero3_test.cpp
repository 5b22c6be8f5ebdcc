// DeepSpeed ZeRO stage 3, offload and ZeRO++; docs/models/zero.md tells the rules.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/support/sharding.h"

namespace ringside::testing {
namespace {

using ::testing::HasSubstr;

const Bytes kNorm4 = ringAllReduce(4, 4);
/// Nothing stays and nothing is prefetched.
const std::string kPlain = ",'max_reuse_distance':0,'prefetch_bucket_size':0";
/// And small parameters are let go too.
const std::string kBare = kPlain + ",'param_persistence_threshold':0";

std::string llama(const std::string& strategy, const std::string& training = "", const std::string& more = "") {
    return "{'model':{'model_type':'llama','num_hidden_layers':12,'num_attention_heads':16,'num_key_value_heads':16,'hidden_size':1024,'intermediate_size':4096,'vocab_size':8000,"
           "'max_position_embeddings':2048},'device':'a100-80gb-sxm','devices':16,'devices_per_node':8,'strategy':{'name':" +
           strategy + "},'training':{'micro_batch':4,'seq_len':1024,'precision':'bf16-master'" + (training.empty() ? "" : "," + training) + "}" + more + "}";
}

/// Elements of all parameters, each padded to n equal pieces.
std::int64_t paddedEach(std::int64_t n) {
    std::int64_t sum = 0;
    for (const std::int64_t size : {1024 * 4096, 4096, 4096 * 4096, 4096, 4096 * 1024, 1024}) sum += roundedUp(size, n);
    return sum;
}

TEST(Zero3, MovesThreeTimesTheParametersInEveryMicroStep) {
    // Gathered in forward, again in backward, and reduce-scattered: 3Ψ·k, with ceil(n/N)·N elements for each parameter of n.
    for (const int n : {2, 4, 7}) {
        const Bytes once = ringGather(2 * paddedEach(n), n);
        for (const int k : {1, 3}) {
            const Schedule schedule = scheduleOf(mlp(n, "'zero3'" + kBare, "'grad_accum':" + std::to_string(k)));
            // Each collective's chunks are rounded up by themselves, which for whole pieces changes nothing.
            EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 3 * k * once + ringAllReduce(4, n)) << n << " ranks, " << k << " micro-steps";
        }
    }
}

TEST(Zero3, AModelThatIsBuiltWholeFirstReservesAsMuch) {
    const Schedule built = scheduleOf(mlp(4, "'zero3'")), whole = scheduleOf(mlp(4, "'zero3','zero_init':false"));
    EXPECT_TRUE(built.programs[0].setup.tensors.empty());
    Bytes bytes = 0;
    for (const Bytes tensor : whole.programs[0].setup.tensors) bytes += tensor;
    EXPECT_EQ(bytes, 2 * (kMlpWeights + kMlpBiases));
    EXPECT_EQ(whole.programs[0].setup.shards, 4);
    EXPECT_TRUE(whole.programs[0].setup.cacheEmptied);
}

TEST(Zero3, SmallParametersStayAndAreGatheredTogetherAfterTheStep) {
    // The three biases have at most 1e5 elements: they are part of the reduce-scatter, but gathered once per step.
    const std::string text = mlp(4, "'zero3'" + kPlain);
    const Bytes weights = ringGather(2 * kMlpWeights, 4), biases = ringGather(2 * kMlpBiases, 4);
    EXPECT_EQ(wireOf(text), 2 * weights + (weights + biases) + biases + kNorm4);
    const auto gathers = collectivesOf(scheduleOf(text), TaskRole::ParameterGather);
    ASSERT_EQ(gathers.size(), 1U);
    EXPECT_EQ(gathers[0].elements, kMlpBiases);
    EXPECT_TRUE(collectivesOf(scheduleOf(mlp(4, "'zero3'" + kBare)), TaskRole::ParameterGather).empty());
}

TEST(Zero3, ASmallModelStaysGatheredBetweenForwardAndBackward) {
    // Its backward comes within 1e9 elements, so that the second gather does not happen: 2Ψ instead of 3Ψ …
    const Bytes weights = ringGather(2 * kMlpWeights, 4), biases = ringGather(2 * kMlpBiases, 4);
    EXPECT_EQ(wireOf(mlp(4, "'zero3'")), weights + (weights + biases) + biases + kNorm4);
    // … and the whole model is in memory between them.
    EXPECT_GE(mostLive(scheduleOf(mlp(4, "'zero3','reduce_bucket_size':1000")), MemoryCategory::Buckets), 2 * kMlpWeights);
    EXPECT_LT(mostLive(scheduleOf(mlp(4, "'zero3','reduce_bucket_size':1000" + kPlain)), MemoryCategory::Buckets), 2 * kMlpWeights);
}

TEST(Zero3, RecomputeGathersAgainOnlyWhatItHasToKeep) {
    // Recompute runs a block's forward in backward: its gather serves the block's backward too where the block's elements are within the
    // reuse distance, so that a micro-step still gathers twice. With no reuse at all it gathers three times.
    const auto gathered = [](const std::string& strategy, const std::string& training) {
        std::int64_t sum = 0;
        for (const CollectiveWork& work : collectivesOf(scheduleOf(llama(strategy, training)), TaskRole::Unshard)) sum += work.elements;
        return sum;
    };
    const std::string near = "'zero3','prefetch_bucket_size':0,'max_reuse_distance':3e7", none = "'zero3'" + kPlain;
    const std::int64_t block = 4 * 1024 * 1024 + 3 * 1024 * 4096, rest = 2 * 8000 * 1024;  // elements, norms aside: they stay
    EXPECT_EQ(gathered(none, "'recompute':'none'"), 2 * (12 * block + rest));
    EXPECT_EQ(gathered(none, "'recompute':'full'"), 3 * 12 * block + 2 * rest);
    EXPECT_LE(gathered(near, "'recompute':'full'"), 2 * (12 * block + rest));
}

/// Gathers that are followed by a kernel that waits for them or for something later on their stream.
std::pair<std::size_t, std::size_t> waitedForAtOnce(const Schedule& schedule) {
    const RankProgram& program = schedule.programs.front();
    std::size_t waited = 0;
    const std::vector<TaskId> gathers = tasksOf(schedule, TaskRole::Unshard);
    for (const TaskId t : gathers) {
        TaskId next = t + 1;
        while (program.tasks[next].stream != kComputeStream) ++next;
        const auto waits = program.dependenciesOf(program.tasks[next]);
        waited += std::any_of(waits.begin(), waits.end(), [&](TaskId w) { return w >= t; });
    }
    return {waited, gathers.size()};
}

TEST(Zero3, TheFirstStepsHaveNoTraceAndPrefetchNothing) {
    const std::string strategy = "'zero3','max_reuse_distance':0";
    const auto [waitedFirst, allFirst] = waitedForAtOnce(scheduleOf(llama(strategy, "", ",'step':'first'")));
    EXPECT_EQ(waitedFirst, allFirst);
    const auto [waitedSteady, allSteady] = waitedForAtOnce(scheduleOf(llama(strategy)));
    EXPECT_LT(waitedSteady, allSteady);
    EXPECT_LT(allSteady, allFirst) << "prefetched parameters of several submodules travel together";
}

TEST(Zero3, TheTraceIsFollowedFromTheThirdPassOn) {
    const Schedule schedule = scheduleOf(llama("'zero3','max_reuse_distance':0", "'grad_accum':4", ",'step':'first'"));
    std::vector<int> gathers(4);
    for (const TaskId t : tasksOf(schedule, TaskRole::Unshard)) ++gathers[schedule.programs.front().tasks[t].microStep];
    EXPECT_EQ(gathers[0], gathers[1]);
    EXPECT_LT(gathers[2], gathers[1]) << "prefetched parameters travel together";
    EXPECT_EQ(gathers[3], gathers[2]);
}

TEST(Zero3, ALargePrefetchIsWaitedForAsAWholeByTheNextSubmodule) {
    // Each submodule of this model has 1 to 4 million elements, and at each 50 million more are sent on their way, all of which the next must
    // wait for: after a few submodules the whole model has been waited for. A host that merely runs ahead hides more.
    const auto exposed = [](const std::string& prefetch) { return predictionOf(llama("'zero3','max_reuse_distance':0,'prefetch_bucket_size':" + prefetch)).breakdown.communicationExposed; };
    EXPECT_GT(exposed("5e7"), exposed("1e6"));
}

TEST(Zero3, ComputeWaitsForEverythingOnTheGatherStream) {
    // Not only for its own parameters: what an earlier submodule has prefetched must be there too. So no gather that was issued before a
    // submodule's own wait may still run when its kernel starts.
    const Prediction p = predictionOf(scenarioOf(llama("'zero3','max_reuse_distance':0")), {false, false, false});
    const RankProgram& program = p.schedule->programs.front();
    const std::vector<TaskTimes>& times = p.timeline.classes.front();
    std::vector<TaskId> gathers;
    std::size_t checked = 0;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        if (program.streams[program.tasks[t].stream].name == "allgather") gathers.push_back(t);
        if (program.tasks[t].stream != kComputeStream) continue;
        for (const TaskId dependency : program.dependenciesOf(program.tasks[t]))
            if (program.streams[program.tasks[dependency].stream].name == "allgather")
                for (const TaskId gather : gathers)
                    if (gather <= dependency) {
                        EXPECT_LE(times[gather].end, times[t].start);
                        ++checked;
                    }
    }
    EXPECT_GT(checked, 100U);
}

TEST(Zero3, TheHostIsHeldBackByGathersUnderWay) {
    // More than two fetches outstanding: the host waits for the oldest. The mlp has 6 submodule visits, one fetch each: 3 waits.
    EXPECT_EQ(countTasks(scheduleOf(mlp(4, "'zero3'" + kPlain)), TaskRole::RateLimit), 3);
}

TEST(Zero3, GradientsAreReducedInABucketAndOftenOnlyAtTheEnd) {
    const Schedule schedule = scheduleOf(llama("'zero3'"));
    const auto reduces = collectivesOf(schedule, TaskRole::ShardReduce);
    ASSERT_EQ(reduces.size(), 1U) << "218 million elements fit into one bucket of 500";
    EXPECT_EQ(reduces[0].op, CollectiveOp::ReduceScatter);
    EXPECT_GT(tasksOf(schedule, TaskRole::ShardReduce).front(), lastOf(schedule, Phase::Backward));
    const Schedule small = scheduleOf(llama("'zero3','reduce_bucket_size':2e7"));
    EXPECT_LT(tasksOf(small, TaskRole::ShardReduce).front(), lastOf(small, Phase::Backward));
    EXPECT_GT(predictionOf(llama("'zero3','reduce_bucket_size':2e7")).breakdown.communicationHidden, predictionOf(llama("'zero3'")).breakdown.communicationHidden);
}

TEST(Zero3, OverlapIsTheDefaultHere) {
    const auto streamOfReduce = [](const std::string& strategy) {
        const Schedule schedule = scheduleOf(llama(strategy));
        return schedule.programs.front().tasks[tasksOf(schedule, TaskRole::ShardReduce).front()].stream;
    };
    EXPECT_NE(streamOfReduce("'zero3'"), kComputeStream);
    EXPECT_EQ(streamOfReduce("'zero3','overlap_comm':false"), kComputeStream);
    EXPECT_EQ(countTasks(scheduleOf(llama("'zero3'")), TaskRole::Synchronize), 1) << "the host waits for the reduction stream";
}

TEST(Zero3, WithoutReduceScatterTheBucketIsAllReduced) {
    const std::string text = mlp(4, "'zero3','reduce_scatter':false" + kBare);
    EXPECT_EQ(wireOf(text), 2 * ringGather(2 * paddedEach(4), 4) + ringAllReduce(2 * kMlpParameters, 4) + kNorm4);
}

TEST(Zero3, PersistentStateIsSixteenBytesPerParameterOverN) {
    // 2 + 2 + 12 B: parameters, gradients and optimizer state, all in shards; the bucket comes on top.
    for (const int n : {2, 4, 8}) {
        const Schedule schedule = scheduleOf(mlp(n, "'zero3'" + kBare));
        EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters), 2 * kMlpParameters / n);
        EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Gradients), 2 * kMlpParameters / n);
        EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState), 12 * kMlpParameters / n);
        EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Buckets), 1'000'000'000);
    }
    const Schedule small = scheduleOf(mlp(4, "'zero3'"));
    EXPECT_EQ(persistentBytes(small, MemoryCategory::Parameters), 2 * kMlpParameters / 4 + 2 * kMlpBiases) << "persistent parameters are whole besides";
}

TEST(Zero3, DefaultBucketsCanOutweighTheModel) {
    // GPT-2's state in stage 2 is 2Ψ + 14Ψ/4 = 0.68 GB; stage 3 keeps a bucket of 1 GB all the time and gathers the whole model besides: the
    // stages are in order only for models that are large beside their buckets.
    const auto peak = [&](const std::string& model, const std::string& strategy) {
        return predictionOf("{'model':'" + model + "','device':'a100-80gb-sxm','devices':4,'training':{'micro_batch':4,'precision':'bf16-master'},'strategy':{'name':" + strategy + "}}").memory.peakAllocated;
    };
    EXPECT_GT(peak("gpt2", "'zero3'"), peak("gpt2", "'zero2'"));
    EXPECT_LT(peak("gpt2-xl", "'zero3','reduce_bucket_size':1e6" + kPlain), peak("gpt2-xl", "'zero2','reduce_bucket_size':1e6"));
}

TEST(Zero3, OptimizerOffloadSendsEverySliceToTheHostAndBack) {
    const std::int64_t share = kMlpParameters / 4;
    const Schedule schedule = scheduleOf(mlp(4, "'zero3','offload_optimizer':'cpu'"));
    // The slice goes to its host buffer (2 B), comes back (2 B), and goes down again in fp32 (4 B); parameters come up (2 B).
    EXPECT_EQ(copiedBytes(schedule, TaskRole::OffloadToHost), (2 + 4) * share);
    EXPECT_EQ(copiedBytes(schedule, TaskRole::OffloadToDevice), (2 + 2) * share);
    // As in stages 1 and 2, and the master read again for the cast (4 B), whose result the driver copies to pinned memory first (2 B read, written and read): 38 + 4 + 6 B.
    EXPECT_EQ(hostAmount(schedule, TaskRole::HostOptimizer), 48.0 * static_cast<double>(share));
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState), 0);
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Gradients), 0);
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState, true), (12 + 4 + 2 + 2) * share);
}

TEST(Zero3, ParameterOffloadBringsShardsUpBeforeEachGather) {
    const std::int64_t share = kMlpParameters / 4, weights = kMlpWeights / 4, biases = kMlpBiases / 4;
    const Schedule schedule = scheduleOf(mlp(4, "'zero3','offload_param':'cpu','offload_optimizer':'cpu'" + kPlain));
    // Weights for both gathers, biases for the gather after the step, and the gradient slice's round trip.
    EXPECT_EQ(copiedBytes(schedule, TaskRole::OffloadToDevice), 2 * (2 * weights + biases + share));
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters), 2 * kMlpBiases) << "only what stays gathered is on the device";
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters, true), 2 * share);
}

TEST(Zero3, NvmeReadsAndWritesTheStateOfASubGroupAroundItsStep) {
    const std::int64_t share = kMlpParameters / 4;
    const Schedule schedule = scheduleOf(mlp(4, "'zero3','offload_optimizer':'nvme'"));
    // fp32 gradients are written in backward (4 B); master, moments and gradients read (16 B); master and moments written (12 B).
    EXPECT_EQ(hostAmount(schedule, TaskRole::StorageRead), 16.0 * static_cast<double>(share));
    EXPECT_EQ(hostAmount(schedule, TaskRole::StorageWrite), (4.0 + 12.0) * static_cast<double>(share));
    // pipeline_read and pipeline_write are off: the host waits for each.
    const auto seconds = [](const char* where) { return predictionOf(llama("'zero3','offload_optimizer':'" + std::string(where) + "'")).stepSeconds; };
    EXPECT_GT(seconds("nvme"), seconds("cpu"));
    EXPECT_GT(seconds("cpu"), seconds("none"));
}

TEST(Zero3, QuantisedWeightsHalveTheGather) {
    // qwZ: int8 instead of 16 bits, and an fp32 scale for every 8,000 elements of a shard.
    Bytes gathers = 0;
    for (const std::int64_t matrix : {1024 * 4096, 4096 * 4096, 4096 * 1024}) {
        const std::int64_t shard = matrix / 4, scales = (shard + 7999) / 8000;
        gathers += 2 * (ringGather(4 * shard, 4) + ringGather(4 * 4 * scales, 4));
    }
    const Bytes biases = ringGather(2 * kMlpBiases, 4);
    EXPECT_EQ(wireOf(mlp(4, "'zero3','zero_quantized_weights':true" + kPlain)), gathers + ringGather(2 * kMlpParameters, 4) + biases + kNorm4);
}

TEST(Zero3, ASecondCopyInTheNodeServesAllGathersButTheFirst) {
    // hpZ over 8 of 16 ranks: forward's gathers go over all ranks, backward's stay in the node; from the second micro-step on forward's too,
    // until the optimizer makes the copy stale.
    for (const int k : {1, 3}) {
        const Schedule schedule = scheduleOf(llama("'zero3','zero_hpz_partition_size':8" + kPlain, "'grad_accum':" + std::to_string(k)));
        std::int64_t everywhere = 0, inNode = 0;
        for (const CollectiveWork& work : collectivesOf(schedule, TaskRole::Unshard)) (schedule.axes[work.axis].name == "hpz" ? inNode : everywhere) += work.elements;
        const std::int64_t gathered = 12 * (4 * 1024 * 1024 + 3 * 1024 * 4096) + 2 * 8000 * 1024;
        EXPECT_EQ(everywhere, gathered) << k;
        EXPECT_EQ(inNode, (2 * k - 1) * gathered) << k;
        EXPECT_EQ(persistentBytes(schedule, MemoryCategory::Parameters) - persistentBytes(scheduleOf(llama("'zero3'" + kPlain)), MemoryCategory::Parameters), 2 * gathered / 8)
            << "2Ψ/P more bytes";
    }
}

TEST(Zero3, QuantisedGradientsTravelInFourBitsWithinTheNodeAndThenBetweenNodes) {
    const Schedule schedule = scheduleOf(llama("'zero3','zero_quantized_gradients':true" + kPlain));
    std::int64_t inNode = 0, between = 0, scattered = 0;
    for (const CollectiveWork& work : collectivesOf(schedule, TaskRole::ShardReduce)) {
        if (work.op == CollectiveOp::ReduceScatter) scattered += work.elements;
        else if (work.dtype == DType::Int8) (schedule.axes[work.axis].name == "dp within node" ? inNode : between) += work.elements;
    }
    const std::int64_t matrices = 12 * (4 * 1024 * 1024 + 3 * 1024 * 4096) + 2 * 8000 * 1024, norms = (2 * 12 + 1) * 1024;
    EXPECT_EQ(inNode, matrices / 2);
    EXPECT_EQ(between, matrices / 2 / 8);
    EXPECT_EQ(scattered, norms) << "vectors fall back to a reduce-scatter each";
    // On one node it changes nothing.
    EXPECT_EQ(wireOf(mlp(4, "'zero3','zero_quantized_gradients':true")), wireOf(mlp(4, "'zero3'")));
}

TEST(Zero3, OneRankHasNobodyToGatherFrom) {
    const Schedule schedule = scheduleOf(mlp(1, "'zero3'"));
    EXPECT_TRUE(schedule.collectives.empty());
    EXPECT_EQ(countTasks(schedule, TaskRole::Unshard), 0);
    // With its parameters on the host it still fetches them, by copies alone.
    const Schedule offloaded = scheduleOf(mlp(1, "'zero3','offload_param':'cpu','offload_optimizer':'cpu'" + kPlain));
    EXPECT_TRUE(offloaded.collectives.empty());
    EXPECT_EQ(copiedBytes(offloaded, TaskRole::OffloadToDevice), 2 * (2 * kMlpWeights + kMlpParameters));
}

TEST(Zero3, SettingsThatCannotWorkAreRefused) {
    EXPECT_THAT(refusal(mlp(4, "'zero3','pp':2")), HasSubstr("no such setting"));
    EXPECT_THAT(refusal(mlp(4, "'zero3','use_multi_rank_bucket_allreduce':false")), HasSubstr("no such setting"));
    EXPECT_THAT(refusal(mlp(4, "'zero3','prefetch_bucket_size':-1")), HasSubstr("prefetch_bucket_size"));
    EXPECT_THAT(writeRefusal(mlp(4, "'zero3','zero_hpz_partition_size':3")), ::testing::AllOf(HasSubstr("zero_hpz_partition_size"), HasSubstr("does not divide 4")));
}

TEST(Zero3, ScheduleIsValidAndFoldsWithEveryKnob) {
    const std::vector<std::string> knobs = {"", kPlain, kBare, ",'overlap_comm':false", ",'reduce_bucket_size':1e6", ",'reduce_scatter':false", ",'contiguous_gradients':false,'reduce_bucket_size':1e6",
                                            ",'offload_optimizer':'cpu'", ",'offload_param':'cpu'", ",'offload_optimizer':'nvme','offload_param':'nvme'", ",'offload_param':'nvme'" + kPlain,
                                            ",'zero_quantized_weights':true,'zero_hpz_partition_size':8" + kPlain, ",'zero_quantized_gradients':true,'offload_optimizer':'cpu'",
                                            ",'max_live_parameters':0", ",'zero_hpz_partition_size':2,'offload_param':'cpu'" + kPlain};
    for (const std::string& knob : knobs)
        for (const char* training : {"'grad_accum':3", "'recompute':'full'", "'precision':'fp16-autocast'"})
            for (const char* step : {"steady", "first"}) {
                const Scenario scenario = scenarioOf(llama("'zero3'" + knob, training, ",'step':'" + std::string(step) + "'"));
                const Schedule schedule = scheduleOf(scenario), unfolded = unfoldRanks(schedule);
                const Result<void> valid = validateSchedule(schedule);
                ASSERT_TRUE(valid) << knob << training << step << ": " << valid.error().toString();
                const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                ASSERT_TRUE(prices);
                EXPECT_EQ(play(schedule, *prices)->stepTime, play(unfolded, *prices)->stepTime) << knob;
            }
}

}  // namespace
}  // namespace ringside::testing
