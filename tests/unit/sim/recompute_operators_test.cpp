// Checkpoints by operators (recompute selective-op): a block runs again but for attention and every second product, as in torchtitan.
#include <gmock/gmock.h>

#include "sim/schedule/validate_schedule.h"
#include "sim/strategy/layer_plan.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string llama(const std::string& recompute, const std::string& strategy = "{'name':'fsdp2','param_dtype':'bf16'}", const std::string& training = "") {
    return "{'model':{'model_type':'llama','num_hidden_layers':3,'hidden_size':256,'num_attention_heads':8,'num_key_value_heads':2,'intermediate_size':768,'vocab_size':512,"
           "'max_position_embeddings':1024,'tie_word_embeddings':false},'device':'h100-sxm','devices':4,'strategy':" + strategy + ",'training':{'micro_batch':2,'recompute':'" + recompute + "'" + training + "}}";
}

/// Names of the first block's ops that run in this phase, in order, each once.
std::vector<std::string> opsOf(const Schedule& schedule, Phase phase) {
    std::vector<std::string> names;
    for (const Task& task : schedule.programs.front().tasks) {
        if (task.phase != phase || task.layer != 1 || task.op < 0 || task.kind != TaskKind::Kernel) continue;
        const std::string& name = schedule.workload->typeOf(1).ops[static_cast<std::size_t>(task.op)].name;
        if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
}

TEST(RecomputeOperators, KeepsAttentionAndEverySecondProduct) {
    const Schedule schedule = scheduleOf(llama("selective-op"));
    ASSERT_TRUE(validateSchedule(schedule));
    // Products in order: q, k, v, o, gate, up, down. Those kept do not run again: q, v, gate, down.
    EXPECT_THAT(opsOf(schedule, Phase::Recompute), ElementsAre("input_layernorm", "self_attn.k_proj", "rotary", "self_attn.o_proj", "add_1", "post_attention_layernorm", "mlp.up_proj", "mlp.act", "add_2"));
    EXPECT_EQ(opsOf(schedule, Phase::Forward).size(), opsOf(schedule, Phase::Recompute).size() + 5);
}

TEST(RecomputeOperators, EndsEarlyWithTheLastTensorThatBackwardNeeds) {
    const Schedule schedule = scheduleOf(llama("selective-op", "{'name':'fsdp2','param_dtype':'bf16'}", ",'recompute_early_stop':true"));
    ASSERT_TRUE(validateSchedule(schedule));
    EXPECT_EQ(opsOf(schedule, Phase::Recompute).back(), "mlp.act");
}

TEST(RecomputeOperators, LiesBetweenNoneAndFullInTimeAndMemory) {
    const Prediction none = predictionOf(llama("none")), some = predictionOf(llama("selective-op")), full = predictionOf(llama("full"));
    EXPECT_LT(none.stepSeconds, some.stepSeconds);
    EXPECT_LT(some.stepSeconds, full.stepSeconds);
    EXPECT_GT(none.memory.peakAllocated, some.memory.peakAllocated);
    EXPECT_GT(some.memory.peakAllocated, full.memory.peakAllocated);
    // Utilisation with what runs again: k, o and up of the seven products.
    EXPECT_GT(some.hfu / some.mfu, 1);
    EXPECT_LT(some.hfu / some.mfu, full.hfu / full.mfu);
}

TEST(RecomputeOperators, GoesWithEveryStrategyThatCheckpointsBlocks) {
    for (const char* strategy : {"{'name':'ddp'}", "{'name':'zero3'}", "{'name':'fsdp1'}", "{'name':'hsdp','shard_group':2}", "{'name':'megatron','pp':2}", "{'name':'ddp','tp':2}"}) {
        const Schedule schedule = scheduleOf(llama("selective-op", strategy, ",'grad_accum':2"));
        EXPECT_TRUE(validateSchedule(schedule)) << strategy;
    }
}

TEST(RecomputeOperators, SpareNoOffload) {
    const Scenario scenario = scenarioOf(llama("selective-op", "{'name':'fsdp2'}", ",'offload_activations':true"));
    const auto schedule = writeSchedule(scenario);
    ASSERT_FALSE(schedule);
    EXPECT_THAT(schedule.error().message, HasSubstr("set recompute to full"));
}

}  // namespace
}  // namespace ringside
