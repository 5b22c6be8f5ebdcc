// What holds for every strategy: its name, its knobs, and that it runs wherever it can.
#include <algorithm>

#include <gmock/gmock.h>

#include "model/training/parallel_knobs.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EveryStrategy, HasTheNameThatScriptsRelyOn) {
    std::vector<std::string> names;
    for (const auto& strategy : strategies()) names.emplace_back(strategy->name());
    EXPECT_THAT(names, ElementsAre("single", "dp", "naive", "ddp", "picotron", "ps-device0", "ps-host", "ps-sharded", "ps-servers", "async-ps", "ssp", "local-sgd", "diloco",
                                   "easgd", "zero1", "zero2", "zero3", "zero-redundancy-optimizer", "megatron", "fsdp1", "fsdp2", "hsdp"));
}

TEST(EveryStrategy, SaysWhatItDoesAndWhatItTakes) {
    const std::vector<std::string> keys = parallelKnobKeys();
    for (const auto& strategy : strategies()) {
        EXPECT_TRUE(strategy->summary().ends_with(".")) << strategy->name();
        for (const Knob& knob : strategy->knobs()) {
            EXPECT_THAT(keys, Contains(knob.key)) << strategy->name();
            EXPECT_FALSE(knob.help.empty() || knob.defaultValue.empty()) << strategy->name() << " " << knob.key;
        }
    }
}

TEST(EveryStrategy, RefusesAKnobThatItDoesNotTake) {
    for (const auto& strategy : strategies()) {
        const std::vector<Knob> knobs = strategy->knobs();
        for (const std::string key : {"bucket_mb", "staleness", "tp", "sharding_strategy", "period"}) {
            if (std::any_of(knobs.begin(), knobs.end(), [&](const Knob& knob) { return knob.key == key; })) continue;
            const std::string text = fmt::format("{{'model': 'mlp', 'device': 'a100-80gb-sxm', 'devices': {}, 'strategy': {{'name': '{}', '{}': 1}}}}", strategy->name() == "single" ? 1 : 2,
                                                 strategy->name(), key);
            EXPECT_THAT(refusal(text), HasSubstr("has no such setting")) << strategy->name() << " " << key;
        }
    }
}

TEST(EveryStrategy, RunsEveryModelOfTheCatalogueOnOneOnANodeAndOnSixteenThousandDevices) {
    for (const ModelSpec& model : catalogs().models.models())
        for (const auto& strategy : strategies())
            for (const int devices : {1, 8, 16384}) {
                const std::string name(strategy->name());
                if ((name == "single" && devices > 1) || (name == "dp" && devices > 8)) continue;  // one device, one node: they say so
                const Scenario scenario = scenarioOf(fmt::format("{{'model': '{}', 'device': 'h100-sxm', 'devices': {}, 'strategy': '{}'}}", model.name, devices, name));
                const Result<Prediction> prediction = predict(scenario, {false, false, false});
                ASSERT_TRUE(prediction) << model.name << " " << name << " " << devices << ": " << prediction.error().toString();
                ASSERT_GT(prediction->stepSeconds, 0) << model.name << " " << name << " " << devices;
                ASSERT_EQ(prediction->bytesSentPerRank > 0, devices > 1) << model.name << " " << name << " " << devices;
            }
}

}  // namespace
}  // namespace ringside
