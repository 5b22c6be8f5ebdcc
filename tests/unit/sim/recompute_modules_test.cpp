// Modules that selective recompute runs again: what is no longer kept, by hand, and when it is made again.
#include <set>

#include <gmock/gmock.h>

#include "sim/schedule/validate_schedule.h"
#include "sim/strategy/layer_plan.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kTokens = 512;

TrainingConfig deepseekTraining(std::vector<RecomputeModule> modules) {
    TrainingConfig training;
    training.seqLen = kTokens;
    training.precision = precisionByName("bf16").value();
    training.gatedActivation = GatedKernel::Fused;
    training.recompute = Recompute::Selective;
    training.recomputeModules = std::move(modules);
    return training;
}

/// Bytes that layer `l` of DeepSeek-V3 (1: dense, 4: experts) keeps from forward on: each memory once.
Bytes keptBytes(std::size_t l, std::vector<RecomputeModule> modules) {
    const TrainingConfig training = deepseekTraining(std::move(modules));
    const Workload workload = buildWorkload(catalogs().models.find("deepseek-v3").value(), training).value();
    const LayerType& type = workload.typeOf(l);
    const LayerPlan plan = planLayer(type, training);
    std::set<int> kept;
    for (std::size_t o = 0; o < type.ops.size(); ++o)
        for (int v : plan.ops[o].savedInForward) {
            for (int maker = plan.producer[static_cast<std::size_t>(v)]; maker >= 0 && plan.ops[static_cast<std::size_t>(maker)].isView; maker = plan.producer[static_cast<std::size_t>(v)])
                v = type.ops[static_cast<std::size_t>(maker)].inputs[0];
            kept.insert(v);
        }
    Bytes bytes = 0;
    for (const int v : kept) bytes += type.values[static_cast<std::size_t>(v)].bytes();
    return bytes;
}

/// What a module spares per token.
std::int64_t spared(std::size_t layer, RecomputeModule module) { return (keptBytes(layer, {}) - keptBytes(layer, {module})) / kTokens; }

// DeepSeek-V3: hidden 7168; 128 heads of 192 for queries and keys and 128 for values; a dense MLP of 18432; 8 of 256 experts of 2048, one of them shared.
TEST(RecomputeModules, LetGoOfWhatTheyMake) {
    // Queries, keys and values; the vectors of 1536 and 512 + 64 that they are made of are kept anyway.
    EXPECT_EQ(spared(4, RecomputeModule::LatentUp), 2 * 128 * (192 + 192 + 128));
    // The product of gate and up for eight rows per token.
    EXPECT_EQ(spared(4, RecomputeModule::ExpertActivation), 2 * 8 * 2048);
    // Two normed tokens and their statistics.
    EXPECT_EQ(spared(4, RecomputeModule::LayerNorm), 2 * (2 * 7168 + 4));
    // Gate, up and their product of the dense MLP; of the shared expert.
    EXPECT_EQ(spared(1, RecomputeModule::Mlp), 2 * 3 * 18432);
    EXPECT_EQ(spared(4, RecomputeModule::SharedExperts), 2 * 3 * 2048);
    // Eight rows, gate and up of them, their product and their weights; routing: 256 probabilities, eight weights in fp32, eight indices in int64; the shared expert.
    EXPECT_EQ(spared(4, RecomputeModule::Experts), 8 * (2 * 7168 + 2 * 3 * 2048 + 4) + 4 * 256 + 8 * (4 + 8) + 2 * 3 * 2048);
}

TEST(RecomputeModules, AreOfTheBlocksThatHaveThem) {
    EXPECT_EQ(spared(4, RecomputeModule::Mlp), 0);
    EXPECT_EQ(spared(1, RecomputeModule::Experts), 0);
    EXPECT_EQ(spared(1, RecomputeModule::LatentUp), spared(4, RecomputeModule::LatentUp));
}

