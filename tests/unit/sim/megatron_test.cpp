// Megatron-LM's data parallelism and distributed optimizer; docs/models/megatron.md tells the rules.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "sim/strategy/megatron_buckets.h"
#include "tests/support/sharding.h"

namespace ringside::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kGpt2Parameters = 124'439'808;

std::string gpt2(const std::string& strategy, const std::string& training = "", const std::string& more = "") {
    return "{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'strategy':{'name':'megatron'" + strategy + "},'training':{'micro_batch':4,'precision':'bf16-master'" +
           (training.empty() ? "" : "," + training) + "}" + more + "}";
}

/// Elements of the one bucket that holds the whole mlp: parameters start at multiples of 64, the bucket ends at one of lcm(N, 128).
std::int64_t mlpBucket(std::int64_t n) {
    std::int64_t end = 0;
    for (const std::int64_t size : {1024, 4096 * 1024, 4096, 4096 * 4096, 4096, 1024 * 4096}) end = roundedUp(end, 64) + size;
    return roundedUp(end, std::lcm(n, std::int64_t{128}));
}

TEST(Megatron, TransformerEngineKeepsAPlaceholderForEachShapeOfWeightGradient) {
    const auto gpt = [](const std::string& more) {
        return scheduleOf("{'model':{'model_type':'gpt2','n_layer':3,'n_embd':512,'n_head':8,'vocab_size':1000,'n_positions':128},'device':'a100-80gb-sxm','devices':2,'strategy':{'name':'megatron'" + more +
                          "},'training':{'micro_batch':1,'seq_len':128,'precision':'bf16-master'}}");
    };
    const auto held = [](const Schedule& schedule) {
        Bytes bytes = 0;
        for (const Buffer& buffer : schedule.programs[0].buffers)
            if (buffer.persistent && buffer.category == MemoryCategory::Workspace) bytes += buffer.bytes;
        return bytes;
    };
    EXPECT_EQ(held(gpt("")), 0);
    // Of three blocks alike: h × 3h, h × h, h × 4h and 4h × h, in bf16.
    EXPECT_EQ(held(gpt(",'transformer_impl':'transformer_engine'")), 12 * 512 * 512 * 2);
}

std::string twoBlocks(const std::string& strategy, const std::string& training = "") {
    return "{'model':{'model_type':'llama','num_hidden_layers':2,'num_attention_heads':64,'num_key_value_heads':8,'hidden_size':8192,'intermediate_size':28672,'vocab_size':32000,"
           "'max_position_embeddings':4096,'tie_word_embeddings':false},'device':'h100-sxm','devices':8,'strategy':{'name':'megatron','tp':8,'sequence_parallel':true" +
           strategy + "},'training':{'micro_batch':1,'seq_len':4096,'precision':'bf16-master'" + training + "}}";
}

TEST(Megatron, TensorCollectivesInPiecesHideBesideTheirProducts) {
    for (const std::string recompute : {"", ",'recompute':'full'", ",'grad_accum':3"}) {
        const Schedule whole = scheduleOf(twoBlocks("", recompute)), cut = scheduleOf(twoBlocks(",'tp_comm_overlap':true", recompute));
        ASSERT_TRUE(validateSchedule(cut).has_value()) << validateSchedule(cut).error().toString();
        // Pieces that go round send what a gather sends: 7/8 of the whole.
        EXPECT_EQ(bytesSentPerRank(cut, cut.classes[0]), bytesSentPerRank(whole, whole.classes[0])) << recompute;
        const Prediction before = predictionOf(twoBlocks("", recompute)), after = predictionOf(twoBlocks(",'tp_comm_overlap':true", recompute));
        EXPECT_LT(after.stepSeconds, before.stepSeconds) << recompute;
        EXPECT_LT(after.breakdown.communicationExposed, before.breakdown.communicationExposed) << recompute;
    }
}

