#include "model/cost/published_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/catalog/hardware_catalog.h"

namespace ringside {
namespace {

using testing::HasSubstr;

Device deviceNamed(const char* name) { return HardwareCatalog::builtin()->findDevice(name).value(); }

PublishedFigure figure(const char* key, const char* scope, double value) { return {key, scope, {value, 0.07, Provenance::Published, "a/b"}, 12}; }

TEST(PublishedFigures, HoldForAllDevicesAGenerationOrOneDeviceAndTheNarrowerWins) {
    PublishedFigures figures;
    figures.figures = {figure("launch_us", "h100-sxm", 9), figure("launch_us", "all", 7), figure("launch_us", "hopper", 8)};
    EXPECT_EQ(datasheetProfile(deviceNamed("h100-sxm"), figures).launchUs.value, 9);
    EXPECT_EQ(datasheetProfile(deviceNamed("h200"), figures).launchUs.value, 8);
    EXPECT_EQ(datasheetProfile(deviceNamed("a100-80gb-sxm"), figures).launchUs.value, 7);
    EXPECT_EQ(datasheetProfile(deviceNamed("h200"), figures).launchUs.source, "a/b");
    EXPECT_NE(datasheetProfile(deviceNamed("h200"), PublishedFigures{}).launchUs.source, "a/b");
}

TEST(PublishedFigures, OfBlackwellAreNotThoseOfBlackwellUltraWhoseLinksAreTheSame) {
    PublishedFigures figures;
    figures.figures = {figure("sustained_clock", "blackwell", 0.5), figure("attention_forward_efficiency", "blackwell-ultra", 0.6)};
    const Profile b200 = datasheetProfile(deviceNamed("b200"), figures), gb300 = datasheetProfile(deviceNamed("gb300"), figures);
    EXPECT_EQ(b200.sustainedClock.value, 0.5);
    EXPECT_GT(gb300.sustainedClock.value, 0.5);
    EXPECT_EQ(gb300.attentionForwardEfficiency.value, 0.6);
    EXPECT_EQ(gb300.gemmEfficiency.at(DType::Fp8), b200.gemmEfficiency.at(DType::Fp8));
    EXPECT_EQ(gb300.collectiveLinkEfficiency, b200.collectiveLinkEfficiency);
}

TEST(PublishedFigures, AreReadBackAsTheyWereWritten) {
    PublishedFigures figures;
    figures.figures = {figure("sustained_clock", "hopper", 0.8), figure("gemm_efficiency.bf16", "h100-sxm", 0.75)};
    figures.collectives = {{"call_us", 12, 0.1}};
    const Json json = toJson(figures);
    const auto read = publishedFiguresFromJson(JsonCursor(json, "f"));
    ASSERT_TRUE(read) << read.error().toString();
    EXPECT_EQ(*read, figures);
}

TEST(PublishedFigures, RefuseAKeyThatNoProfileHasAndAValueOutOfRange) {
    const auto errorOf = [](const char* key, double value) {
        const Json json{{"figures", {{{"key", key}, {"scope", "all"}, {"value", value}}}}, {"collectives", Json::array()}};
        const auto read = publishedFiguresFromJson(JsonCursor(json, "f"));
        return read ? "none" : read.error().toString();
    };
    EXPECT_THAT(errorOf("lunch_us", 3), HasSubstr("launch_us"));
    EXPECT_THAT(errorOf("sustained_clock", 3), HasSubstr("out of range"));
    EXPECT_EQ(errorOf("sustained_clock", 0.5), "none");
}

TEST(PublishedFigures, OfTheProgramAreWhatEveryDatasheetProfileTakes) {
    for (const PublishedFigure& one : shippedFigures().figures) {
        if (one.scope != kEveryDevice) continue;
        const Profile profile = datasheetProfile(deviceNamed("a100-80gb-sxm"));
        ASSERT_TRUE(findProfileFigure(profile, one.key)) << one.key;
        EXPECT_EQ(*findProfileFigure(profile, one.key), one.figure) << one.key;
    }
    EXPECT_FALSE(shippedFigures().collectives.empty());
}

}  // namespace
}  // namespace ringside
