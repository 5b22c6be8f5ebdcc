// What mixtures of experts cost the host: a launch for each expert, a wait for the router; and graphs of kernels, which spare both.
#include <gmock/gmock.h>

#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"
#include "tests/support/tiny_step.h"

namespace ringside {
namespace {

using namespace testing;
using ::testing::Each;
using ::testing::HasSubstr;

/// Two blocks of eight experts on eight devices, four experts each.
std::string mixtral(const std::string& strategy, const std::string& device = "h100-sxm", const std::string& training = "") {
    return "{'model':{'model_type':'mixtral','num_hidden_layers':2,'num_attention_heads':8,'num_key_value_heads':8,'hidden_size':256,'intermediate_size':512,'vocab_size':1000,"
           "'max_position_embeddings':512,'num_local_experts':8,'num_experts_per_tok':2,'tie_word_embeddings':false},'device':'" +
           device + "','devices':8,'training':{'precision':'fp8','seq_len':128,'grad_accum':2" + training + "},'strategy':{'name':'megatron','ep':2" + strategy + "}}";
}

const std::string kEngine = ",'transformer_impl':'transformer_engine'";

std::vector<Task> routerWaits(const Schedule& schedule) {
    std::vector<Task> waits;
    for (const Task& task : schedule.programs.front().tasks)
        if (task.kind == TaskKind::HostSync && task.role == TaskRole::Synchronize) waits.push_back(task);
    return waits;
}

/// Launches of the forward and backward of both micro-batches; a graph is one.
int launched(const Schedule& schedule) {
    int count = 0;
    for (const Task& task : schedule.programs.front().tasks)
        if (task.stream != kHostStream && task.phase != Phase::Input && task.phase != Phase::Optimizer && !task.replayed) ++count;
    return count;
}

TEST(Player, AKernelOfSeveralLaunchesBeginsWithTheFirst) {
    // Launched in 5 + 3·3 = 14 ns, of 40 ns: the first quarter begins at 5, and the others are there in time. The next one is issued at 19.
    TinyStep step;
    step.launch(5, 5);
    step.prices.nodes[0].furtherLaunch = ns(3);
    const TaskId a = step.kernel(1, {40}), b = step.kernel(1, {1});
    step.schedule.kernels[0].launches = 4;
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][a].start, ns(5));
    EXPECT_EQ(timeline.classes[0][a].end, ns(45));
    EXPECT_EQ(timeline.classes[0][b].issued, ns(19));
}

TEST(Player, AKernelOfSeveralLaunchesEndsAfterTheLast) {
    // Of 4 ns: the last quarter is launched at 14 and ends at 15, so that the device would not have had to begin before 11.
    TinyStep step;
    step.launch(5, 5);
    step.prices.nodes[0].furtherLaunch = ns(3);
    step.kernel(1, {4});
    step.schedule.kernels[0].launches = 4;
    EXPECT_EQ(step.played().stepTime, ns(15));
}

TEST(Player, WhatIsReplayedWithAGraphCostsTheHostNothing) {
    // Three kernels of 1 ns, launched in 5: as one graph the second and third follow at once.
    TinyStep step;
    step.launch(5, 5);
    for (int i = 0; i < 3; ++i) step.kernel(1, {1});
    step.program().tasks[1].replayed = step.program().tasks[2].replayed = true;
    EXPECT_EQ(step.played().stepTime, ns(8));
}

TEST(ExpertLaunches, TransformerEngineIssuesTheKernelsOfEveryExpert) {
    const auto launchesOf = [](const std::string& strategy) {
        const Schedule schedule = scheduleOf(mixtral(strategy));
        std::vector<int> launches;
        for (const Task& task : schedule.programs.front().tasks) {
            if (task.role != TaskRole::Op || task.microStep != 0) continue;
            const Op& op = schedule.workload->typeOf(static_cast<std::size_t>(task.layer)).ops[static_cast<std::size_t>(task.op)];
            if (op.name.starts_with("mlp.experts") && op.kind == OpKind::Linear) launches.push_back(schedule.kernels[task.work].launches);
        }
        return launches;
    };
    // Two blocks, two products; each quantises its input and multiplies, then quantises the gradient and multiplies twice.
    EXPECT_EQ(launchesOf(kEngine), std::vector<int>(2 * 2 * 5, 4));
    EXPECT_EQ(launchesOf(""), std::vector<int>(2 * 2 * 5, 1));
}

