// DDP as PyTorch's Reducer runs it; docs/models/ddp.md tells the rules.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

const std::string kGpt2 = "{'model':'gpt2','device':'a100-80gb-sxm','devices':4,'training':{'micro_batch':4}";
// 124,439,808 parameters.
constexpr std::int64_t kGpt2Parameters = 124'439'808;

std::string gpt2(const std::string& strategy, const std::string& more = "") { return kGpt2 + ",'strategy':{'name':'ddp'" + strategy + "}" + more + "}"; }

/// Names of the parameters that are copied into each bucket, in copy order; the key is the bucket.
std::map<int, std::vector<std::string>> bucketContents(const Schedule& schedule) {
    std::map<int, std::vector<std::string>> contents;
    const RankProgram& program = schedule.programs.front();
    for (const Task& task : program.tasks) {
        if (task.role != TaskRole::BucketCopyIn) continue;
        for (const BufferUse& use : program.usesOf(task))
            if (use.kind == UseKind::Write)
                contents[program.buffers[use.buffer].index].push_back(parameterName(*schedule.workload, static_cast<std::size_t>(task.layer), task.part));
    }
    return contents;
}

std::vector<int> reduceOrder(const Schedule& schedule) {
    std::vector<int> order;
    for (const Task& task : schedule.programs.front().tasks)
        if (task.role == TaskRole::BucketReduce) order.push_back(task.part);
    return order;
}

std::int64_t elements(const std::vector<CollectiveWork>& works) {
    std::int64_t sum = 0;
    for (const CollectiveWork& work : works) sum += work.elements;
    return sum;
}

/// Index of the task with this role that comes first (last) in issue order; −1: none.
std::int64_t firstTask(const Schedule& schedule, TaskRole role) {
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t)
        if (tasks[t].role == role) return static_cast<std::int64_t>(t);
    return -1;
}
std::int64_t lastBackward(const Schedule& schedule) {
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    for (std::size_t t = tasks.size(); t-- > 0;)
        if (tasks[t].phase == Phase::Backward) return static_cast<std::int64_t>(t);
    return -1;
}

TEST(Ddp, TheFirstBucketHasOneMebibyteAndTheOthersTwentyFive) {
    const auto buckets = collectivesOf(scheduleOf(gpt2("")), TaskRole::BucketReduce);
    ASSERT_GT(buckets.size(), 3U);
    EXPECT_GE(buckets.front().bytes(), kMiB);
    EXPECT_LT(buckets.front().bytes(), 25 * kMiB);
    for (std::size_t b = 1; b + 1 < buckets.size(); ++b) EXPECT_GE(buckets[b].bytes(), 25 * kMiB) << "bucket " << b;
    EXPECT_EQ(elements(buckets), kGpt2Parameters);
}

TEST(Ddp, BucketsFollowTheOrderInWhichGradientsGetReady) {
    const auto contents = bucketContents(scheduleOf(gpt2("")));
    // Backward begins at the head. Its weight is tied to the embedding, so ln_f comes first.
    EXPECT_EQ(contents.at(0).front().substr(0, 4), "ln_f");
    // The embedding's gradient is complete only when backward reaches the embedding: the very last.
    EXPECT_THAT(contents.rbegin()->second, ::testing::Contains("wte.weight"));
}

TEST(Ddp, AnExplicitCapMakesTheFirstBucketThatSizeToo) {
    const auto buckets = collectivesOf(scheduleOf(gpt2(",'bucket_mb':25")), TaskRole::BucketReduce);
    for (std::size_t b = 0; b + 1 < buckets.size(); ++b) EXPECT_GE(buckets[b].bytes(), 25 * kMiB) << "bucket " << b;
    EXPECT_LT(collectivesOf(scheduleOf(gpt2("")), TaskRole::BucketReduce).front().bytes(), 25 * kMiB);
}

