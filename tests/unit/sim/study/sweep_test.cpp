// Sweep plans: the order of rows, what a row's scenario is, what a row says, and that threads change nothing.
#include <algorithm>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/study/sweep.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using testing::catalogs;
using ::testing::HasSubstr;
using testing::jsonOf;
using ::testing::StartsWith;

const char* const kBase = "{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 8}";

Result<SweepPlan> tryPlan(const std::string& base, std::vector<std::string> axes, std::vector<std::string> patches = {}) {
    SweepDefinition definition;
    definition.base = jsonOf(base);
    definition.axes = std::move(axes);
    for (const std::string& patch : patches) definition.patches.push_back(jsonOf(patch));
    return SweepPlan::create(definition, "ringside test", catalogs());
}

SweepPlan planOf(const std::string& base, std::vector<std::string> axes, std::vector<std::string> patches = {}) {
    auto plan = tryPlan(base, std::move(axes), std::move(patches));
    if (!plan) throw std::runtime_error(plan.error().toString());
    return std::move(*plan);
}

std::string refusal(const std::string& base, std::vector<std::string> axes, std::vector<std::string> patches = {}) {
    const auto plan = tryPlan(base, std::move(axes), std::move(patches));
    return plan ? "accepted" : plan.error().toString();
}

std::string allRows(const SweepPlan& plan, int threads, RowFormat format = RowFormat::Jsonl) {
    std::string text;
    SweepOptions options;
    options.format = format;
    options.threads = threads;
    const auto done = runSweep(plan, 0, options, [&](const SweepBlock& block) -> Result<void> {
        text += block.text;
        return {};
    });
    EXPECT_EQ(*done, plan.rows());
    return text;
}

TEST(SweepAxis, SplitsAtCommasButNotInsideBracketsOrQuotes) {
    const auto axis = parseSweepAxis(R"(profile={"launch_us": 4, "x": [1,2]},"a,b",h100)");
    ASSERT_TRUE(axis) << axis.error().toString();
    ASSERT_EQ(axis->values.size(), 3U);
    EXPECT_TRUE(axis->values[0].is_object());
    EXPECT_EQ(axis->values[1], "a,b");
    EXPECT_EQ(axis->values[2], "h100");
}

TEST(SweepAxis, TakesNumbersAsNumbersAndFindsTheSectionOfABareKey) {
    const auto axis = parseSweepAxis("bucket_mb=10,2.5");
    ASSERT_TRUE(axis);
    EXPECT_EQ(axis->path, "strategy.bucket_mb");
    EXPECT_EQ(axis->values[1], 2.5);
    EXPECT_EQ(parseSweepAxis("strategy=ddp")->path, "strategy.name");
}

TEST(SweepPlan, VariesTheFirstKeySlowest) {
    const SweepPlan plan = planOf(kBase, {"micro_batch=1,2", "bucket_mb=10,25,50"});
    EXPECT_EQ(plan.rows(), 6U);
    // Row 4 = 1·3 + 1: the second micro-batch, the second bucket size.
    const Json document = *plan.document(4);
    EXPECT_EQ(document["training"]["micro_batch"], 2);
    EXPECT_EQ(document["strategy"]["bucket_mb"], 25);
    EXPECT_EQ((*plan.document(2))["strategy"]["bucket_mb"], 50);
}

TEST(SweepPlan, LaysAListOverTheBaseAndMultipliesItWithTheGrid) {
    const SweepPlan plan = planOf(kBase, {"micro_batch=1,2"}, {"{'devices': 16}", "{'strategy': 'naive', 'training': {'recompute': 'full'}}"});
    EXPECT_EQ(plan.rows(), 4U);
    EXPECT_EQ((*plan.document(1))["devices"], 16);
    EXPECT_EQ((*plan.document(1))["training"]["micro_batch"], 2);
    const Json third = *plan.document(2);
    EXPECT_EQ(third["devices"], 8);
    EXPECT_EQ(third["strategy"]["name"], "naive");
    EXPECT_EQ(third["training"]["recompute"], "full");
}

TEST(SweepPlan, LeavesOutOfTheBaseWhatTheRowsSayAnotherWay) {
    // A result says its cluster and all three batches, and every setting of its strategy.
    const Json result = toJson(testing::scenarioOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 8, 'training': {'micro_batch': 2}}"));
    SweepDefinition definition;
    definition.base = result;
    definition.axes = {"cluster=dgx-a100-2,dgx-h100-32", "strategy=naive,ddp", "micro_batch=1,4"};
    const auto plan = SweepPlan::create(definition, "ringside test", catalogs());
    ASSERT_TRUE(plan) << plan.error().toString();
    for (std::size_t row = 0; row < plan->rows(); ++row) {
        const auto scenario = resolveScenario(*plan->document(row), "row", catalogs());
        ASSERT_TRUE(scenario) << scenario.error().toString();
        EXPECT_EQ(scenario->training.microBatch, row % 2 == 0 ? 1 : 4);
        EXPECT_EQ(scenario->parallel.strategy, row / 2 % 2 == 0 ? "naive" : "ddp");
        EXPECT_EQ(scenario->cluster.deviceCount(), row < 4 ? 16 : 256);
    }
}