TEST(Megatron, AProductStartsWithThePieceThatIsThereAndAReductionWithTheFirstThatIsDone) {
    const Schedule schedule = scheduleOf(twoBlocks(",'tp_comm_overlap':true"));
    const RankProgram& program = schedule.programs.front();
    const auto dependsOn = [&](TaskId task, TaskId earlier) {
        const auto all = program.dependenciesOf(program.tasks[task]);
        return std::find(all.begin(), all.end(), earlier) != all.end();
    };
    const LayerType& block = program.workload->typeOf(1);
    const auto opNamed = [&](std::string_view name) {
        for (std::size_t o = 0; o < block.ops.size(); ++o)
            if (block.ops[o].name == name) return static_cast<int>(o);
        return -1;
    };
    const auto tasks = [&](std::string_view name) {
        std::vector<TaskId> found;
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].layer == 1 && program.tasks[t].op == opNamed(name) && program.tasks[t].phase == Phase::Forward) found.push_back(t);
        return found;
    };
    const std::vector<TaskId> exchanges = tasks("self_attn.linear_qkv.sequence_gather"), products = tasks("self_attn.linear_qkv");
    ASSERT_EQ(exchanges.size(), 7U);
    ASSERT_EQ(products.size(), 8U);
    for (std::size_t i = 0; i < 7; ++i) {
        EXPECT_FALSE(dependsOn(products[0], exchanges[i]));  // its own piece is there
        EXPECT_TRUE(dependsOn(products[i + 1], exchanges[i]));
    }
    const std::vector<TaskId> down = tasks("mlp.down_proj"), reductions = tasks("mlp.down_proj.sequence_scatter");
    ASSERT_EQ(down.size(), 4U);
    ASSERT_EQ(reductions.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(dependsOn(reductions[i], down[i]));
}

TEST(Megatron, UserBuffersStayInMemory) {
    const Schedule whole = scheduleOf(twoBlocks("")), cut = scheduleOf(twoBlocks(",'tp_comm_overlap':true"));
    // Ten of 4,096 tokens times 8,192 in bf16.
    EXPECT_EQ(persistentBytes(cut, MemoryCategory::Workspace) - persistentBytes(whole, MemoryCategory::Workspace), 10 * 4096 * 8192 * 2);
}

/// Sum over the first block's products for weights of what they add to main gradients, per element.
double addedBytesPerElement(const Schedule& schedule) {
    double bytes = 0, elements = 0;
    for (const Op& op : schedule.workload->typeOf(1).ops)
        for (const KernelWork& kernel : op.backward) {
            if (kernel.name != "linear weight gradient") continue;
            bytes += kernel.accumulatedBytes;
            elements += static_cast<double>(kernel.shape.m * kernel.shape.n);
        }
    return bytes / elements;
}

TEST(Megatron, TransformerEnginesProductsAddToTheMainGradients) {
    const std::string engine = ",'transformer_impl':'transformer_engine'";
    const Schedule local = scheduleOf(gpt2("")), added = scheduleOf(gpt2(engine));
    ASSERT_TRUE(validateSchedule(added));
    const auto sumsOfWeights = [](const Schedule& schedule) {
        int count = 0;
        for (const Task& task : schedule.programs[0].tasks) {
            if (task.role != TaskRole::GradientAccumulate) continue;
            const LayerType& type = schedule.workload->typeOf(static_cast<std::size_t>(task.layer));
            count += type.isBlock && type.parameters[task.part].shape.size() >= 2 ? 1 : 0;
        }
        return count;
    };
    EXPECT_EQ(sumsOfWeights(local), 12 * 4);  // twelve blocks of four products
    EXPECT_EQ(sumsOfWeights(added), 0);
    EXPECT_EQ(addedBytesPerElement(local), 0);
    EXPECT_EQ(addedBytesPerElement(added), 2 * 2 - 2);                                             // main gradients in bf16
    EXPECT_EQ(addedBytesPerElement(scheduleOf(gpt2(engine + ",'grad_reduce_in_fp32':true"))), 2 * 4 - 2);
    EXPECT_EQ(addedBytesPerElement(scheduleOf(gpt2(engine, "'precision':'bf16-autocast'"))), 2 * 4 - 2);  // fp32 parameters
}

