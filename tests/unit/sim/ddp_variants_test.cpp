// DDP's rarer modes: PowerSGD, the join context, gradients that are a step old; docs/models/ddp.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kMlpParameters = 25'175'040;

std::string ddp(const std::string& knobs, int devices = 4, const std::string& training = "'micro_batch':64,'optimizer':'sgd'", const std::string& more = "", const std::string& model = "mlp") {
    return "{'model':'" + model + "','device':'a100-80gb-sxm','devices':" + std::to_string(devices) + ",'training':{" + training + "},'strategy':{'name':'ddp'" + knobs + "}" + more + "}";
}

std::int64_t elements(const std::vector<CollectiveWork>& works) {
    std::int64_t sum = 0;
    for (const CollectiveWork& work : works) sum += work.elements;
    return sum;
}

TEST(PowerSgd, SendsThinFactorsOfMatricesAndTheRestWhole) {
    for (const int rank : {1, 4}) {
        const Schedule schedule = scheduleOf(ddp(",'comm_hook':'powersgd','powersgd_rank':" + std::to_string(rank)));
        // (n + m)·r for 4096×1024, 4096×4096, 1024×4096; biases of 4096 + 4096 + 1024 as they are.
        EXPECT_EQ(elements(collectivesOf(schedule, TaskRole::BucketReduce)), rank * (5120 + 8192 + 5120) + 9216) << rank;
    }
}

TEST(PowerSgd, LeavesMatricesWholeThatItWouldNotHalve) {
    // 2·(n + m)·r < n·m fails for 4096×1024 from r = 410 on, for 4096×4096 only from r = 1024.
    const Schedule schedule = scheduleOf(ddp(",'comm_hook':'powersgd','powersgd_rank':600"));
    EXPECT_EQ(elements(collectivesOf(schedule, TaskRole::BucketReduce)), 600 * 8192 + 2 * 4096 * 1024 + 9216);
}

TEST(PowerSgd, ReducesThreeTimesInARow) {
    const Schedule schedule = scheduleOf(ddp(",'comm_hook':'powersgd','bucket_mb':1000"));
    const auto reduced = collectivesOf(schedule, TaskRole::BucketReduce);
    ASSERT_EQ(reduced.size(), 3U);  // one bucket: the rest, P, Q
    EXPECT_EQ(reduced[0].elements, 9216);
    EXPECT_EQ(reduced[1].elements, 4096 + 4096 + 1024);
    EXPECT_EQ(reduced[2].elements, 1024 + 4096 + 4096);
    // P is made orthogonal between its all-reduce and Q's.
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    int reductions = 0, orthogonalisedBetween = 0;
    for (const Task& task : tasks) {
        reductions += task.role == TaskRole::BucketReduce;
        orthogonalisedBetween += task.role == TaskRole::Orthogonalise && reductions == 2;
    }
    EXPECT_GT(orthogonalisedBetween, 0);
}

TEST(PowerSgd, NeedsAsMuchMemoryForTheErrorAsForTheBuckets) {
    const auto buckets = [](const Schedule& schedule) {
        Bytes sum = 0;
        for (const Buffer& buffer : schedule.programs.front().buffers) sum += buffer.persistent && buffer.category == MemoryCategory::Buckets ? buffer.bytes : 0;
        return sum;
    };
    EXPECT_EQ(buckets(scheduleOf(ddp(""))), 4 * kMlpParameters);
    EXPECT_EQ(buckets(scheduleOf(ddp(",'comm_hook':'powersgd'"))), 8 * kMlpParameters + 4 * (5120 + 8192 + 5120));
}

TEST(PowerSgd, HasNotBegunInStep1) {
    const Schedule schedule = scheduleOf(ddp(",'comm_hook':'powersgd'", 4, "'micro_batch':64", ",'step':'first'"));
    EXPECT_EQ(elements(collectivesOf(schedule, TaskRole::BucketReduce)), kMlpParameters);
}

TEST(PowerSgd, HelpsOnASlowNetworkOnly) {
    const auto seconds = [](const std::string& knobs, const std::string& network) {
        return predictionOf("{'model':'gpt2','device':'a100-80gb-sxm','devices':32,'devices_per_node':8,'training':{'micro_batch':4},'strategy':{'name':'ddp'" + knobs + "}" + network + "}").stepSeconds;
    };
    EXPECT_LT(seconds(",'comm_hook':'powersgd'", ",'network':'ethernet-25g'"), 0.5 * seconds("", ",'network':'ethernet-25g'"));
    EXPECT_GT(seconds(",'comm_hook':'powersgd'", ""), 0.95 * seconds("", ""));
}

TEST(Join, AsksBeforeEveryForwardAndWaits) {
    const Schedule schedule = scheduleOf(ddp(",'join':true", 4, "'grad_accum':3"));
    const auto asked = collectivesOf(schedule, TaskRole::JoinNotify);
    EXPECT_EQ(asked.size(), 3U);
    for (const CollectiveWork& work : asked) EXPECT_EQ(work.elements, 1);
    int waits = 0;
    for (const Task& task : schedule.programs.front().tasks) waits += task.role == TaskRole::JoinNotify && task.kind == TaskKind::HostSync;
    EXPECT_EQ(waits, 3);
    EXPECT_GT(predictionOf(ddp(",'join':true")).stepSeconds, predictionOf(ddp("")).stepSeconds);
}

