// What a plan chooses from.
#include "sim/study/plan_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Only its knobs matter here.
class StrategyWith : public Strategy {
public:
    explicit StrategyWith(std::vector<Knob> knobs) : knobs_(std::move(knobs)) {}
    std::string_view name() const override { return "test"; }
    std::string_view summary() const override { return ""; }
    std::vector<Knob> knobs() const override { return knobs_; }
    Result<Schedule> write(const StrategyInput&) const override { return badInput("", "not written"); }

private:
    std::vector<Knob> knobs_;
};

HardwareOption optionOf(const std::string& name, const CountRequest& counts = {}, const Json& base = Json::object()) {
    Result<HardwareOption> option = hardwareOption(name, counts, base, testing::catalogs());
    if (!option) throw std::runtime_error(option.error().toString());
    return *option;
}

TEST(PlanSpace, CountsDoubleWithinANodeAndThenInWholeNodes) {
    EXPECT_THAT(doublingCounts(8, 64), ElementsAre(1, 2, 4, 8, 16, 32, 64));
    EXPECT_THAT(doublingCounts(72, 200), ElementsAre(1, 2, 4, 8, 16, 32, 64, 72, 144));
    EXPECT_THAT(doublingCounts(8, 3), ElementsAre(1, 2));
    EXPECT_THAT(doublingCounts(1, 4), ElementsAre(1, 2, 4));
}

TEST(PlanSpace, ADeviceTakesTheCountsAskedForSortedAndOnce) {
    EXPECT_THAT(optionOf("h100", {{16, 8, 16}, 0}).counts, ElementsAre(8, 16));
    EXPECT_EQ(optionOf("h100").name, "h100-sxm") << "an alias becomes the name";
    EXPECT_EQ(optionOf("h100").counts.back(), kDefaultMostDevices);
    EXPECT_THAT(optionOf("h100", {{}, 32}, {{"devices_per_node", 4}}).counts, ElementsAre(1, 2, 4, 8, 16, 32));
}

TEST(PlanSpace, AClusterIsPlannedWholeUnlessCountsAreAskedFor) {
    const HardwareOption whole = optionOf("dgx-a100-2");
    EXPECT_THAT(whole.counts, ElementsAre(16));
    EXPECT_THAT(optionOf("dgx-a100-2", {{}, 1024}).counts, ElementsAre(1, 2, 4, 8, 16));
    EXPECT_THAT(optionOf("dgx-a100-2", {{8, 64}, 0}).counts, ElementsAre(8)) << "it has no 64";
    EXPECT_THAT(optionOf("mixed-a100-h100", {{8}, 0}).counts, ElementsAre(optionOf("mixed-a100-h100").cluster.deviceCount())) << "nobody says which part of a mixed cluster";
    const Result<HardwareOption> none = hardwareOption("dgx-a100-2", {{64}, 0}, Json::object(), testing::catalogs());
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().toString(), HasSubstr("has 16 devices"));
}

TEST(PlanSpace, PartOfAClusterKeepsItsNodesAndItsNetwork) {
    const HardwareOption option = optionOf("dgx-a100-2", {{8}, 0});
    Json document = {{"model", "gpt2"}};
    ASSERT_TRUE(layHardware(document, option, 8));
    const Scenario scenario = testing::scenarioOfJson(document);
    EXPECT_EQ(scenario.cluster.deviceCount(), 8);
    EXPECT_EQ(scenario.cluster.nodes.front().kind.device.name, option.cluster.nodes.front().kind.device.name);
    EXPECT_EQ(scenario.cluster.network, option.cluster.network);
}

TEST(PlanSpace, FiguresSetForTheDeviceStayWhenHardwareIsLaid) {
    Json document = {{"model", "gpt2"}, {"device", {{"memory_gb", 40}}}};
    ASSERT_TRUE(layHardware(document, optionOf("h100-sxm"), 8));
    const Scenario scenario = testing::scenarioOfJson(document);
    EXPECT_EQ(scenario.cluster.nodes.front().kind.device.name, "h100-sxm");
    EXPECT_EQ(scenario.cluster.nodes.front().kind.device.memoryGb, 40);
}

TEST(PlanSpace, AnUnknownNameIsAnsweredWithTheNearest) {
    const Result<HardwareOption> option = hardwareOption("h100-smx", {}, Json::object(), testing::catalogs());
    ASSERT_FALSE(option);
    EXPECT_THAT(option.error().toString(), HasSubstr("did you mean 'h100-sxm'"));
}

TEST(PlanSpace, KnobsOfTheTableAreCrossedAndOthersLeftAlone) {
    const StrategyWith ddp({{"bucket_mb", "25", ""}, {"gradient_as_bucket_view", "false", ""}, {"comm_hook", "none", ""}});
    // Default and 100 MiB; views always; compression never unasked, as it changes the sums.
    EXPECT_THAT(knobSettings(ddp, Json::object(), 8, 8), ElementsAre(Json{{"gradient_as_bucket_view", true}}, Json{{"bucket_mb", 100}, {"gradient_as_bucket_view", true}}));
    EXPECT_THAT(knobSettings(ddp, {{"bucket_mb", 7}, {"name", "ddp"}}, 8, 8), ElementsAre(Json{{"bucket_mb", 7}, {"gradient_as_bucket_view", true}})) << "what is given is not searched";
}

TEST(PlanSpace, TensorParallelStaysInANodeAndAReplicaWithinTheDevices) {
    const StrategyWith parallel({{"tp", "1", ""}, {"pp", "1", ""}});
    for (const Json& knobs : knobSettings(parallel, Json::object(), 8, 4)) {
        EXPECT_LE(modelParallelDevices(knobs), 8) << knobs;
        EXPECT_LE(knobs.value("tp", 1), 4) << knobs;
    }
    // tp 1, 2, 4 × pp 1, 2, 4, 8 without 2·8, 4·4, 4·8: 12 − 3.
    EXPECT_EQ(knobSettings(parallel, Json::object(), 8, 4).size(), 9U);
    EXPECT_EQ(modelParallelDevices({{"tp", 4}, {"pp", 2}}), 8);
    EXPECT_EQ(modelParallelDevices(Json::object()), 1);
}

TEST(PlanSpace, AsynchronousAndLocalUpdatesAreNotTheSameTraining) {
    for (const char* name : {"single", "ddp", "zero3", "fsdp2", "megatron"}) EXPECT_TRUE(isPlannedByDefault(name)) << name;
    for (const char* name : {"async-ps", "ps-servers", "local-sgd", "diloco", "naive"}) EXPECT_FALSE(isPlannedByDefault(name)) << name;
}

TEST(PlanSpace, TheDefaultBatchGrowsWithTheModelAsGpt3s) {
    // 0.5 M tokens of 1,024: 488 sequences, the power of two is 512. 2 M of 8,192: 244, so 256. 4 M of 2,048: 1,953, so 2,048.
    EXPECT_EQ(defaultGlobalBatch(124'000'000, 1024), 512);
    EXPECT_EQ(defaultGlobalBatch(8'000'000'000, 8192), 256);
    EXPECT_EQ(defaultGlobalBatch(175'000'000'000, 2048), 2048);
    EXPECT_EQ(defaultGlobalBatch(8'000'000'000, 1 << 24), 1) << "at least one sample";
    EXPECT_EQ(defaultGlobalBatch(25'000'000, 0), 1024);
}

}  // namespace
}  // namespace ringside