TEST(Ddp, TheFirstStepHasOneBucketAndReducesItAfterBackward) {
    const Schedule schedule = scheduleOf(gpt2("", ",'step':'first'"));
    const auto buckets = collectivesOf(schedule, TaskRole::BucketReduce);
    ASSERT_EQ(buckets.size(), 1U);
    EXPECT_EQ(buckets[0].elements, kGpt2Parameters);
    EXPECT_GT(firstTask(schedule, TaskRole::BucketReduce), lastBackward(schedule));
}

TEST(Ddp, BucketsAreLaunchedStrictlyInIndexOrder) {
    for (const char* strategy : {"", ",'find_unused_parameters':true", ",'bucket_mb':5"}) {
        const std::vector<int> order = reduceOrder(scheduleOf(gpt2(strategy)));
        for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int>(i)) << strategy;
    }
}

TEST(Ddp, ReductionStartsWhileBackwardGoesOn) {
    const Schedule schedule = scheduleOf(gpt2(""));
    EXPECT_LT(firstTask(schedule, TaskRole::BucketReduce), lastBackward(schedule));
    EXPECT_GT(predictionOf(gpt2("")).breakdown.communicationHidden, Time());
}

TEST(Ddp, FindUnusedParametersKeepsRegistrationOrderWithTheSmallBucketLast) {
    const Schedule schedule = scheduleOf(gpt2(",'find_unused_parameters':true"));
    const auto buckets = collectivesOf(schedule, TaskRole::BucketReduce);
    // Filled from the front of the model: wte (147 MiB) closes the 1 MiB bucket at once. Reversed, it is reduced last.
    const auto contents = bucketContents(schedule);
    EXPECT_EQ(contents.rbegin()->second, std::vector<std::string>{"wte.weight"});
    EXPECT_EQ(buckets.back().elements, 50257 * 768);
    EXPECT_THAT(contents.at(0), ::testing::Contains("ln_f.weight"));
    EXPECT_EQ(elements(buckets), kGpt2Parameters);
}

TEST(Ddp, FindUnusedParametersReducesABitmapOfOneIntegerPerParameter) {
    const auto bitmap = collectivesOf(scheduleOf(gpt2(",'find_unused_parameters':true")), TaskRole::UnusedBitmap);
    ASSERT_EQ(bitmap.size(), 1U);
    EXPECT_EQ(bitmap[0].dtype, DType::Int32);
    EXPECT_EQ(bitmap[0].elements, 148);  // 12 per block × 12 blocks, wte, wpe, and ln_f's two
    EXPECT_EQ(countTasks(scheduleOf(gpt2("")), TaskRole::UnusedBitmap), 0);
    EXPECT_EQ(countTasks(scheduleOf(gpt2(",'find_unused_parameters':true,'static_graph':true")), TaskRole::UnusedBitmap), 0);
}

TEST(Ddp, FindUnusedParametersNeverRebuildsItsBuckets) {
    const auto first = collectivesOf(scheduleOf(gpt2(",'find_unused_parameters':true", ",'step':'first'")), TaskRole::BucketReduce);
    const auto steady = collectivesOf(scheduleOf(gpt2(",'find_unused_parameters':true")), TaskRole::BucketReduce);
    ASSERT_EQ(first.size(), steady.size());
    for (std::size_t b = 0; b < first.size(); ++b) EXPECT_EQ(first[b].elements, steady[b].elements);
}

TEST(Ddp, AStaticGraphReducesAfterBackwardInTheFirstStepOnly) {
    const Schedule first = scheduleOf(gpt2(",'static_graph':true", ",'step':'first'"));
    EXPECT_GT(firstTask(first, TaskRole::BucketReduce), lastBackward(first));
    const Schedule steady = scheduleOf(gpt2(",'static_graph':true"));
    EXPECT_LT(firstTask(steady, TaskRole::BucketReduce), lastBackward(steady));
}

