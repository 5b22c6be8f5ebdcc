// Naive all-reduce, Picotron's buckets and the single device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

using ::testing::HasSubstr;

std::string gpt2(const std::string& strategy, const std::string& training = "'micro_batch':2") {
    return "{'model':'gpt2','device':'a100-80gb-sxm','devices':4,'training':{" + training + "},'strategy':" + strategy + "}";
}
constexpr std::int64_t kGpt2Parameters = 124'439'808;

TEST(NaiveAllReduce, ReducesEachParameterByItself) {
    const Schedule schedule = scheduleOf(gpt2("'naive'"));
    EXPECT_EQ(countTasks(schedule, TaskKind::Collective), 148);
    EXPECT_EQ(countTasks(schedule, TaskRole::GradientDivide), 148);
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 3 * kGpt2Parameters * 4 / 2);  // 2·3/4·Ψ·4
}

TEST(NaiveAllReduce, NothingOverlaps) {
    const Prediction prediction = predictionOf(gpt2("'naive'"));
    EXPECT_EQ(prediction.breakdown.communicationHidden, Time());
    EXPECT_GT(prediction.breakdown.communicationExposed, Time());
    EXPECT_GT(prediction.stepSeconds, predictionOf(gpt2("'ddp'")).stepSeconds);
}

TEST(NaiveAllReduce, NoSyncReducesOncePerStep) {
    const std::string accumulate = "'micro_batch':2,'grad_accum':3";
    EXPECT_EQ(countTasks(scheduleOf(gpt2("'naive'", accumulate)), TaskKind::Collective), 148);
    EXPECT_EQ(countTasks(scheduleOf(gpt2("{'name':'naive','no_sync':false}", accumulate)), TaskKind::Collective), 3 * 148);
}

TEST(Picotron, SendsFp32EvenForBf16Models) {
    for (const char* precision : {"bf16", "bf16-autocast"}) {
        const Schedule schedule = scheduleOf(gpt2("'picotron'", "'precision':'" + std::string(precision) + "'"));
        for (const CollectiveWork& work : collectivesOf(schedule, TaskRole::BucketReduce)) EXPECT_EQ(work.dtype, DType::Fp32);
        EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 3 * kGpt2Parameters * 4 / 2) << precision;
    }
}

TEST(Picotron, BucketsAreInRegistrationOrderSoTheLastIsReducedFirst) {
    const Schedule schedule = scheduleOf(gpt2("'picotron'"));
    std::vector<int> order;
    for (const Task& task : schedule.programs.front().tasks)
        if (task.role == TaskRole::BucketReduce) order.push_back(task.part);
    // Each is launched as soon as it is complete: from the model's end to its front.
    ASSERT_GT(order.size(), 4U);
    for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int>(order.size() - 1 - i));
}

TEST(Picotron, HasItsOwnDefaultsWhichCanBeOverruled) {
    const Scenario plain = scenarioOf("{'model':'llama-3.2-1b','device':'h100-sxm','devices':4,'strategy':'picotron'}");
    EXPECT_EQ(plain.parallel.tensorStyle, "picotron");
    EXPECT_FALSE(plain.parallel.contextBalanced);
    const Scenario overruled = scenarioOf("{'model':'llama-3.2-1b','device':'h100-sxm','devices':4,'strategy':{'name':'picotron','tensor_style':'megatron','context_balanced':true}}");
    EXPECT_EQ(overruled.parallel.tensorStyle, "megatron");
    EXPECT_TRUE(overruled.parallel.contextBalanced);
}

TEST(Picotron, WithContextParallelismAloneDoesNotAverageAndSynchronisesEveryStepOfItsRing) {
    const Schedule schedule = scheduleOf("{'model':'llama-3.2-1b','device':'h100-sxm','devices':2,'training':{'seq_len':4096},'strategy':{'name':'picotron','cp':2}}");
    EXPECT_EQ(countTasks(schedule, TaskRole::BucketReduce), 0);
    // 16 layers, one exchange forward and one in backward each (a ring of two), and the host waits for each.
    int waits = 0;
    for (const Task& task : schedule.programs.front().tasks) waits += task.kind == TaskKind::HostSync && task.role == TaskRole::RingExchange;
    EXPECT_EQ(waits, 2 * 16);
}