TEST(RecomputeModules, SpareTogetherWhatEachDoes) {
    using enum RecomputeModule;
    EXPECT_EQ(keptBytes(4, {}) - keptBytes(4, {LatentUp, ExpertActivation, LayerNorm}), kTokens * (spared(4, LatentUp) + spared(4, ExpertActivation) + spared(4, LayerNorm)));
    // What lies inside the mixture of experts runs again with it.
    EXPECT_EQ(keptBytes(4, {ExpertActivation, SharedExperts, Experts}), keptBytes(4, {Experts}));
}

const std::string kSmall = "{'model':{'model_type':'deepseek_v3','num_hidden_layers':3,'num_attention_heads':4,'num_key_value_heads':4,'hidden_size':128,'intermediate_size':512,'vocab_size':1000,"
                           "'max_position_embeddings':512,'n_routed_experts':8,'num_experts_per_tok':2,'moe_intermediate_size':64,'n_shared_experts':1,'first_k_dense_replace':1,'q_lora_rank':96,"
                           "'kv_lora_rank':64,'qk_nope_head_dim':32,'qk_rope_head_dim':16,'v_head_dim':32,'n_group':2},"
                           "'device':'h100-sxm','devices':8,'training':{'precision':'bf16-master','seq_len':256,'gated_activation':'fused','recompute':'selective','recompute_modules':[";

std::string small(const std::string& modules, const std::string& strategy = "'ep':4") { return kSmall + modules + "]},'strategy':{'name':'megatron'," + strategy + "}}"; }

/// Names of the ops of one layer that run again, and before each run the op of backward that it waits for: "again … | before".
std::vector<std::string> secondRuns(const Schedule& schedule, int layer) {
    std::vector<std::string> runs;
    bool open = false;
    for (const Task& task : schedule.programs.front().tasks) {
        if (task.layer != layer || (task.role != TaskRole::Op && task.role != TaskRole::OpCollective)) continue;
        const std::string& name = schedule.workload->typeOf(static_cast<std::size_t>(layer)).ops[static_cast<std::size_t>(task.op)].name;
        if (task.phase == Phase::Recompute) {
            if (!open) runs.emplace_back();
            if (!runs.back().ends_with(name)) runs.back() += (open ? " " : "") + name;
            open = true;
        } else if (open) {
            runs.back() += " | " + name;
            open = false;
        }
    }
    return runs;
}

TEST(RecomputeModules, RunAgainBeforeTheOpThatWaitsForThem) {
    EXPECT_THAT(secondRuns(scheduleOf(small("'mla_up_proj'")), 2), ElementsAre("self_attn.q_b_proj self_attn.kv_b_proj heads | attention"));
    EXPECT_THAT(secondRuns(scheduleOf(small("'moe_act'")), 2), ElementsAre("mlp.experts.act | mlp.experts.down_proj"));
    // The norms are there again before the backward of the MLP (whose last op adds the shared expert, without a kernel) and of attention begins.
    EXPECT_THAT(secondRuns(scheduleOf(small("'layernorm'")), 2),
                ElementsAre("post_attention_layernorm | mlp.shared_experts.down_proj", "input_layernorm | self_attn.o_proj"));
    EXPECT_THAT(secondRuns(scheduleOf(small("'mlp'")), 1), ElementsAre("mlp.gate_proj mlp.up_proj mlp.act mlp.down_proj | mlp.down_proj"));
    EXPECT_THAT(secondRuns(scheduleOf(small("'mlp'")), 2), IsEmpty());
    // A whole mixture of experts sends its tokens again.
    const std::vector<std::string> experts = secondRuns(scheduleOf(small("'moe'")), 2);
    ASSERT_EQ(experts.size(), 1u);
    EXPECT_THAT(experts[0], HasSubstr("mlp.dispatch.all_to_all"));
    EXPECT_THAT(experts[0], HasSubstr("mlp.combine.all_to_all"));
}