TEST(Ddp, EveryGradientIsDividedIntoItsBucketAndCopiedBack) {
    const Schedule schedule = scheduleOf(gpt2(""));
    EXPECT_EQ(countTasks(schedule, TaskRole::BucketCopyIn), 148);
    EXPECT_EQ(countTasks(schedule, TaskRole::BucketCopyOut), 148);
}

TEST(Ddp, GradientsAsBucketViewsNeedNoCopyBackAndSaveOneGradientsMemory) {
    const Schedule view = scheduleOf(gpt2(",'gradient_as_bucket_view':true"));
    EXPECT_EQ(countTasks(view, TaskRole::BucketCopyOut), 0);
    EXPECT_EQ(countTasks(view, TaskRole::BucketCopyIn), 148) << "autograd still makes fresh gradients";

    // What stays allocated into the optimizer step: buckets (Ψ·4) either way, and Ψ·4 of gradients only without views.
    const auto allocatedAtTheEndOfBackward = [](const std::string& text) {
        PredictOptions options{false, true, false};
        const Prediction prediction = predictionOf(scenarioOf(text), options);
        const std::int64_t until = lastBackward(*prediction.schedule) + 1;
        Bytes gradients = 0;
        for (const MemorySample& sample : prediction.memory.samples)
            if (sample.task <= until) gradients = sample.bytes[static_cast<std::size_t>(MemoryCategory::Gradients)];
        return gradients;
    };
    const Bytes saved = allocatedAtTheEndOfBackward(gpt2("")) - allocatedAtTheEndOfBackward(gpt2(",'gradient_as_bucket_view':true"));
    EXPECT_NEAR(static_cast<double>(saved), 4.0 * kGpt2Parameters, 0.35 * 4 * kGpt2Parameters);  // wte's own gradient, 31 %, may still be there
    // With few tokens the peak is in the optimizer step, where foreach AdamW holds a list as large as the parameters.
    const auto peak = [](const std::string& strategy) {
        return predictionOf("{'model':'gpt2','device':'a100-80gb-sxm','devices':4,'training':{'seq_len':64},'strategy':{'name':'ddp'" + strategy + "}}").memory.peakAllocated;
    };
    EXPECT_NEAR(static_cast<double>(peak("") - peak(",'gradient_as_bucket_view':true")), 4.0 * kGpt2Parameters, 0.05 * 4 * kGpt2Parameters);
}

TEST(Ddp, CompressionHooksHalveTheBytesAndAddCasts) {
    const Schedule plain = scheduleOf(gpt2(""));
    for (const auto& [hook, dtype] : {std::pair{"fp16", DType::Fp16}, {"bf16", DType::Bf16}}) {
        const Schedule schedule = scheduleOf(gpt2(",'comm_hook':'" + std::string(hook) + "'"));
        const auto buckets = collectivesOf(schedule, TaskRole::BucketReduce);
        EXPECT_EQ(buckets.size(), collectivesOf(plain, TaskRole::BucketReduce).size());
        for (const CollectiveWork& bucket : buckets) EXPECT_EQ(bucket.dtype, dtype);
        EXPECT_EQ(2 * bytesSentPerRank(schedule, schedule.classes[0]), bytesSentPerRank(plain, plain.classes[0]));
        EXPECT_EQ(countTasks(schedule, TaskRole::BucketCompress), static_cast<int>(buckets.size()));
        EXPECT_EQ(countTasks(schedule, TaskRole::BucketDecompress), static_cast<int>(buckets.size()));
    }
}

TEST(Ddp, EachRankSendsTwoTimesNMinusOneOverNOfTheGradients) {
    // 2·(4−1)/4 · 124,439,808 · 4 B = 746,638,848 B: under autocast gradients are fp32.
    const Schedule schedule = scheduleOf(gpt2(""));
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 746'638'848);
}

