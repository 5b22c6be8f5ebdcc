// Comparison: which keys differ, what the differences are, and what the sentence says of them.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/study/comparison.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using ::testing::HasSubstr;
using testing::jsonOf;
using ::testing::Not;

/// A result with only what a comparison reads.
Json resultOf(double step, double compute, double exposed, double batch = 8) {
    Json json = jsonOf(
        "{'format': 'ringside-result', 'version': 1, 'scenario': {'model': 'm', 'training': {'micro_batch': 1}}, 'throughput': {'samples_per_s': 8, "
        "'tokens_per_s': null},"
        "'mfu': 0.4, 'hfu': 0.4, 'memory': {'peak_device_bytes': 100, 'capacity_bytes': 200, 'by_category': {'parameters': 60, 'activations': 40}, "
        "'verdict': 'fits'},"
        "'communication': {'bytes_sent_per_rank': 7}}");
    json["scenario"]["training"]["global_batch"] = batch;
    json["step_time_s"] = {{"median", step}, {"p10", step}, {"p90", step}};
    json["breakdown_s"] = {{"compute", compute}, {"communication_hidden", 1.0}, {"communication_exposed", exposed}};
    json["critical_path"]["items"] = Json::array({{{"name", "forward mlp"}, {"seconds", compute}},
                                                  {{"name", "all_reduce bucket 1"}, {"seconds", exposed / 2}},
                                                  {{"name", "all_reduce bucket 2"}, {"seconds", exposed / 2}}});
    return json;
}

Comparison compared(const Json& a, const Json& b) {
    auto comparison = compareResults(a, "a.json", b, "b.json");
    if (!comparison) throw std::runtime_error(comparison.error().toString());
    return std::move(*comparison);
}

const ComparedFigure& named(const std::vector<ComparedFigure>& figures, const std::string& name) {
    for (const ComparedFigure& figure : figures)
        if (figure.name == name) return figure;
    throw std::runtime_error("no figure " + name);
}

TEST(Comparison, GivesDifferencesAbsoluteAndRelative) {
    // 2 s against 3 s: +1 s, +50 %.
    const Comparison comparison = compared(resultOf(2, 1.5, 0.5), resultOf(3, 1.5, 1.5));
    const ComparedFigure& step = named(comparison.headline, "step_time_s");
    EXPECT_DOUBLE_EQ(step.difference(), 1);
    EXPECT_DOUBLE_EQ(*step.change(), 0.5);
    EXPECT_DOUBLE_EQ(named(comparison.breakdown, "communication_exposed").difference(), 1);
    EXPECT_DOUBLE_EQ(*named(comparison.breakdown, "communication_exposed").change(), 2);  // three times as much
    EXPECT_FALSE(named(comparison.headline, "tokens_per_s").a);                           // a model that reads none
}

TEST(Comparison, SaysWhereTheDifferenceComesFrom) {
    const std::string sentence = compared(resultOf(2, 1.5, 0.5), resultOf(3, 1.5, 1.5)).sentence;
    EXPECT_THAT(sentence, HasSubstr("B's step is 50.0 % longer"));
    EXPECT_THAT(sentence, HasSubstr("+1.00 s exposed communication"));
    EXPECT_THAT(sentence, HasSubstr("\"all_reduce bucket\" (+1.00 s)"));
    EXPECT_THAT(sentence, Not(HasSubstr("compute")));
    EXPECT_THAT(compared(resultOf(2, 1.5, 0.5), resultOf(2, 1.5, 0.5)).sentence, HasSubstr("the same step"));
}

TEST(Comparison, SpeaksOfTimePerSampleWhereTheStepsDoDifferentWork) {
    // A: 2 s for 8 samples, 0.25 s each. B: 3 s for 16, 0.1875 s each: a quarter less.
    const std::string sentence = compared(resultOf(2, 1.5, 0.5, 8), resultOf(3, 2.5, 0.5, 16)).sentence;
    EXPECT_THAT(sentence, HasSubstr("B's time per sample is 25.0 % shorter (188 ms against 250 ms)"));
    EXPECT_THAT(sentence, HasSubstr("8 samples in A, 16 in B"));
}