TEST(SweepPlan, RefusesGridsThatAreSlips) {
    EXPECT_THAT(refusal(kBase, {}), HasSubstr("nothing to vary"));
    EXPECT_THAT(refusal(kBase, {"micro_bacth=1,2"}), HasSubstr("did you mean 'micro_batch'?"));
    EXPECT_THAT(refusal(kBase, {"training.micro_bacth=1,2"}), HasSubstr("did you mean 'micro_batch'?"));
    EXPECT_THAT(refusal(kBase, {"micro_batch"}), HasSubstr("expected key=value"));
    EXPECT_THAT(refusal(kBase, {"micro_batch=1,,2"}), HasSubstr("empty value"));
    EXPECT_THAT(refusal(kBase, {"micro_batch=1,1"}), HasSubstr("given twice"));
    EXPECT_THAT(refusal(kBase, {"micro_batch=1", "training.micro_batch=2"}), HasSubstr("given twice"));
    EXPECT_THAT(refusal(kBase, {"devices=8"}, {"{'devices': 16}"}), HasSubstr("also set by the list"));
    EXPECT_THAT(refusal("{'model': 'gtp2', 'device': 'a100-80gb-sxm'}", {"devices=8,16"}), HasSubstr("did you mean 'gpt2'?"));
    const std::string thousand = [] {
        std::string text = "=0";
        for (int i = 1; i < 2000; ++i) text += "," + std::to_string(i);
        return text;
    }();
    EXPECT_THAT(refusal(kBase, {"micro_batch" + thousand, "bucket_mb" + thousand, "devices" + thousand}), HasSubstr("vary less at once"));
}

TEST(SweepRow, HoldsTheKeysAndTheFiguresOfItsPrediction) {
    const SweepPlan plan = planOf(kBase, {"micro_batch=1,2", "strategy=ddp,naive"});
    const Json row = Json::parse(plan.block(2, 1, RowFormat::Jsonl).text);
    const Prediction prediction =
        testing::predictionOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 8, 'strategy': 'ddp', 'training': {'micro_batch': 2}}");
    std::vector<std::string> keys;
    for (const auto& entry : row.items()) keys.push_back(entry.key());
    EXPECT_THAT(keys, ::testing::ElementsAre("index", "micro_batch", "strategy", "step_time_s", "p10", "p90", "samples_per_s", "tokens_per_s", "mfu",
                                             "exposed_communication_s", "peak_memory_bytes", "verdict", "bytes_sent_per_rank"));
    EXPECT_EQ(row["index"], 2);
    EXPECT_EQ(row["micro_batch"], 2);
    EXPECT_EQ(row["step_time_s"], prediction.stepSeconds);
    EXPECT_EQ(row["p90"], prediction.p90Seconds);
    EXPECT_EQ(row["peak_memory_bytes"], prediction.memory.peakDevice());
    EXPECT_EQ(row["bytes_sent_per_rank"], prediction.bytesSentPerRank);
    EXPECT_EQ(row["verdict"], "fits");
}

TEST(SweepRow, SaysWhatWentWrongWhereItCannotBePredicted) {
    const SweepPlan plan = planOf(kBase, {"devices=8,12"});  // twelve do not fill nodes of eight
    const SweepBlock block = plan.block(0, 2, RowFormat::Jsonl);
    EXPECT_EQ(block.outcomes[static_cast<std::size_t>(RowOutcome::Fits)], 1U);
    EXPECT_EQ(block.outcomes[static_cast<std::size_t>(RowOutcome::Failed)], 1U);
    const Json row = Json::parse(block.text.substr(block.text.find('\n') + 1));
    EXPECT_EQ(row["devices"], 12);
    EXPECT_THAT(row["error"].get<std::string>(), HasSubstr("do not fill nodes of 8"));
    EXPECT_FALSE(row.contains("step_time_s"));
    EXPECT_THAT(block.firstError, StartsWith("row 1: "));
}

TEST(SweepRow, HasAVerdictWhereItDoesNotFit) {
    const SweepPlan plan = planOf("{'model': 'llama-3-8b', 'device': 'a100-80gb-sxm'}", {"devices=8"});
    const Json row = Json::parse(plan.block(0, 1, RowFormat::Jsonl).text);
    EXPECT_EQ(row["verdict"], "out_of_memory");
    EXPECT_GT(row["step_time_s"].get<double>(), 0);
}