TEST(Megatron, TransformerEngineHasOneProductForQueriesKeysAndValues) {
    const auto names = [](const std::string& more) {
        const Schedule schedule = scheduleOf("{'model':{'model_type':'llama','num_hidden_layers':2,'hidden_size':256,'num_attention_heads':8,'num_key_value_heads':2,'intermediate_size':512,'vocab_size':512,"
                                             "'max_position_embeddings':128},'device':'h100-sxm','devices':2,'strategy':{'name':'megatron'" + more + "},'training':{'precision':'bf16-master'}}");
        std::vector<std::string> products;
        for (const Op& op : schedule.workload->typeOf(1).ops)
            if (op.kind == OpKind::Linear) products.push_back(op.name);
        return products;
    };
    EXPECT_THAT(names(",'transformer_impl':'transformer_engine'"), ElementsAre("self_attn.linear_qkv", "self_attn.o_proj", "mlp.linear_fc1", "mlp.down_proj"));
    EXPECT_EQ(names("").size(), 7u);
}

TEST(MegatronBuckets, AreFilledFromTheEndAndClosedOnceTheyHaveEnough) {
    // Reversed: 64, then 200 at 64 → 264, then 100 at 320 → 420; padded to lcm(4, 128) = 128: 512.
    const std::vector<std::int64_t> sizes{100, 200, 64};
    const auto one = fillMegatronBuckets(sizes, {0, true, 4, false});
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(one[0].elements, 512);
    EXPECT_THAT(one[0].parameters, ElementsAre(2U, 1U, 0U));
    // A cap of 150: closed at 264, which is padded to 384; then 100, padded to 128.
    const auto two = fillMegatronBuckets(sizes, {150, true, 4, false});
    ASSERT_EQ(two.size(), 2U);
    EXPECT_EQ(two[0].elements, 384);
    EXPECT_EQ(two[1].elements, 128);
    // Plain data parallelism pads nothing.
    EXPECT_EQ(fillMegatronBuckets(sizes, {0, false, 4, false}).front().elements, 364);
    // For NCCL's bandwidth: 2^16.
    EXPECT_EQ(fillMegatronBuckets(sizes, {0, true, 4, true}).front().elements, 65536);
    EXPECT_EQ(fillMegatronBuckets(sizes, {0, true, 3, false}).front().elements, 768) << "lcm(3, 128) = 384";
}

TEST(MegatronBuckets, GrowWithTheNumberOfRanks) {
    EXPECT_EQ(megatronBucketElements(8), 40'000'000);
    EXPECT_EQ(megatronBucketElements(64), 64'000'000);
}

TEST(Megatron, MovesTwiceTheParameters) {
    // Reduce-scatter of gradients and all-gather of parameters, 2 B each; grad_reduce_in_fp32 doubles the first.
    for (const int n : {2, 4, 7, 8}) {
        EXPECT_EQ(wireOf(mlp(n, "'megatron'")), 2 * ringGather(2 * mlpBucket(n), n)) << n;
        EXPECT_EQ(wireOf(mlp(n, "'megatron','grad_reduce_in_fp32':true")), ringGather(4 * mlpBucket(n), n) + ringGather(2 * mlpBucket(n), n)) << n;
        EXPECT_EQ(wireOf(mlp(n, "'megatron','use_distributed_optimizer':false")), ringAllReduce(2 * kMlpParameters, n)) << n;
    }
}

