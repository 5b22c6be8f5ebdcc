#include "model/cost/profile.h"

#include <gtest/gtest.h>

#include "model/catalog/hardware_catalog.h"
#include "model/catalog/profile_catalog.h"
#include "model/cost/published_figures.h"

namespace ringside {
namespace {

Device deviceNamed(const char* name) {
    const auto catalog = HardwareCatalog::builtin();
    EXPECT_TRUE(catalog) << (catalog ? "" : catalog.error().toString());
    return catalog->findDevice(name).value();
}

Result<Profile> read(const std::string& text, const Profile& base) {
    TRY(const Json json, parseJson(text, "p.json"));
    return profileFromJson(JsonCursor(json, "p.json"), base);
}

TEST(DatasheetProfile, EveryDeviceGetsFiguresThatCanBeWrittenAndReadBack) {
    const auto catalog = HardwareCatalog::builtin();
    ASSERT_TRUE(catalog);
    for (const Device& device : catalog->devices()) {
        const Profile profile = datasheetProfile(device);
        const Json json = toJson(profile);
        const auto again = profileFromJson(JsonCursor(json, "p.json"));
        ASSERT_TRUE(again) << device.name << ": " << again.error().toString();
        EXPECT_EQ(*again, profile) << device.name;
    }
}

TEST(DatasheetProfile, EveryFigureSaysWhereItComesFrom) {
    const Profile profile = datasheetProfile(deviceNamed("h100-sxm"));
    for (const std::string& key : profileFigureKeys()) {
        const Figure* figure = findProfileFigure(profile, key);
        ASSERT_NE(figure, nullptr) << key;
        EXPECT_FALSE(figure->source.empty()) << key;
        EXPECT_GT(figure->relativeSpread, 0) << key;
    }
}

TEST(DatasheetProfile, BestShapeEfficiencyIsThePublishedOne) {
    // 271.2 of 312 TFLOPS.
    const Figure figure = datasheetProfile(deviceNamed("a100-80gb-sxm"), PublishedFigures{}).gemmEfficiency.at(DType::Bf16);
    EXPECT_NEAR(figure.value, 271.2 / 312, 1e-12);
    EXPECT_EQ(figure.provenance, Provenance::Published);
}

TEST(ProfileJson, TablesRoundTrip) {
    Profile profile = datasheetProfile(deviceNamed("a100-80gb-sxm"));
    profile.gemmTable[DType::Bf16] = {{{1, 4096, 4096, 4096}, 250.5}, {{4, 256, 512, 1024}, 33.25}};
    const Json json = toJson(profile);
    EXPECT_EQ(profileFromJson(JsonCursor(json, "p.json")).value(), profile);
}

TEST(ProfileJson, LeftOutFiguresKeepTheBase) {
    const Profile base = datasheetProfile(deviceNamed("a100-80gb-sxm"));
    const auto profile = read(R"({"format": "ringside-profile", "version": 1, "name": "mine", "figures": {"launch_us": 4,
        "kernel_fixed_us": {"value": 1.5, "relative_spread": 0.1, "provenance": "measured", "source": "here"}}})", base);
    ASSERT_TRUE(profile) << profile.error().toString();
    Profile expected = base;
    expected.name = "mine";
    expected.launchUs = {4, 0, Provenance::Assumed, ""};
    expected.kernelFixedUs = {1.5, 0.1, Provenance::Measured, "here"};
    EXPECT_EQ(*profile, expected);
}

TEST(ProfileJson, WithoutABaseEveryFigureIsRequired) {
    const Json json = parseJson(R"({"format": "ringside-profile", "version": 1, "figures": {"launch_us": 4}})", "p.json").value();
    const auto profile = profileFromJson(JsonCursor(json, "p.json"));
    ASSERT_FALSE(profile);
    EXPECT_NE(profile.error().message.find("is missing"), std::string::npos) << profile.error().toString();
}

