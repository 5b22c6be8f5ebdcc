// Laying values over a scenario: paths, room for what comes anew, strategies and device counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/study/scenario_patch.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using testing::catalogs;
using ::testing::HasSubstr;
using testing::jsonOf;

TEST(ScenarioPath, FindsTheSectionOfABareKey) {
    EXPECT_EQ(*scenarioPath("micro_batch"), "training.micro_batch");
    EXPECT_EQ(*scenarioPath("bucket_mb"), "strategy.bucket_mb");
    EXPECT_EQ(*scenarioPath("level"), "collectives.level");
    EXPECT_EQ(*scenarioPath("strategy"), "strategy.name");
    EXPECT_EQ(*scenarioPath("devices"), "devices");
    EXPECT_EQ(*scenarioPath("device.sms"), "device.sms");
    EXPECT_FALSE(scenarioPath("micro_bacth"));
}

TEST(MakeRoom, DropsTheClusterForADeviceCountAndTheOtherWayRound) {
    Json named = jsonOf("{'cluster': 'dgx-a100-2', 'network': 'ib-hdr'}");
    makeRoomFor(named, {"devices"});
    EXPECT_EQ(named, jsonOf("{'network': 'ib-hdr'}"));
    Json counted = jsonOf("{'device': 'a100-80gb-sxm', 'devices': 8, 'devices_per_node': 8, 'step': 'steady'}");
    makeRoomFor(counted, {"cluster"});
    EXPECT_EQ(counted, jsonOf("{'step': 'steady'}"));
}

TEST(MakeRoom, DropsTheBatchThatFollowsFromTheOthers) {
    const std::string all = "{'training': {'micro_batch': 2, 'grad_accum': 4, 'global_batch': 64}}";
    const auto left = [&](const std::string& document, const std::vector<std::string>& paths) {
        Json json = jsonOf(document);
        makeRoomFor(json, paths);
        return json["training"];
    };
    EXPECT_EQ(left(all, {"training.micro_batch"}), jsonOf("{'micro_batch': 2, 'grad_accum': 4}"));
    EXPECT_EQ(left(all, {"devices"}), jsonOf("{'micro_batch': 2, 'grad_accum': 4}"));
    EXPECT_EQ(left(all, {"training.global_batch"}), jsonOf("{'micro_batch': 2, 'global_batch': 64}"));
    EXPECT_EQ(left(all, {"training.global_batch", "training.grad_accum"}), jsonOf("{'grad_accum': 4, 'global_batch': 64}"));
    EXPECT_EQ(left(all, {"training.seq_len"}), jsonOf(all)["training"]);
    // A third batch that comes anew contradicts two that stand there.
    EXPECT_EQ(left("{'training': {'micro_batch': 2, 'grad_accum': 4}}", {"training.global_batch"}), jsonOf("{'micro_batch': 2}"));
}

TEST(SetStrategy, KeepsTheSettingsThatTheNewOneHas) {
    Json document = jsonOf("{'strategy': {'name': 'ddp', 'bucket_mb': 10, 'no_sync': false}}");
    setStrategy(document, "naive");
    EXPECT_EQ(document["strategy"], jsonOf("{'name': 'naive', 'no_sync': false}"));
    Json slip = jsonOf("{'strategy': {'buckt_mb': 10}}");
    setStrategy(slip, "naive");
    EXPECT_TRUE(slip["strategy"].contains("buckt_mb"));  // refused later, not lost here
    Json word = jsonOf("{'strategy': 'ddp'}");
    setStrategy(word, "naive");
    EXPECT_EQ(word["strategy"], jsonOf("{'name': 'naive'}"));
}

TEST(SetDevices, ResizesAClusterOfOneKind) {
    Json document = jsonOf("{'model': 'gpt2', 'cluster': 'dgx-a100-2'}");
    ASSERT_TRUE(setDevices(document, 32, "test.json", catalogs()));
    EXPECT_EQ(testing::scenarioOfJson(document).cluster.deviceCount(), 32);
    EXPECT_EQ(testing::scenarioOfJson(document).cluster.nodeCount(), 4);
    Json mixed = jsonOf("{'model': 'gpt2', 'cluster': 'mixed-a100-h100'}");
    const auto refused = setDevices(mixed, 32, "test.json", catalogs());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().toString(), HasSubstr("several kinds"));
}

TEST(PatchEntries, TakeSectionsKeyByKeyAndTheRestWhole) {
    const auto entries =
        patchEntries(jsonOf("{'training': {'micro_batch': 4}, 'strategy': 'ddp', 'profile': {'launch_us': 3}, 'bucket_mb': 5}"), "list:1");
    ASSERT_TRUE(entries);
    ASSERT_EQ(entries->size(), 4U);
    EXPECT_EQ((*entries)[0].first, "training.micro_batch");
    EXPECT_EQ((*entries)[1].first, "strategy.name");
    EXPECT_EQ((*entries)[2].first, "profile");
    EXPECT_EQ((*entries)[3].first, "strategy.bucket_mb");
    EXPECT_THAT(patchEntries(jsonOf("{'micro_batch': 1, 'training': {'micro_batch': 4}}"), "list:1").error().toString(), HasSubstr("given twice"));
    EXPECT_THAT(patchEntries(jsonOf("[1]"), "list:1").error().toString(), HasSubstr("list:1: expected a JSON object"));
    EXPECT_THAT(patchEntries(jsonOf("{'modle': 1}"), "list:1").error().toString(), HasSubstr("did you mean 'model'?"));
}

}  // namespace
}  // namespace ringside