TEST(Megatron, ReducesOnlyInTheLastMicroStep) {
    for (const int k : {2, 4}) EXPECT_EQ(wireOf(mlp(4, "'megatron'", "'grad_accum':" + std::to_string(k))), wireOf(mlp(4, "'megatron'")));
    const Schedule schedule = scheduleOf(gpt2(",'overlap_grad_reduce':true", "'grad_accum':3"));
    for (const TaskId t : tasksOf(schedule, TaskRole::BucketReduce)) EXPECT_EQ(schedule.programs.front().tasks[t].microStep, 2);
    // Every gradient is added into the zeroed buffer, in every micro-step: 148 parameters, and wte has a second contribution.
    EXPECT_EQ(countTasks(schedule, TaskRole::GradientAccumulate), 3 * 149);
}

TEST(Megatron, HasOneBucketUnlessReductionOverlaps) {
    EXPECT_EQ(countTasks(scheduleOf(gpt2("")), TaskRole::BucketReduce), 1);
    // 40 million elements per bucket: 124 million make three and a rest.
    const auto buckets = collectivesOf(scheduleOf(gpt2(",'overlap_grad_reduce':true")), TaskRole::BucketReduce);
    ASSERT_GT(buckets.size(), 1U);
    std::int64_t sum = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        if (b + 1 < buckets.size()) {
            EXPECT_GE(buckets[b].elements, 40'000'000);
        }
        EXPECT_EQ(buckets[b].elements % 128, 0);
        sum += buckets[b].elements;
    }
    EXPECT_GE(sum, kGpt2Parameters);
}

TEST(Megatron, WithoutOverlapNothingHides) {
    const Schedule plain = scheduleOf(gpt2(""));
    EXPECT_GT(tasksOf(plain, TaskRole::BucketReduce).front(), lastOf(plain, Phase::Backward));
    EXPECT_EQ(predictionOf(gpt2("")).breakdown.communicationHidden, Time());
    const std::string overlap = ",'overlap_grad_reduce':true,'bucket_elements':5e6";
    const Schedule early = scheduleOf(gpt2(overlap));
    EXPECT_LT(tasksOf(early, TaskRole::BucketReduce).front(), lastOf(early, Phase::Backward));
    EXPECT_GT(predictionOf(gpt2(overlap)).breakdown.communicationHidden, Time());
}

TEST(Megatron, ParametersAreGatheredOneBucketAheadInTheNextForward) {
    const std::string overlap = ",'overlap_grad_reduce':true,'overlap_param_gather':true,'bucket_elements':5e6";
    const Schedule schedule = scheduleOf(gpt2(overlap));
    const RankProgram& program = schedule.programs.front();
    const std::vector<TaskId> gathers = tasksOf(schedule, TaskRole::ParameterGather);
    const int buckets = countTasks(schedule, TaskRole::BucketReduce);
    ASSERT_EQ(gathers.size(), static_cast<std::size_t>(buckets));
    // All but one during forward, from the last bucket (the model's front) to the first; the one that forward needs first comes right after the step.
    for (std::size_t g = 0; g + 1 < gathers.size(); ++g) {
        EXPECT_LT(gathers[g], lastOf(schedule, Phase::Forward));
        EXPECT_EQ(program.tasks[gathers[g]].part, buckets - 2 - static_cast<int>(g));
    }
    EXPECT_GT(gathers.back(), tasksOf(schedule, TaskRole::OptimizerKernel).back());
    EXPECT_EQ(program.tasks[gathers.back()].part, buckets - 1);
    // Depth one: the next gather is issued only when a kernel is about to wait for the one before.
    for (std::size_t g = 0; g + 2 < gathers.size(); ++g) {
        TaskId waiting = gathers[g + 1];
        while (program.tasks[waiting].stream != kComputeStream) ++waiting;
        const auto waits = program.dependenciesOf(program.tasks[waiting]);
        EXPECT_NE(std::find(waits.begin(), waits.end(), gathers[g]), waits.end()) << g;
    }
    EXPECT_LT(predictionOf(gpt2(overlap)).breakdown.communicationExposed, predictionOf(gpt2(",'overlap_grad_reduce':true,'bucket_elements':5e6")).breakdown.communicationExposed);
    // In step 1 parameters are whole already.
    EXPECT_EQ(countTasks(scheduleOf(gpt2(overlap, "", ",'step':'first'")), TaskRole::ParameterGather), 1);
}

