// What holds for FSDP1, FSDP2 and HSDP alike, whatever the ranks and micro-steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sharded_steps.h"

namespace ringside::testing {
namespace {

const std::vector<std::string> kStrategies = {"{'name':'fsdp1'}",
                                              "{'name':'fsdp1','no_sync':false,'backward_prefetch':'post'}",
                                              "{'name':'fsdp1','sharding_strategy':'shard_grad_op'}",
                                              "{'name':'fsdp1','sharding_strategy':'hybrid_shard','limit_all_gathers':false}",
                                              "{'name':'fsdp1','sharding_strategy':'no_shard','no_sync':false}",
                                              "{'name':'fsdp1','cpu_offload':true}",
                                              "{'name':'fsdp2'}",
                                              "{'name':'fsdp2','no_sync':false,'reduce_dtype':'fp32'}",
                                              "{'name':'fsdp2','reshard_after_forward':2,'no_sync':false}",
                                              "{'name':'fsdp2','cpu_offload':true,'no_sync':false}",
                                              "{'name':'hsdp','reshard_after_forward':false}"};

TEST(FsdpSteps, OneMicroStepMayStandForMany) {
    for (const std::string& strategy : kStrategies) {
        const Scenario scenario = scenarioOf(smallLlama(strategy, 4, ",'grad_accum':12", ",'devices_per_node':2"));
        const Result<Schedule> all = writeSchedule(scenario), few = writeSchedule(scenario, 4);
        ASSERT_TRUE(all && few);
        EXPECT_LT(few->programs.front().tasks.size(), all->programs.front().tasks.size() / 2);
        EXPECT_TRUE(validateSchedule(*few)) << strategy;
        EXPECT_EQ(sentBy(*few), sentBy(*all)) << strategy;
        const auto step = [&](const Schedule& schedule) {
            return play(schedule, *priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing))->stepTime.seconds();
        };
        EXPECT_NEAR(step(*few), step(*all), 1e-3 * step(*all)) << strategy;
    }
}

TEST(FsdpSteps, RanksWithUnequalBatchesGatherTheSameUnits) {
    for (const std::string& strategy : kStrategies) {
        const Schedule schedule = validScheduleOf(smallLlama(strategy, 4, ",'rank_batches':[1,2,1,3]", ",'devices_per_node':2"));
        ASSERT_EQ(schedule.programs.size(), 3U);
        for (const RankClass& rankClass : schedule.classes) EXPECT_EQ(bytesSentPerRank(schedule, rankClass), sentBy(schedule)) << strategy;
    }
}

TEST(FsdpSteps, TheFirstStepHasNoOptimizerStateUntilItsEnd) {
    for (const std::string& strategy : kStrategies) {
        const bool offloads = strategy.find("cpu_offload") != std::string::npos;
        const Schedule schedule = validScheduleOf(smallLlama(strategy, 4, "", ",'devices_per_node':2,'step':'first'"));
        EXPECT_EQ(persistentBytes(schedule, MemoryCategory::OptimizerState, offloads), 0) << strategy;
        Bytes made = 0;
        for (const Buffer& buffer : schedule.programs.front().buffers)
            if (buffer.outlives && buffer.category == MemoryCategory::OptimizerState) made += buffer.bytes;
        const Schedule steady = scheduleOf(smallLlama(strategy, 4, "", ",'devices_per_node':2"));
        EXPECT_EQ(made, persistentBytes(steady, MemoryCategory::OptimizerState, offloads)) << strategy;
    }
}

TEST(FsdpSteps, ClippingSumsTheNormOverTheRanksThatShard) {
    const std::string clip = ",'gradient_clipping':true";
    for (const std::string& strategy : kStrategies) {
        const Schedule schedule = validScheduleOf(smallLlama(strategy, 4, clip, ",'devices_per_node':2"));
        const auto norms = collectivesOf(schedule, TaskRole::NormReduce);
        if (strategy.find("no_shard") != std::string::npos) {
            EXPECT_TRUE(norms.empty()) << "every rank has all gradients";
            continue;
        }
        ASSERT_EQ(norms.size(), 1U) << strategy;
        const bool hybrid = strategy.find("hybrid") != std::string::npos || strategy.find("hsdp") != std::string::npos;
        EXPECT_EQ(schedule.axes[norms[0].axis].size, hybrid ? 2 : 4) << "replicas have the same shards";
    }
}

TEST(FsdpSteps, SixteenThousandDevicesAreNoMoreWorkThanSixteen) {
    for (const char* strategy : {"fsdp1", "fsdp2", "hsdp"}) {
        const std::string text = "{'model':'llama-3.1-405b','device':'h100-sxm','devices_per_node':8,'training':{'seq_len':8192,'precision':'bf16-master','recompute':'full'},"
                                 "'strategy':'" + std::string(strategy) + "','devices':";
        const Schedule many = scheduleOf(text + "16384}"), few = scheduleOf(text + "16}");
        EXPECT_LE(many.programs.front().tasks.size(), few.programs.front().tasks.size()) << strategy << ": the optimizer has less to do";
        EXPECT_EQ(many.classes.size(), 1U);
        EXPECT_TRUE(validateSchedule(many)) << strategy;
    }
}

}  // namespace
}  // namespace ringside::testing
