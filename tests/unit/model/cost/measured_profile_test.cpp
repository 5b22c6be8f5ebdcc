// What a measured profile holds beside its figures: read, written, refused.
#include <gtest/gtest.h>

#include "model/cost/profile.h"

namespace ringside {
namespace {

Environment anEnvironment() { return {"Some CPU @ 3 GHz", 2, 1, "Linux 6.1", {{"ringside", "0.1.0"}, {"onednn", "2.6.3"}}, "2025-01-01", "loopback"}; }

Device host() {
    Device device;
    device.name = "cpu";
    return device;
}

Profile measuredProfile() {
    Profile profile = datasheetProfile(host());
    profile.gemmTable[DType::Fp32] = {{{1, 64, 64, 64}, 0.05, 0.02}};
    profile.kernels["gelu"] = {{0, 1e6, {1, 0, 0, 0}, DType::Fp32, false, 1e-3, 0.05}, {0, 2e6, {1, 0, 0, 0}, DType::Fp32, false, 2e-3, 0.05}};
    profile.kernels["flash attention"] = {{4e9, 1e6, {8, 512, 512, 64}, DType::Bf16, true, 0.1, 0.01}};
    CollectiveCurve curve;
    curve.op = CollectiveOp::ReduceScatter;
    curve.ranks = 4;
    curve.link = "1gbit";
    curve.points = {{1024, 1e-4, 0.1}, {1 << 20, 1e-2, 0.02}};
    curve.cpuSecondsPerCall = 1e-5;
    curve.cpuSecondsPerByte = 1e-9;
    curve.computeSlowdown = 1.4;
    curve.slowdownByCompute = 1.2;
    profile.collectives = {curve};
    profile.deviceFigures = {{"memory_bandwidth_gb_per_s", 9.5}, {"peak_dense_tflops.fp32", 0.11}};
    profile.steps = {{"gpt-128x1", 2, 0.0125}};
    profile.environment = anEnvironment();
    return profile;
}

std::string errorOf(const std::string& body) {
    const auto json = parseJson(R"({"format": "ringside-profile", "version": 1, )" + body + "}", "p.json");
    if (!json) return json.error().toString();
    const auto profile = profileFromJson(JsonCursor(*json, "p.json"), Profile{});
    return profile ? "" : profile.error().toString();
}

TEST(MeasuredProfile, RoundTripsThroughItsFile) {
    const Json json = toJson(measuredProfile());
    const auto text = parseJson(json.dump(), "p.json").value();
    const auto again = profileFromJson(JsonCursor(text, "p.json"));
    ASSERT_TRUE(again) << again.error().toString();
    EXPECT_EQ(*again, measuredProfile());
}

TEST(MeasuredProfile, SamplesThatCannotBeTimesAreRefusedWithFileAndKey) {
    EXPECT_NE(errorOf(R"("kernels": {"gelu": [{"bytes": 10, "seconds": 0}]})").find("p.json: kernels.gelu[0].seconds"), std::string::npos)
        << errorOf(R"("kernels": {"gelu": [{"bytes": 10, "seconds": 0}]})");
    EXPECT_NE(errorOf(R"("kernels": {"gelu": [{"bytes": 10, "seconds": -1}]})").find("kernels.gelu[0].seconds"), std::string::npos);
    EXPECT_NE(errorOf(R"("kernels": {"gelu": [{"bytes": 10, "seconds": NaN}]})"), "");
    EXPECT_NE(errorOf(R"("kernels": {"gelu": [{"bytes": 10, "seconds": "nan"}]})").find("kernels.gelu[0].seconds"), std::string::npos);
    EXPECT_NE(errorOf(R"("kernels": {"gelu": [{"bytes": 10, "seconds": null}]})").find("seconds"), std::string::npos);
    EXPECT_NE(errorOf(R"("kernels": {"gelu": [{"bytes": 10, "seconds": 1, "relative_spread": -0.1}]})").find("relative_spread"), std::string::npos);
    EXPECT_NE(errorOf(R"("collectives": [{"op": "all_reduce", "ranks": 2, "points": [{"bytes": 1, "seconds": 0}]}])").find("collectives[0].points[0].seconds"), std::string::npos);
}

TEST(MeasuredProfile, StepsThatCannotHaveTakenTheirTimeAreRefused) {
    EXPECT_NE(errorOf(R"("steps": [{"model": "a", "ranks": 1, "seconds": 0}])").find("p.json: steps[0].seconds"), std::string::npos);
    EXPECT_NE(errorOf(R"("steps": [{"model": "a", "ranks": 0, "seconds": 1}])").find("steps[0].ranks"), std::string::npos);
    EXPECT_NE(errorOf(R"("steps": [{"ranks": 1, "seconds": 1}])").find("model"), std::string::npos);
}

TEST(MeasuredProfile, UnknownKeysAreRefused) {
    EXPECT_NE(errorOf(R"("kernels": {"gelu": [{"byte": 10, "seconds": 1}]})").find("'byte'"), std::string::npos);
    EXPECT_NE(errorOf(R"("collectives": [{"op": "all_reduce", "rank": 2}])").find("'rank'"), std::string::npos);
    EXPECT_NE(errorOf(R"("device_figures": {"memory_bandwith": 1})").find("memory_bandwith"), std::string::npos);
    EXPECT_NE(errorOf(R"("environment": {"hostname": "x"})").find("hostname"), std::string::npos);
}

TEST(MeasuredProfile, TablesThatContradictThemselvesAreRefused) {
    EXPECT_NE(errorOf(R"("kernels": {"gelu": [{"bytes": 10, "seconds": 1, "m": 4}]})").find("flops"), std::string::npos);
    EXPECT_NE(errorOf(R"("collectives": [{"op": "all_reduce", "ranks": 2, "points": []}])").find("points"), std::string::npos);
    EXPECT_NE(errorOf(R"("collectives": [{"op": "all_reduce", "ranks": 2, "points": [{"bytes": 2, "seconds": 1}, {"bytes": 2, "seconds": 1}]}])").find("grow"), std::string::npos);
    const std::string one = R"({"op": "all_reduce", "ranks": 2, "points": [{"bytes": 2, "seconds": 1}]})";
    EXPECT_NE(errorOf("\"collectives\": [" + one + "," + one + "]").find("before"), std::string::npos);
    EXPECT_NE(errorOf(R"("collectives": [{"op": "allreduse", "ranks": 2, "points": [{"bytes": 2, "seconds": 1}]}])").find("collectives[0].op"), std::string::npos);
}

TEST(MeasuredProfile, GivesAHostTheFiguresThatItsDatasheetLacks) {
    const Device device = withMeasuredFigures(host(), measuredProfile()).value();
    EXPECT_DOUBLE_EQ(*device.memoryBandwidthGbPerS, 9.5);
    EXPECT_DOUBLE_EQ(device.peakDenseTflops.at(DType::Fp32), 0.11);
    Device given = host();
    given.memoryBandwidthGbPerS = 20;
    given.peakDenseTflops[DType::Fp32] = 1;
    const Device kept = withMeasuredFigures(given, measuredProfile()).value();
    EXPECT_DOUBLE_EQ(*kept.memoryBandwidthGbPerS, 20) << "what the user gave stays";
    EXPECT_DOUBLE_EQ(kept.peakDenseTflops.at(DType::Fp32), 1);
}

TEST(Environment, TheFingerprintKnowsMachineAndVersionsButNotDateAndLink) {
    Environment other = anEnvironment();
    other.date = "2026-01-01";
    other.link = "1gbit";
    EXPECT_EQ(fingerprint(other), fingerprint(anEnvironment()));
    other.versions["onednn"] = "3.0";
    EXPECT_NE(fingerprint(other), fingerprint(anEnvironment()));
    EXPECT_EQ(fingerprint(other).size(), 16U);
}

TEST(Environment, AProfileOfAnotherMachineOrVersionIsRefusedByName) {
    const Profile profile = measuredProfile();
    EXPECT_TRUE(checkEnvironment(profile, anEnvironment()));
    Environment here = anEnvironment();
    here.cpuModel = "Another CPU";
    here.versions["onednn"] = "3.0";
    const auto refused = checkEnvironment(profile, here);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("Another CPU"), std::string::npos) << refused.error().toString();
    EXPECT_NE(refused.error().message.find("onednn was '2.6.3', here '3.0'"), std::string::npos) << refused.error().toString();
    EXPECT_NE(refused.error().message.find("calibrate"), std::string::npos);
    EXPECT_FALSE(checkEnvironment(datasheetProfile(host()), anEnvironment())) << "a datasheet was not measured here";
}

TEST(Environment, AnEditedOneDoesNotPass) {
    Json json = toJson(anEnvironment());
    EXPECT_EQ(environmentFromJson(JsonCursor(json, "p.json")).value(), anEnvironment());
    json["cores"] = 64;
    const auto edited = environmentFromJson(JsonCursor(json, "p.json"));
    ASSERT_FALSE(edited);
    EXPECT_NE(edited.error().toString().find("fingerprint"), std::string::npos);
}

}  // namespace
}  // namespace ringside