TEST(Megatron, BytesPerParameterAreMegatronsTable) {
    // Persistent, and what the step casts: fp16-like 20 | 4 + 16/d; fp32 gradients 18 | 6 + 12/d; fp32 16 | 8 + 8/d (plain | distributed). Elements
    // are those of the padded buffer where there is one.
    const auto perElement = [](const std::string& strategy, const std::string& training, int d, std::int64_t elements) {
        const Schedule schedule = scheduleOf(mlp(d, "'megatron'" + strategy, training));
        const Bytes bytes = mostLive(schedule, MemoryCategory::Parameters) + mostLive(schedule, MemoryCategory::Gradients) + mostLive(schedule, MemoryCategory::OptimizerState);
        return static_cast<double>(bytes) / static_cast<double>(elements);
    };
    const std::string plain = ",'use_distributed_optimizer':false";
    for (const int d : {2, 4, 8}) {
        const std::int64_t padded = mlpBucket(d);
        EXPECT_DOUBLE_EQ(perElement("", "'precision':'bf16-master'", d, padded), 4 + 16.0 / d);
        EXPECT_DOUBLE_EQ(perElement(",'grad_reduce_in_fp32':true", "'precision':'bf16-master'", d, padded), 6 + 12.0 / d);
        EXPECT_DOUBLE_EQ(perElement("", "'precision':'fp32'", d, padded), 8 + 8.0 / d);
        EXPECT_DOUBLE_EQ(perElement(plain, "'precision':'bf16-master'", d, kMlpParameters), 20);
        EXPECT_DOUBLE_EQ(perElement(plain + ",'grad_reduce_in_fp32':true", "'precision':'bf16-master'", d, kMlpParameters), 18);
        EXPECT_DOUBLE_EQ(perElement(plain, "'precision':'fp32'", d, kMlpParameters), 16);
    }
}

TEST(Megatron, InstancesScatterWithinAndAllReduceBetween) {
    // 8 ranks in 2 instances: shards of a quarter, summed over the two that hold the same.
    const std::string two = "'megatron','num_distributed_optimizer_instances':2";
    const Schedule schedule = scheduleOf(mlp(8, two));
    const auto within = collectivesOf(schedule, TaskRole::BucketReduce), between = collectivesOf(schedule, TaskRole::ReplicaReduce), gathers = collectivesOf(schedule, TaskRole::ParameterGather);
    ASSERT_EQ(within.size(), 1U);
    ASSERT_EQ(between.size(), 1U);
    ASSERT_EQ(gathers.size(), 1U);
    EXPECT_EQ(schedule.axes[within[0].axis].size, 4);
    EXPECT_EQ(schedule.axes[within[0].axis].stride, 1);
    EXPECT_EQ(schedule.axes[between[0].axis].size, 2);
    EXPECT_EQ(schedule.axes[between[0].axis].stride, 4);
    EXPECT_EQ(between[0].elements, mlpBucket(4) / 4);
    EXPECT_EQ(gathers[0].axis, within[0].axis);
    EXPECT_EQ(wireOf(mlp(8, two)), 2 * ringGather(2 * mlpBucket(4), 4) + ringAllReduce(2 * mlpBucket(4) / 4, 2));
    EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState), 12 * mlpBucket(4) / 4) << "state is held once per instance";
    const RankProgram& program = schedule.programs.front();
    EXPECT_NE(program.tasks[tasksOf(schedule, TaskRole::ReplicaReduce).front()].stream, program.tasks[tasksOf(schedule, TaskRole::BucketReduce).front()].stream);
}

TEST(Megatron, ClippingSumsTheNormOverShards) {
    EXPECT_EQ(countTasks(scheduleOf(mlp(4, "'megatron'", "'gradient_clipping':true")), TaskRole::NormReduce), 1);
    EXPECT_EQ(countTasks(scheduleOf(mlp(4, "'megatron','use_distributed_optimizer':false", "'gradient_clipping':true")), TaskRole::NormReduce), 0) << "each rank has all of it";
}