TEST(ExpertLaunches, TheHostWaitsForTheRouterOfEachBlockAndMicroBatch) {
    const Schedule schedule = scheduleOf(mixtral(kEngine));
    const Result<void> valid = validateSchedule(schedule);
    EXPECT_TRUE(valid) << valid.error().toString();
    const std::vector<Task> waits = routerWaits(schedule);
    ASSERT_EQ(waits.size(), 4U);
    for (const Task& wait : waits) {
        const Task& awaited = schedule.programs.front().tasks[schedule.programs.front().dependenciesOf(wait).front()];
        EXPECT_EQ(schedule.workload->typeOf(static_cast<std::size_t>(awaited.layer)).ops[static_cast<std::size_t>(awaited.op)].kind, OpKind::Router);
    }
    EXPECT_TRUE(routerWaits(scheduleOf(mixtral(""))).empty());
    EXPECT_TRUE(routerWaits(scheduleOf(mixtral(kEngine + ",'moe_pad_expert_input_to_capacity':true"))).empty());
    EXPECT_TRUE(routerWaits(scheduleOf(mixtral(kEngine + ",'cuda_graph_scope':['full_iteration']"))).empty());
    // Run again, the block waits again.
    EXPECT_EQ(routerWaits(scheduleOf(mixtral(kEngine, "h100-sxm", ",'recompute':'full'"))).size(), 8U);
}

TEST(ExpertLaunches, AGraphIsLaunchedOnceForWhatItHolds) {
    const Schedule eager = scheduleOf(mixtral(kEngine));
    int attention = 0, router = 0, others = 0;
    for (const Task& task : eager.programs.front().tasks) {
        if (task.op < 0 || task.stream == kHostStream) continue;
        const GraphScope scope = eager.workload->typeOf(static_cast<std::size_t>(task.layer)).ops[static_cast<std::size_t>(task.op)].graphScope;
        (scope == GraphScope::Attention ? attention : scope == GraphScope::Router ? router : others) += 1;
    }
    EXPECT_GT(attention, 0);
    EXPECT_GT(router, 0);
    EXPECT_GT(others, 0);
    // Two blocks, two micro-batches, forward and backward: eight graphs.
    EXPECT_EQ(launched(scheduleOf(mixtral(kEngine + ",'cuda_graph_scope':['attn']"))), launched(eager) - attention + 8);
    EXPECT_EQ(launched(scheduleOf(mixtral(kEngine + ",'cuda_graph_scope':['attn','moe_router','moe_preprocess']"))), launched(eager) - attention - router + 8);
    EXPECT_EQ(launched(scheduleOf(mixtral(kEngine + ",'cuda_graph_scope':['full_iteration']"))), 1);
}

TEST(ExpertLaunches, AGraphSparesTheHostAndNothingElse) {
    const auto step = [](const std::string& more) { return predictionOf(mixtral(kEngine + more, "h100-sxm", ",'framework':'transformer-engine'")).stepSeconds; };
    EXPECT_LT(step(",'cuda_graph_scope':['attn','moe_router']"), step(""));
    EXPECT_LT(step(",'cuda_graph_scope':['full_iteration']"), step(",'cuda_graph_scope':['attn','moe_router']"));
}

TEST(ExpertLaunches, LaunchesOfTransformerEngineAreDearAndDearerOnAnArmHost) {
    const auto prices = [](const std::string& device, const std::string& framework) {
        return predictionOf(mixtral(kEngine, device, ",'framework':'" + framework + "'")).prices.nodes.front();
    };
    const Profile profile = scenarioOf(mixtral("")).profiles.front();
    const NodePrices torch = prices("h100-sxm", "pytorch"), engine = prices("h100-sxm", "transformer-engine"), grace = prices("gb200", "transformer-engine");
    EXPECT_NEAR(engine.launch.seconds() / torch.launch.seconds(), profile.transformerEngineLaunch.value, 1e-6);
    EXPECT_EQ(engine.collectiveLaunch, torch.collectiveLaunch);  // PyTorch's own
    EXPECT_EQ(engine.furtherLaunch, torch.furtherLaunch);
    EXPECT_NEAR(grace.launch.seconds() / engine.launch.seconds(), profile.armHost.value, 1e-6);
    EXPECT_NEAR(grace.furtherLaunch.seconds() / engine.furtherLaunch.seconds(), profile.armHost.value, 1e-6);
}

TEST(ExpertLaunches, GraphsThatCannotBeAreRefused) {
    EXPECT_THAT(refusal(mixtral(",'cuda_graph_scope':['attention']")), HasSubstr("attn"));
    EXPECT_THAT(refusal(mixtral(",'cuda_graph_scope':3")), HasSubstr("expected a list, for example [\"attn\"]"));
    const auto wrong = [](const std::string& strategy) {
        const Result<Schedule> schedule = writeSchedule(scenarioOf(mixtral(strategy)));
        return schedule ? "accepted" : schedule.error().toString();
    };
    EXPECT_THAT(wrong(",'cuda_graph_scope':['attn','full_iteration']"), HasSubstr("name it alone"));
    EXPECT_THAT(wrong(",'cuda_graph_scope':['moe']"), HasSubstr("moe_pad_expert_input_to_capacity"));
    EXPECT_EQ(wrong(",'moe_pad_expert_input_to_capacity':true,'cuda_graph_scope':['moe']"), "accepted");
}