TEST(Ddp, OneDeviceHasNobodyToReduceWith) {
    const std::string one = "{'model':'gpt2','device':'a100-80gb-sxm','devices':1,'strategy':'";
    const Schedule schedule = scheduleOf(one + "ddp'}");
    EXPECT_TRUE(schedule.collectives.empty());
    EXPECT_EQ(countTasks(schedule, TaskRole::BucketCopyIn), 0);
    EXPECT_EQ(predictionOf(one + "ddp'}").stepSeconds, predictionOf(one + "single'}").stepSeconds);
}

TEST(Ddp, AccumulationWithNoSyncReducesOncePerStepAndWithoutOncePerMicroStep) {
    const auto sent = [](const std::string& strategy, int accumulate) {
        Scenario scenario = scenarioOf(gpt2(strategy));
        scenario.training.gradAccum = accumulate;
        const Schedule schedule = scheduleOf(scenario);
        EXPECT_TRUE(validateSchedule(schedule)) << validateSchedule(schedule).error().toString();
        return bytesSentPerRank(schedule, schedule.classes[0]);
    };
    const Bytes once = sent("", 1);
    EXPECT_EQ(sent("", 4), once);
    EXPECT_EQ(sent(",'no_sync':false", 4), 4 * once);
}

TEST(Ddp, AccumulatedGradientsAreReducedInTheLastMicroStep) {
    Scenario scenario = scenarioOf(gpt2(""));
    scenario.training.gradAccum = 3;
    const Schedule schedule = scheduleOf(scenario);
    for (const Task& task : schedule.programs.front().tasks)
        if (task.kind == TaskKind::Collective) {
            EXPECT_EQ(task.microStep, 2);
        }
    // The 2nd and 3rd micro-step add to the gradient of the 1st.
    EXPECT_EQ(countTasks(schedule, TaskRole::GradientAccumulate), 2 * countTasks(scheduleOf(gpt2("")), TaskRole::BucketCopyIn) + 3)
        << "and wte, tied to the head, has a second contribution in each of the three micro-steps";
}

TEST(Ddp, ModuleBuffersAreBroadcastInEachForward) {
    const std::string resnet = "{'model':'resnet-50','device':'a100-80gb-sxm','devices':4,'training':{'micro_batch':8},'strategy':{'name':'ddp'";
    const auto broadcasts = collectivesOf(scheduleOf(resnet + "}}"), TaskRole::BufferBroadcast);
    // ResNet-50 has 53 batch norms over 26,560 channels: running mean and variance in fp32, and one int64 counter each.
    ASSERT_EQ(broadcasts.size(), 2U);
    for (const CollectiveWork& work : broadcasts) {
        EXPECT_EQ(work.op, CollectiveOp::Broadcast);
        EXPECT_EQ(work.elements, work.dtype == DType::Int64 ? 53 : 2 * 26'560);
    }
    EXPECT_TRUE(collectivesOf(scheduleOf(resnet + ",'broadcast_buffers':false}}"), TaskRole::BufferBroadcast).empty());
    EXPECT_EQ(countTasks(scheduleOf(gpt2("")), TaskRole::BufferBroadcast), 0) << "GPT-2 has none";
}

TEST(Ddp, WhatTravelsHasTheTypeOfTheGradients) {
    // Parameters stay fp32 under autocast; pure bf16 halves the wire; bf16-master keeps fp32 gradients.
    const std::map<std::string, DType> wire = {{"fp32", DType::Fp32}, {"tf32", DType::Fp32}, {"fp16-autocast", DType::Fp32}, {"bf16-autocast", DType::Fp32},
                                               {"bf16", DType::Bf16}, {"bf16-master", DType::Fp32}};
    for (const auto& [precision, dtype] : wire) {
        Scenario scenario = scenarioOf(gpt2(""));
        scenario.training.precision = *precisionByName(precision);
        for (const CollectiveWork& work : collectivesOf(scheduleOf(scenario), TaskRole::BucketReduce)) EXPECT_EQ(work.dtype, dtype) << precision;
    }
}

}  // namespace
}  // namespace ringside::testing
