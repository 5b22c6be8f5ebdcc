#include "calibrate/validate/task_sums.h"

#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

TEST(TaskSums, AreTheSameFoldedAndUnfolded) {
    const Result<Catalogs> catalogs = Catalogs::builtin();
    ASSERT_TRUE(catalogs);
    const Json document = {{"model", "mlp"}, {"device", "a100-80gb-sxm"}, {"devices", 4}, {"strategy", "ddp"}};
    const Result<Scenario> scenario = resolveScenario(document, "test", *catalogs);
    ASSERT_TRUE(scenario) << scenario.error().toString();
    const Result<Prediction> prediction = predict(*scenario, {false, false, false});
    ASSERT_TRUE(prediction);
    const TaskSums folded = taskSums(*prediction->schedule, prediction->timeline.classes);
    const Schedule unfolded = unfoldRanks(*prediction->schedule);
    std::vector<std::vector<TaskTimes>> times;
    for (const RankClass& one : unfolded.classes)
        for (std::size_t c = 0; c < prediction->schedule->classes.size(); ++c)
            if (prediction->schedule->classes[c].ranks.contains(one.ranks.first)) times.push_back(prediction->timeline.classes[c]);
    const TaskSums each = taskSums(unfolded, times);
    ASSERT_TRUE(folded.classes.contains("all_reduce"));
    ASSERT_TRUE(folded.phases.contains("backward"));
    ASSERT_EQ(folded.classes.size(), each.classes.size());
    for (const auto& [name, seconds] : folded.classes) EXPECT_NEAR(seconds, each.classes.at(name), 1e-12) << name;
    for (const auto& [name, seconds] : folded.phases) EXPECT_NEAR(seconds, each.phases.at(name), 1e-12) << name;
}

TEST(TaskSums, CountAMicroStepThatStandsForManyAsMany) {
    const Result<Catalogs> catalogs = Catalogs::builtin();
    ASSERT_TRUE(catalogs);
    const Json document = {{"model", "mlp"}, {"device", "a100-80gb-sxm"}, {"devices", 1}, {"strategy", "single"}, {"training", {{"grad_accum", 32}}}};
    const Result<Scenario> scenario = resolveScenario(document, "test", *catalogs);
    ASSERT_TRUE(scenario) << scenario.error().toString();
    const Result<Prediction> prediction = predict(*scenario, {false, false, false});
    ASSERT_TRUE(prediction);
    const TaskSums sums = taskSums(*prediction->schedule, prediction->timeline.classes);
    // All device time of a step on one device is within it.
    double all = 0;
    for (const auto& [name, seconds] : sums.phases) all += seconds;
    EXPECT_LE(all, prediction->stepSeconds * 1.0001);
    EXPECT_GT(all, 0);
}

}  // namespace
}  // namespace ringside