/// Bytes and launches of the experts' kernels, of one block's forward and backward.
struct ExpertKernels {
    int kernels = 0, launches = 0;
    double memoryBytes = 0;
};
ExpertKernels expertKernels(const Schedule& schedule) {
    ExpertKernels out;
    for (const Op& op : schedule.workload->typeOf(1).ops) {
        if (!op.name.starts_with("mlp.experts")) continue;
        for (const auto* kernels : {&op.forward, &op.backward})
            for (const KernelWork& work : *kernels) {
                ++out.kernels;
                out.launches += work.launches;
                if (work.cls == KernelClass::Memory) out.memoryBytes += work.bytes;
            }
    }
    return out;
}

TEST(FusedExperts, ActivateAndQuantiseInTheirProducts) {
    const std::string fuser = kEngine + ",'use_transformer_engine_op_fuser':true";
    const std::string gated = ",'gated_activation':'fused'";
    const Schedule fused = scheduleOf(mixtral(fuser, "h100-sxm", gated));
    ASSERT_TRUE(validateSchedule(fused));
    const ExpertKernels apart = expertKernels(scheduleOf(mixtral(kEngine, "h100-sxm", gated))), together = expertKernels(fused);
    // Apart: two products forward and four backward, four quantisations, the activation and its gradient: those of 4 experts in 4 launches each.
    EXPECT_EQ(apart.kernels, 12);
    EXPECT_EQ(apart.launches, 10 * 4 + 2);
    // Left: the products, the input's quantisation and that of the last gradient.
    EXPECT_EQ(together.kernels, 8);
    EXPECT_EQ(together.launches, 8);
    EXPECT_LT(together.memoryBytes, 0.6 * apart.memoryBytes);
    EXPECT_LT(predictionOf(mixtral(fuser, "h100-sxm", gated)).stepSeconds, predictionOf(mixtral(kEngine, "h100-sxm", gated)).stepSeconds);
}

TEST(FusedExperts, AreRefusedWhereTheyDoNotExist) {
    const auto wrong = [](const std::string& text) {
        const auto schedule = writeSchedule(scenarioOf(text));
        return schedule ? std::string("accepted") : schedule.error().message;
    };
    EXPECT_THAT(wrong(mixtral(",'use_transformer_engine_op_fuser':true")), HasSubstr("transformer_impl"));
    std::string wide = mixtral(kEngine + ",'use_transformer_engine_op_fuser':true");
    wide.replace(wide.find("'fp8'"), 5, "'bf16'");
    EXPECT_THAT(wrong(wide), HasSubstr("needs precision fp8, found bf16"));
    EXPECT_THAT(wrong(mixtral(kEngine + ",'use_transformer_engine_op_fuser':true", "h100-sxm", ",'recompute':'selective','recompute_modules':['moe_act']")), HasSubstr("moe_act"));
}

TEST(EightBitAttention, GainsWhatTheProfileSaysAndQuantisesFirst) {
    const std::string eight = mixtral("", "h100-sxm", ",'fp8_dot_product_attention':true");
    const Schedule schedule = scheduleOf(eight);
    const LayerType& block = schedule.workload->typeOf(1);
    const auto attention = std::find_if(block.ops.begin(), block.ops.end(), [](const Op& op) { return op.kind == OpKind::Attention; });
    ASSERT_NE(attention, block.ops.end());
    EXPECT_EQ(attention->forward.front().name, "quantise q, k, v");
    EXPECT_EQ(attention->forward.front().bytes, 1.5 * 128 * 3 * 256 * 2);  // 128 tokens, q, k and v of 256 features in two bytes
    EXPECT_EQ(attention->forward.back().math, DType::Fp8);
    // Enough of it that what a kernel costs beside its arithmetic does not count.
    Scenario scenario = scenarioOf(eight);
    const auto seconds = [&](DType math) {
        Schedule longer = schedule;
        KernelWork work = attention->forward.back();
        work.math = math;
        work.shape = {64, 65536, 65536, 128};
        work.flops = 4.0 * 64 * 65536 * 65536 * 128;
        longer.kernels = {work};
        longer.programs.clear();
        longer.classes.clear();
        return priceSchedule(longer, scenario.cluster, scenario.profiles, DType::Fp8, scenario.pricing)->nodes[0].kernels[0].seconds();
    };
    EXPECT_NEAR(seconds(DType::Bf16) / seconds(DType::Fp8), scenario.profiles[0].fp8Attention.value, 0.01);
    EXPECT_THAT(tryScenario("{'model':'gpt2','device':'h100-sxm','training':{'precision':'bf16','fp8_dot_product_attention':true}}").error().message, HasSubstr("needs precision 'fp8'"));
}

}  // namespace
}  // namespace ringside