TEST(ProfileJson, RefusesWhatItDoesNotUnderstand) {
    const std::string head = R"({"format": "ringside-profile", "version": 1, )";
    const auto typo = read(head + R"("figures": {"lanch_us": 4}})", {});
    ASSERT_FALSE(typo);
    EXPECT_NE(typo.error().message.find("did you mean 'launch_us'"), std::string::npos) << typo.error().toString();
    EXPECT_FALSE(read(head + R"("figures": {"launch_us": "fast"}})", {}));
    EXPECT_FALSE(read(head + R"("figures": {"launch_us": -1}})", {}));
    EXPECT_FALSE(read(head + R"("figures": {"launch_us": {"value": 1, "provenance": "dreamt"}}})", {}));
    EXPECT_FALSE(read(head + R"("gemm_efficiency": {"bf17": 0.8}})", {}));
    EXPECT_FALSE(read(head + R"("gemm_table": {"bf16": [{"m": 0, "n": 1, "k": 1, "tflops": 1}]}})", {}));
    EXPECT_FALSE(read(R"({"format": "ringside-scenario", "version": 1})", {}));
    EXPECT_FALSE(read(R"({"format": "ringside-profile", "version": 2})", {}));
    EXPECT_FALSE(read("[]", {}));
}

TEST(SetProfileFigure, SetsEveryKeyAndMarksItAsAssumed) {
    for (const std::string& key : profileFigureKeys()) {
        Profile profile;
        const auto result = setProfileFigure(profile, key, 0.5);
        ASSERT_TRUE(result) << key << ": " << result.error().toString();
        const Figure* figure = findProfileFigure(profile, key);
        ASSERT_NE(figure, nullptr) << key;
        EXPECT_EQ(figure->value, 0.5) << key;
        EXPECT_EQ(figure->provenance, Provenance::Assumed) << key;
    }
}

TEST(SetProfileFigure, RefusesUnknownKeysAndValuesOutOfRange) {
    Profile profile;
    const auto unknown = setProfileFigure(profile, "lanch_us", 4);
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().message.find("did you mean 'launch_us'"), std::string::npos) << unknown.error().toString();
    EXPECT_FALSE(setProfileFigure(profile, "memory_efficiency", 0));
    EXPECT_FALSE(setProfileFigure(profile, "memory_efficiency", std::nan("")));
    EXPECT_FALSE(setProfileFigure(profile, "gemm_efficiency.bf17", 0.5));
    EXPECT_EQ(profile, Profile{});
}

TEST(ProfileCatalog, EveryBuiltInProfileReadsForItsDevice) {
    ASSERT_EQ(profileNames().front(), "datasheet");
    const auto boost = profileByName("b200-boost", deviceNamed("b200"));
    ASSERT_TRUE(boost) << boost.error().toString();
    EXPECT_GT(boost->sustainedClock.value, datasheetProfile(deviceNamed("b200")).sustainedClock.value);
    const auto catalog = HardwareCatalog::builtin();
    for (const std::string& name : profileNames()) {
        bool fitsSomeDevice = false;
        for (const Device& device : catalog->devices()) fitsSomeDevice = fitsSomeDevice || profileByName(name, device).has_value();
        EXPECT_TRUE(fitsSomeDevice) << name;
    }
}

TEST(ProfileCatalog, RefusesAProfileOfAnotherDeviceAndUnknownNames) {
    const Device a100 = deviceNamed("a100-80gb-sxm");
    const auto wrong = profileByName("b200-boost", a100);
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("for the device 'b200'"), std::string::npos) << wrong.error().toString();
    const auto unknown = profileByName("datasheat", a100);
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().message.find("did you mean 'datasheet'"), std::string::npos) << unknown.error().toString();
    EXPECT_EQ(resolveProfile("datasheet", a100).value(), datasheetProfile(a100));
    EXPECT_FALSE(resolveProfile("/nonexistent.json", a100));
}

}  // namespace
}  // namespace ringside
