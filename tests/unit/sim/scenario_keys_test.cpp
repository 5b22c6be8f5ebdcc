// The table of scenario keys: what reading, help and forms share; and the what-if factors that it names.
#include "sim/scenario_keys.h"

#include <set>

#include "model/training/parallel_knobs.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using testing::predictionOf;
using testing::refusal;
using testing::scenarioOf;

constexpr const char* kHardware = "'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 8";

std::string withKey(const std::string& path, const Json& value) {
    Json document = testing::jsonOf(std::string("{") + kHardware + "}");
    EXPECT_TRUE(setScenarioKey(document, path + "=" + value.dump()));
    return document.dump();
}

TEST(ScenarioKeys, EveryNumberIsRefusedJustOutsideTheRangeThatTheTableStates) {
    int checked = 0;
    for (const ScenarioKey& key : scenarioKeys()) {
        if (key.spec.kind != ValueKind::Whole && key.spec.kind != ValueKind::Number) continue;
        ++checked;
        EXPECT_LT(key.spec.min, key.spec.max) << key.path;
        EXPECT_NE(refusal(withKey(key.path, key.spec.max * 2 + 1)).find(key.path), std::string::npos) << key.path;
        if (key.spec.min > 0) {
            EXPECT_NE(refusal(withKey(key.path, key.spec.kind == ValueKind::Whole ? 0 : key.spec.min / 2)).find(key.path), std::string::npos) << key.path;
        }
    }
    EXPECT_GE(checked, 18);
}

TEST(ScenarioKeys, EveryWordOfTheTableIsUnderstoodAndAnotherIsRefused) {
    for (const ScenarioKey& key : scenarioKeys()) {
        if (key.spec.kind != ValueKind::Word) continue;
        for (const std::string& word : key.spec.choices) EXPECT_TRUE(testing::tryScenario(withKey(key.path, word))) << key.path << " " << word;
        refusal(withKey(key.path, "no-such-word"));
    }
}

TEST(ScenarioKeys, EveryKeyHasHelpAndStandsInTheReference) {
    std::set<std::string> seen;
    for (const ScenarioKey& key : scenarioKeys()) {
        EXPECT_FALSE(key.help.empty()) << key.path;
        EXPECT_TRUE(seen.insert(key.path).second) << key.path << " stands twice";
    }
    EXPECT_EQ(helpOf(scenarioKey("training.seq_len")), "tokens per sample (default: the model's own)");
    EXPECT_EQ(helpOf(scenarioKey("step")), "steady, first: a step after warm-up, or step 1 (default: steady)");
}

TEST(ScenarioKeys, KnobsSayWhatTheyMayBe) {
    const ValueSpec bucket = parallelKnobSpec("bucket_mb"), hook = parallelKnobSpec("comm_hook"), reduce = parallelKnobSpec("reduce_dtype");
    EXPECT_EQ(bucket.kind, ValueKind::Number);
    EXPECT_EQ(bucket.unit, "MiB");
    EXPECT_EQ(hook.kind, ValueKind::Word);
    EXPECT_EQ(hook.choices, (std::vector<std::string>{"none", "fp16", "bf16", "powersgd"}));
    EXPECT_EQ(reduce.choices, (std::vector<std::string>{"fp32", "fp16", "bf16"}));
    EXPECT_EQ(parallelKnobSpec("tp").kind, ValueKind::Whole);
    EXPECT_EQ(parallelKnobSpec("overlap_comm").kind, ValueKind::Flag);
    EXPECT_EQ(parallelKnobSpec("wrap_layers").kind, ValueKind::List);
}

TEST(WhatIf, IsWrittenBackOnlyWhereItSaysSomething) {
    const Scenario plain = scenarioOf(std::string("{") + kHardware + ", 'what_if': {'network': 1}}");
    EXPECT_FALSE(toJson(plain).contains("what_if"));
    const Scenario faster = scenarioOf(std::string("{") + kHardware + ", 'what_if': {'network': 2, 'latency_us': 30}}");
    const Json json = toJson(faster);
    EXPECT_EQ(json["what_if"]["network"], 2);
    EXPECT_EQ(json["what_if"]["latency_us"], 30);
    EXPECT_EQ(toJson(testing::scenarioOfJson(json)), json);
}

TEST(WhatIf, AddedLatencyIsPaidByEveryCollective) {
    // The naive strategy waits for each of its all-reduces after backward, one after another on one stream: every one of them
    // is 1 ms longer, and nothing hides it.
    const std::string base = "{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 8, 'strategy': 'naive'";
    const Prediction before = predictionOf(base + "}"), after = predictionOf(base + ", 'what_if': {'latency_us': 1000}}");
    std::size_t collectives = 0;
    for (const Task& task : before.schedule->programs.front().tasks) collectives += task.kind == TaskKind::Collective;
    ASSERT_GT(collectives, 10U);
    EXPECT_NEAR(after.stepSeconds - before.stepSeconds, 1e-3 * static_cast<double>(collectives), 0.02 * 1e-3 * static_cast<double>(collectives));
}

TEST(WhatIf, AddedLatencyReachesParameterServers) {
    const std::string base = "{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 8, 'strategy': 'ps-host'";
    EXPECT_GE(predictionOf(base + ", 'what_if': {'latency_us': 10000}}").stepSeconds, predictionOf(base + "}").stepSeconds + 0.01);
}

TEST(WhatIf, OneDeviceHasNoLatencyToAdd) {
    const std::string base = "{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 1";
    EXPECT_EQ(predictionOf(base + ", 'what_if': {'latency_us': 1000, 'network': 0.1}}").stepSeconds, predictionOf(base + "}").stepSeconds);
}

TEST(WhatIf, AFasterResourceNeverSlowsTheStep) {
    const std::string base = std::string("{") + kHardware;
    const double step = predictionOf(base + "}").stepSeconds;
    for (const char* resource : {"compute", "memory_bandwidth", "network", "host"}) {
        EXPECT_LE(predictionOf(base + ", 'what_if': {'" + resource + "': 2}}").stepSeconds, step * 1.0001) << resource;
        EXPECT_GE(predictionOf(base + ", 'what_if': {'" + resource + "': 0.5}}").stepSeconds, step * 0.9999) << resource;
    }
}

}  // namespace
}  // namespace ringside