TEST(Megatron, LaterPipelineStagesHaveOneBucket) {
    const std::string text = "{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'strategy':{'name':'megatron','pp':2,'overlap_grad_reduce':true,'overlap_param_gather':true,'bucket_elements':1e6},"
                             "'training':{'grad_accum':4,'precision':'bf16-master'}}";
    const Schedule schedule = scheduleOf(text);
    ASSERT_TRUE(validateSchedule(schedule)) << validateSchedule(schedule).error().toString();
    ASSERT_EQ(schedule.programs.size(), 2U);
    std::vector<int> reduces;
    for (const RankProgram& program : schedule.programs) {
        reduces.push_back(0);
        for (const Task& task : program.tasks) reduces.back() += task.role == TaskRole::BucketReduce;
    }
    EXPECT_GT(reduces[0], 10);
    EXPECT_EQ(reduces[1], 1);
}

TEST(Megatron, OneRankHasNobodyToReduceWith) {
    const Schedule schedule = scheduleOf(mlp(1, "'megatron','overlap_grad_reduce':true,'overlap_param_gather':true"));
    EXPECT_TRUE(schedule.collectives.empty());
    EXPECT_EQ(countTasks(schedule, TaskRole::BucketDivide), 0);
}

TEST(Megatron, SettingsThatMegatronRefusesAreRefused) {
    EXPECT_THAT(writeRefusal(mlp(4, "'megatron','overlap_param_gather':true")), HasSubstr("overlap_grad_reduce"));
    EXPECT_THAT(writeRefusal(mlp(4, "'megatron','tp_comm_overlap':true")), HasSubstr("set tp above 1 and sequence_parallel to true"));
    EXPECT_THAT(writeRefusal(mlp(4, "'megatron','use_distributed_optimizer':false,'num_distributed_optimizer_instances':2")), HasSubstr("use_distributed_optimizer"));
    EXPECT_THAT(writeRefusal(mlp(4, "'megatron','num_distributed_optimizer_instances':3")), HasSubstr("do not divide 4"));
    EXPECT_THAT(refusal(mlp(4, "'megatron','reduce_bucket_size':3")), HasSubstr("no such setting"));
}

TEST(Megatron, ScheduleIsValidAndFoldsWithEveryKnob) {
    for (const char* knob : {"", ",'overlap_grad_reduce':true", ",'overlap_grad_reduce':true,'overlap_param_gather':true", ",'use_distributed_optimizer':false",
                             ",'use_distributed_optimizer':false,'overlap_grad_reduce':true", ",'num_distributed_optimizer_instances':2", ",'num_distributed_optimizer_instances':8",
                             ",'num_distributed_optimizer_instances':4,'overlap_grad_reduce':true,'overlap_param_gather':true", ",'pad_buckets_for_high_nccl_busbw':true",
                             ",'transformer_impl':'transformer_engine','overlap_grad_reduce':true"})
        for (const char* fp32 : {"", ",'grad_reduce_in_fp32':true"})
            for (const char* training : {"'grad_accum':3", "'recompute':'full'", "'precision':'fp16-autocast'", "'precision':'bf16','gradient_clipping':true"}) {
                const Scenario scenario = scenarioOf(gpt2(std::string(",'bucket_elements':1e7") + knob + fp32, training));
                const Schedule schedule = scheduleOf(scenario), unfolded = unfoldRanks(schedule);
                const Result<void> valid = validateSchedule(schedule);
                ASSERT_TRUE(valid) << knob << fp32 << training << ": " << valid.error().toString();
                const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                ASSERT_TRUE(prices);
                EXPECT_EQ(play(schedule, *prices)->stepTime, play(unfolded, *prices)->stepTime) << knob;
            }
}

}  // namespace
}  // namespace ringside::testing