TEST(Comparison, SumsBucketsOfThePathAndPutsTheLargestDifferenceFirst) {
    const Comparison comparison = compared(resultOf(2, 1.5, 0.5), resultOf(3, 1.4, 1.5));
    ASSERT_EQ(comparison.path.size(), 2U);
    EXPECT_EQ(comparison.path[0].name, "all_reduce bucket");
    EXPECT_DOUBLE_EQ(comparison.path[0].difference(), 1);
    EXPECT_NEAR(comparison.path[1].difference(), -0.1, 1e-12);
}

TEST(Comparison, ListsEveryKeyThatDiffersAndNoOther) {
    const Json a = jsonOf("{'x': 1, 'same': [1, 2], 'list': [{'n': 1}, {'n': 2}], 'gone': true, 'none': null}");
    const Json b = jsonOf("{'x': 2, 'same': [1, 2], 'list': [{'n': 1}, {'n': 3}], 'new': 'word'}");
    Json left = resultOf(1, 1, 0), right = resultOf(1, 1, 0);
    left["scenario"] = a;
    right["scenario"] = b;
    std::vector<std::string> paths;
    for (const ChangedKey& key : compared(left, right).scenario) paths.push_back(key.path);
    EXPECT_THAT(paths, ::testing::ElementsAre("x", "list[1].n", "gone", "new"));
}

TEST(Comparison, SaysWhenOnlyOneFits) {
    Json b = resultOf(2, 1.5, 0.4);
    b["memory"]["verdict"] = "out_of_memory";
    EXPECT_THAT(compared(resultOf(2.1, 1.5, 0.5), b).sentence, HasSubstr("A fits in memory, B does not fit in memory."));
}

TEST(Comparison, OfRealPredictionsAddsUp) {
    const auto asResult = [](const std::string& text) {
        const Scenario scenario = testing::scenarioOf(text);
        PredictOptions options;
        options.sensitivity = false;
        return toJson(scenario, testing::predictionOf(scenario, options));
    };
    const Comparison comparison = compared(asResult("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 16, 'strategy': 'ddp'}"),
                                           asResult("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 16, 'strategy': 'naive'}"));
    // The breakdown's parts but the hidden one fill the step, and so do the path's items: so do their differences.
    double parts = 0, items = 0;
    for (const ComparedFigure& part : comparison.breakdown)
        if (part.name != "communication_hidden") parts += part.difference();
    for (const ComparedFigure& item : comparison.path) items += item.difference();
    const double step = named(comparison.headline, "step_time_s").difference();
    EXPECT_NEAR(parts, step, 1e-9);
    EXPECT_NEAR(items, step, 1e-9);
    EXPECT_EQ(comparison.scenario.front().path, "strategy.name");
}

TEST(Comparison, RefusesWhatIsNoResult) {
    const auto refused = [](const Json& a, const Json& b) {
        const auto comparison = compareResults(a, "a.json", b, "b.json");
        return comparison ? std::string("accepted") : comparison.error().toString();
    };
    EXPECT_THAT(refused(resultOf(1, 1, 0), jsonOf("{'model': 'gpt2'}")), HasSubstr("b.json: expected a result"));
    Json lacking = resultOf(1, 1, 0);
    lacking.erase("breakdown_s");
    EXPECT_THAT(refused(lacking, resultOf(1, 1, 0)), HasSubstr("a.json: the key 'breakdown_s' is missing"));
    Json text = resultOf(1, 1, 0);
    text["mfu"] = "much";
    EXPECT_THAT(refused(text, resultOf(1, 1, 0)), HasSubstr("a.json: mfu: expected a number"));
    Json zero = resultOf(1, 1, 0);
    zero["step_time_s"]["median"] = 0;
    EXPECT_THAT(refused(resultOf(1, 1, 0), zero), HasSubstr("b.json: step_time_s.median"));
}

}  // namespace
}  // namespace ringside