TEST(Join, ExhaustedRanksShadowEveryCollective) {
    const Schedule schedule = scheduleOf(ddp(",'join':true,'exhausted_ranks':1", 4, "'micro_batch':8", "", "resnet-18"));
    ASSERT_EQ(schedule.programs.size(), 2U);
    const auto collectives = [&](std::size_t program) {
        std::vector<std::pair<std::string, std::int64_t>> all;
        for (const Task& task : schedule.programs[program].tasks)
            if (task.kind == TaskKind::Collective) all.emplace_back(nameOf(schedule.collectives[task.work].op), schedule.collectives[task.work].elements);
        return all;
    };
    EXPECT_EQ(collectives(0), collectives(1));
    for (const Task& task : schedule.programs[1].tasks) {
        EXPECT_NE(task.role, TaskRole::Op);
        EXPECT_NE(task.role, TaskRole::OptimizerKernel);
    }
    EXPECT_EQ(schedule.classes[0].ranks.count, 3);
    EXPECT_EQ(schedule.classes[1].ranks.first, 3);
}

TEST(Join, ExhaustedRanksBringNoSamples) {
    const Prediction all = predictionOf(ddp(",'join':true")), some = predictionOf(ddp(",'join':true,'exhausted_ranks':1"));
    EXPECT_NEAR(some.samplesPerSecond * some.stepSeconds, 0.75 * all.samplesPerSecond * all.stepSeconds, 1e-6);
}

TEST(Join, RefusesWhatDoesNotGoTogether) {
    const auto refused = [](const std::string& knobs, int devices = 4) {
        const Result<Schedule> schedule = writeSchedule(scenarioOf(ddp(knobs, devices)));
        return schedule ? std::string("accepted") : schedule.error().toString();
    };
    EXPECT_THAT(refused(",'exhausted_ranks':1"), AllOf(HasSubstr("exhausted_ranks"), HasSubstr("join = true")));
    EXPECT_THAT(refused(",'join':true,'exhausted_ranks':4"), HasSubstr("at least one of the 4 ranks"));
    EXPECT_THAT(refused(",'join':true,'exhausted_ranks':1,'tp':2"), HasSubstr("data parallelism only"));
    EXPECT_THAT(refused(",'join':true,'async_gradients':true"), HasSubstr("async_gradients"));
}

TEST(AsyncGradients, TravelWhileTheNextStepComputes) {
    const Prediction p = predictionOf(ddp(",'async_gradients':true", 4, "'micro_batch':4096,'optimizer':'sgd'"));
    EXPECT_EQ(p.bytesSentPerRank, 6 * kMlpParameters);  // 2·3/4·4Ψ, as ever
    EXPECT_GT(p.breakdown.communicationHidden, Time());
    // Every bucket is sent before the first kernel of forward is issued.
    const std::vector<Task>& tasks = p.schedule->programs.front().tasks;
    std::size_t firstForward = tasks.size(), lastReduce = 0;
    for (std::size_t t = tasks.size(); t-- > 0;) {
        if (tasks[t].role == TaskRole::Op) firstForward = t;
        if (tasks[t].role == TaskRole::BucketReduce) lastReduce = std::max(lastReduce, t);
    }
    EXPECT_LT(lastReduce, firstForward);
    EXPECT_LT(p.stepSeconds, predictionOf(ddp("", 4, "'micro_batch':4096,'optimizer':'sgd'")).stepSeconds);
}

TEST(AsyncGradients, TakeTwiceTheBucketsAndHaveNothingToApplyInStep1) {
    Bytes buckets = 0;
    const Schedule schedule = scheduleOf(ddp(",'async_gradients':true"));
    for (const Buffer& buffer : schedule.programs.front().buffers) buckets += buffer.category == MemoryCategory::Buckets ? buffer.bytes : 0;
    EXPECT_EQ(buckets, 8 * kMlpParameters);
    const Schedule first = scheduleOf(ddp(",'async_gradients':true", 4, "'micro_batch':64", ",'step':'first'"));
    EXPECT_EQ(countTasks(first, TaskKind::Collective), 0);
    EXPECT_EQ(countTasks(first, TaskRole::OptimizerKernel), 0);
}

TEST(DdpVariants, SchedulesAreValidAndFold) {
    for (const char* knobs : {",'comm_hook':'powersgd'", ",'comm_hook':'powersgd','powersgd_rank':8,'gradient_as_bucket_view':true", ",'join':true", ",'join':true,'exhausted_ranks':1",
                              ",'async_gradients':true", ",'join':true,'exhausted_ranks':1,'find_unused_parameters':true,'no_sync':false", ",'comm_hook':'powersgd','no_sync':false"})
        for (const char* model : {"mlp", "resnet-18", "gpt2"})
            for (const char* training : {"'micro_batch':2", "'grad_accum':3,'precision':'fp16-autocast','gradient_clipping':true", "'precision':'bf16-master'"})
                for (const char* step : {"steady", "first"}) {
                    const Scenario scenario = scenarioOf(ddp(knobs, 4, training, ",'step':'" + std::string(step) + "'", model));
                    const Schedule schedule = scheduleOf(scenario);
                    const Result<void> valid = validateSchedule(schedule);
                    EXPECT_TRUE(valid) << knobs << ", " << model << ": " << (valid ? "" : valid.error().toString());
                    const Prices prices = *priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                    EXPECT_EQ(play(schedule, prices)->stepTime, play(unfoldRanks(schedule), prices)->stepTime) << knobs;
                }
}

}  // namespace
}  // namespace ringside::testing