TEST(Picotron, NoBucketExceedsTheCapUnlessOneTensorDoes) {
    const auto buckets = collectivesOf(scheduleOf(gpt2("'picotron'")), TaskRole::BucketReduce);
    // wte alone has 50257·768·4 B = 147 MiB.
    int above = 0;
    for (const CollectiveWork& work : buckets) above += work.bytes() > 25 * kMiB;
    EXPECT_EQ(above, 1);
}

TEST(Picotron, CastsGradientsBackOnlyWhereTheTypesDiffer) {
    EXPECT_EQ(countTasks(scheduleOf(gpt2("'picotron'", "'precision':'bf16'")), TaskRole::GradientCast), 148);
    EXPECT_EQ(countTasks(scheduleOf(gpt2("'picotron'", "'precision':'bf16-autocast'")), TaskRole::GradientCast), 0);
}

TEST(Picotron, AccumulatesInMainGradientsAndReducesOnce) {
    const Schedule schedule = scheduleOf(gpt2("'picotron'", "'grad_accum':3"));
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 3 * kGpt2Parameters * 4 / 2);
    EXPECT_EQ(countTasks(schedule, TaskRole::LossRead), 4) << "loss.item() in every micro-step, and one at the end";
}

TEST(Picotron, NeedsTwelveBytesPerParameterInPureBf16) {
    // 2 weights + 4 main_grad + 2 cast gradient + 2 + 2 AdamW in bf16; no fp32 master. The allocator's blocks add some percent.
    // The casts are alive in the optimizer step, which is the peak with few tokens.
    const Prediction p = predictionOf(gpt2("'picotron'", "'seq_len':32,'precision':'bf16','optimizer':'adamw-fused'"));
    const auto per = [&](MemoryCategory category) { return static_cast<double>(categoryBytes(p, category)) / static_cast<double>(kGpt2Parameters); };
    EXPECT_NEAR(per(MemoryCategory::Parameters), 2, 0.1);
    EXPECT_NEAR(per(MemoryCategory::Buckets), 4, 0.1);
    EXPECT_NEAR(per(MemoryCategory::Gradients), 2, 0.1);
    EXPECT_NEAR(per(MemoryCategory::OptimizerState), 4, 0.1);
}

TEST(SingleDevice, CommunicatesNothing) {
    const Schedule schedule = scheduleOf("{'model':'mlp','device':'a100-80gb-sxm','strategy':'single'}");
    EXPECT_EQ(countTasks(schedule, TaskKind::Collective), 0);
}

TEST(SingleDevice, RefusesMoreDevices) {
    const Result<Schedule> schedule = writeSchedule(scenarioOf(gpt2("'single'")));
    ASSERT_FALSE(schedule);
    EXPECT_THAT(schedule.error().toString(), HasSubstr("'single' trains on one device, but the cluster has 4"));
}

TEST(Strategies, AreFoundByNameAndTheErrorNamesTheNearest) {
    for (const auto& strategy : strategies()) {
        EXPECT_EQ((*strategyByName(strategy->name()))->name(), strategy->name());
        EXPECT_FALSE(strategy->summary().empty());
    }
    EXPECT_THAT(strategyByName("ddpp").error().toString(), HasSubstr("did you mean 'ddp'"));
}

TEST(Strategies, HaveNoCollectiveOnOneDevice) {
    for (const auto& strategy : strategies()) {
        const Schedule schedule = scheduleOf("{'model':'mlp','device':'a100-80gb-sxm','strategy':'" + std::string(strategy->name()) + "'}");
        EXPECT_EQ(countTasks(schedule, TaskKind::Collective), 0) << strategy->name();
        EXPECT_TRUE(validateSchedule(schedule)) << strategy->name();
    }
}

}  // namespace
}  // namespace ringside::testing
