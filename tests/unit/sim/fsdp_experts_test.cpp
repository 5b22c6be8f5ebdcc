// FSDP2 with experts that only some ranks share: they are units of their own, over their own ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/strategy/fsdp2_units.h"
#include "tests/support/sharded_steps.h"

namespace ringside::testing {
namespace {

/// Two blocks with four experts each; `ep` of 4 ranks share them out.
Scenario tinyMixtral(int ep) {
    return scenarioOf("{'model':{'model_type':'mixtral','num_hidden_layers':2,'num_attention_heads':4,'num_key_value_heads':2,'hidden_size':64,'intermediate_size':128,'num_local_experts':4,"
                      "'num_experts_per_tok':2,'vocab_size':1000,'max_position_embeddings':512,'tie_word_embeddings':false},'device':'a100-80gb-sxm','devices':4,"
                      "'training':{'seq_len':64,'precision':'bf16-master'},'strategy':{'name':'fsdp2','ep':" + std::to_string(ep) + "}}");
}

bool isExpert(const StepWriter& step, const ModelParameter& parameter) {
    return parameterName(step.workload(), static_cast<std::size_t>(parameter.layer), parameter.index).find("experts") != std::string::npos;
}

/// A step whose experts are marked, reduced without accumulation.
Schedule expertSchedule(const Scenario& scenario) {
    const StrategyInput input{std::make_shared<const Workload>(*buildWorkload(scenario.model, scenario.training)), scenario.model, scenario.cluster, scenario.training, scenario.parallel};
    const FsdpTypes types = fsdpTypes(scenario.training, scenario.parallel);
    Result<Schedule> schedule = writeStep(
        input, "fsdp2 with experts",
        [&](StepWriter& step) -> Result<void> {
            StateOptions state;
            state.parameters = state.optimizer = false;
            state.gradientDtype = types.gather;
            state.optimizerPrecision = shardPrecision(scenario.training, types);
            step.declareState(state);
            for (ModelParameter& parameter : step.parameters()) parameter.expert = isExpert(step, parameter);
            TRY(FsdpUnits units, fsdpUnits(step, {false, true}));
            TRY(const ShardGroups groups, shardGroups(step, false));
            ShardedUnits hooks(step, std::move(units), types, groups, {});
            step.declareOptimizerState(hooks.targets(step));
            step.runPasses(hooks);
            step.optimizerStep(hooks.targets(step), groups.shardAxis);
            hooks.dropGradients(step);
            step.endStep();
            return {};
        },
        false);
    if (!schedule) throw std::runtime_error(schedule.error().toString());
    return std::move(*schedule);
}

std::map<std::string, int> gathersByAxis(const Schedule& schedule) {
    std::map<std::string, int> count;
    for (const CollectiveWork& work : collectivesOf(schedule, TaskRole::Unshard)) ++count[schedule.axes[work.axis].name];
    return count;
}

TEST(FsdpExperts, AreGatheredAndReducedOverTheRanksThatHoldTheSame) {
    const Schedule schedule = expertSchedule(tinyMixtral(2));
    EXPECT_TRUE(validateSchedule(schedule)) << validateSchedule(schedule).error().toString();
    // The root once, the rest of two blocks twice; the experts of two blocks twice, over 4/2 ranks.
    EXPECT_EQ(gathersByAxis(schedule), (std::map<std::string, int>{{"dp", 5}, {"expert dp", 4}}));
    int reductions = 0;
    for (const CollectiveWork& work : collectivesOf(schedule, TaskRole::ShardReduce)) reductions += schedule.axes[work.axis].name == "expert dp" && schedule.axes[work.axis].size == 2;
    EXPECT_EQ(reductions, 2);
}

TEST(FsdpExperts, ThatNoOtherRankHoldsDoNotTravel) {
    const Schedule schedule = expertSchedule(tinyMixtral(4));
    EXPECT_TRUE(validateSchedule(schedule)) << validateSchedule(schedule).error().toString();
    EXPECT_EQ(gathersByAxis(schedule), (std::map<std::string, int>{{"dp", 5}}));
    // They are copied out of the shard on the compute stream: 5 gathered units and 4 local ones.
    EXPECT_EQ(countTasks(schedule, TaskRole::UnshardCopyOut), 5 + 4);
    EXPECT_EQ(countTasks(schedule, TaskRole::UnshardCopyIn), 5);
    for (const CollectiveWork& work : collectivesOf(schedule, TaskRole::ShardReduce)) EXPECT_EQ(schedule.axes[work.axis].name, "dp");
}

}  // namespace
}  // namespace ringside::testing