TEST(RecomputeModules, MakeValidSchedulesAloneAndTogetherOnEveryMesh) {
    for (const char* modules : {"", "'core_attn'", "'mla_up_proj'", "'moe_act'", "'layernorm'", "'mlp'", "'moe'", "'shared_experts'", "'mla_up_proj','mlp'", "'core_attn','mla_up_proj','layernorm','moe_act','mlp','shared_experts'"})
        for (const char* strategy : {"'ep':4", "'tp':2,'ep':2", "'tp':2,'sequence_parallel':true,'etp':1,'ep':4", "'pp':2,'ep':2"}) {
            const Result<void> valid = validateSchedule(scheduleOf(small(modules, strategy)));
            EXPECT_TRUE(valid) << modules << " " << strategy << ": " << valid.error().toString();
        }
}

TEST(RecomputeModules, CostTimeAndSpareMemory) {
    const Prediction none = predictionOf(small("")), up = predictionOf(small("'mla_up_proj'")), experts = predictionOf(small("'moe'"));
    EXPECT_GT(up.breakdown.compute, none.breakdown.compute);
    EXPECT_GT(up.hfu / up.mfu, none.hfu / none.mfu);
    EXPECT_GT(experts.hfu / experts.mfu, none.hfu / none.mfu);
    EXPECT_LT(categoryBytes(experts, MemoryCategory::Activations), categoryBytes(none, MemoryCategory::Activations));
    EXPECT_LT(categoryBytes(up, MemoryCategory::Activations), categoryBytes(none, MemoryCategory::Activations));
}

// Transformer Engine makes one module of a norm and the product after it, but for latent attention and experts.
TEST(RecomputeModules, NormsThatArePartOfAProductDoNotRunAgain) {
    EXPECT_THAT(secondRuns(scheduleOf(small("'layernorm'")), 1), ::testing::SizeIs(2));
    EXPECT_THAT(secondRuns(scheduleOf(small("'layernorm'", "'ep':4,'transformer_impl':'transformer_engine'")), 1), ElementsAre("input_layernorm | self_attn.o_proj"));
    EXPECT_THAT(secondRuns(scheduleOf(small("'layernorm'", "'ep':4,'transformer_impl':'transformer_engine'")), 2), ::testing::SizeIs(2));
}

TEST(RecomputeModules, AreRefusedWhereTheyAreNot) {
    EXPECT_THAT(refusal(small("'mla_up_prj'")), HasSubstr("did you mean 'mla_up_proj'"));
    const std::string gpt2 = "{'model':'gpt2','device':'h100-sxm','devices':8,'training':{'recompute':";
    EXPECT_THAT(refusal(gpt2 + "'full','recompute_modules':['core_attn']}}"), HasSubstr("set recompute to selective"));
    EXPECT_THAT(refusal(gpt2 + "'selective','recompute_modules':['mlp']}}"), HasSubstr("set strategy.name to megatron"));
    EXPECT_THAT(refusal(gpt2 + "'selective','recompute_modules':['moe_act']},'strategy':{'name':'megatron'}}"), HasSubstr("gpt2 has no module 'moe_act'"));
    EXPECT_THAT(refusal(gpt2 + "'selective','recompute_modules':['mla_up_proj']},'strategy':{'name':'megatron'}}"), HasSubstr("has no module"));
    const Result<Schedule> overlapped = writeSchedule(scenarioOf(small("'moe'", "'ep':4,'overlap_moe_expert_parallel_comm':true")));
    ASSERT_FALSE(overlapped);
    EXPECT_THAT(overlapped.error().toString(), HasSubstr("leave one of them out"));
}

TEST(RecomputeModules, AreWrittenBackAsGiven) {
    const Json written = toJson(scenarioOf(small("'mla_up_proj','mlp'")));
    EXPECT_EQ(written["training"]["recompute_modules"], Json::array({"mla_up_proj", "mlp"}));
    EXPECT_FALSE(toJson(scenarioOf(small("'core_attn'")))["training"].contains("recompute_modules"));
}

}  // namespace
}  // namespace ringside