TEST(SweepRow, AsCsvHasAFieldForEveryColumnAndStaysOnItsLine) {
    const SweepPlan plan = planOf(kBase, {"devices=8,12"});
    const std::string header = plan.header(RowFormat::Csv);
    EXPECT_THAT(header, StartsWith("# ringside-sweep version 1, "));
    const std::string columns = header.substr(header.find('\n') + 1);
    EXPECT_THAT(columns, StartsWith("index,devices,step_time_s,"));
    const std::string text = plan.block(0, 2, RowFormat::Csv).text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
    const std::string first = text.substr(0, text.find('\n'));
    EXPECT_EQ(std::count(first.begin(), first.end(), ','), std::count(columns.begin(), columns.end(), ','));
    EXPECT_THAT(text, HasSubstr("1,12,,"));
}

TEST(SweepHeader, TellsGridsApart) {
    const std::string one = planOf(kBase, {"micro_batch=1,2"}).header(RowFormat::Jsonl);
    EXPECT_EQ(planOf(kBase, {"micro_batch=1,2"}).header(RowFormat::Jsonl), one);
    EXPECT_NE(planOf(kBase, {"micro_batch=1,3"}).header(RowFormat::Jsonl), one);
    EXPECT_NE(planOf("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 16}", {"micro_batch=1,2"}).header(RowFormat::Jsonl), one);
    EXPECT_EQ(Json::parse(one)["format"], "ringside-sweep");
    EXPECT_EQ(Json::parse(one)["rows"], 2);
}

TEST(Sweep, GivesTheSameBytesWithAnyNumberOfThreads) {
    const SweepPlan plan = planOf(kBase, {"devices=8,12,16", "micro_batch=1,2,3,4,5", "bucket_mb=1,25,100"});
    const std::string one = allRows(plan, 1);
    EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 45);
    EXPECT_EQ(allRows(plan, 2), one);
    EXPECT_EQ(allRows(plan, 4), one);
}

TEST(SweepPlan, MakesTheSameRowsOnAnyThread) {
    // Plain threads, so that the thread sanitizer sees everything.
    const SweepPlan plan = planOf(kBase, {"strategy=ddp,naive", "micro_batch=1,2,3,4"});
    std::vector<std::string> texts(3);
    std::vector<std::thread> threads;
    for (std::string& text : texts) threads.emplace_back([&] { text = plan.block(0, plan.rows(), RowFormat::Jsonl).text; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(texts[0], allRows(plan, 1));
    EXPECT_EQ(texts[1], texts[0]);
    EXPECT_EQ(texts[2], texts[0]);
}

TEST(Sweep, EndsAfterTheRunningRowsWhenAskedTo) {
    const SweepPlan plan = planOf(kBase, {"micro_batch=1,2,3,4,5,6,7,8,9,10", "bucket_mb=1,2,3,4,5,6,7,8,9,10"});
    SweepOptions options;
    options.threads = 2;
    std::size_t taken = 0;
    options.stop = [&, asked = 0]() mutable { return ++asked > 3; };  // three blocks are handed out
    const auto done = runSweep(plan, 0, options, [&](const SweepBlock& block) -> Result<void> {
        EXPECT_EQ(block.first, taken);
        taken += block.count;
        return {};
    });
    ASSERT_TRUE(done);
    EXPECT_EQ(*done, taken);
    EXPECT_EQ(*done, 24U);  // of eight rows each
}

TEST(Sweep, StopsWithTheErrorOfWhoeverTakesTheRows) {
    const SweepPlan plan = planOf(kBase, {"micro_batch=1,2,3,4,5,6,7,8,9,10", "bucket_mb=1,2,3,4,5,6,7,8,9,10"});
    int calls = 0;
    const auto done = runSweep(plan, 0, SweepOptions{}, [&](const SweepBlock&) -> Result<void> {
        ++calls;
        return failure(ErrorCode::RuntimeFailure, "disk", "full");
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "full");
    EXPECT_EQ(calls, 1);
}

TEST(SweepDefinition, SurvivesTheWayToAnotherRank) {
    SweepDefinition definition;
    definition.base = jsonOf(kBase);
    definition.source = "a.json";
    definition.axes = {"micro_batch=1,2"};
    definition.patches = {jsonOf("{'devices': 16}")};
    const SweepDefinition there = sweepDefinitionFromJson(Json::parse(toJson(definition).dump()));
    EXPECT_EQ(SweepPlan::create(there, "p", catalogs())->header(RowFormat::Jsonl),
              SweepPlan::create(definition, "p", catalogs())->header(RowFormat::Jsonl));
}

}  // namespace
}  // namespace ringside
