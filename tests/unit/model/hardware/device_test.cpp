#include "model/hardware/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringside {
namespace {

using ::testing::HasSubstr;

Device sample() {
    Device device;
    device.name = "sample";
    device.peakDenseTflops[DType::Bf16] = 312;
    device.memoryGb = 80;
    device.memoryBandwidthGbPerS = 2000;
    device.nvlinkGbPerS = 300;
    device.nvlinkNcclGbPerS = 240;
    device.sms = 108;
    return device;
}

TEST(Device, AccessorsConvertToBaseUnits) {
    const Device device = sample();
    EXPECT_DOUBLE_EQ(*peakFlops(device, DType::Bf16), 312e12);
    EXPECT_DOUBLE_EQ(*memoryBandwidth(device), 2e12);
    EXPECT_EQ(*multiprocessors(device), 108);
}

TEST(Device, MissingPeakNamesFieldDeviceAndFlag) {
    const auto peak = peakFlops(sample(), DType::Fp8);
    ASSERT_FALSE(peak);
    EXPECT_EQ(peak.error().code, ErrorCode::BadInput);
    EXPECT_THAT(peak.error().message, HasSubstr("peak fp8 throughput of sample"));
    EXPECT_THAT(peak.error().message, HasSubstr("--set device.peak_dense_tflops.fp8="));
}

TEST(Device, EveryMissingFigureNamesItsKey) {
    Device device;
    device.name = "empty";
    EXPECT_THAT(memoryBandwidth(device).error().message, HasSubstr("memory bandwidth of empty is not known"));
    EXPECT_THAT(memoryBandwidth(device).error().message, HasSubstr("--set device.memory_bandwidth_gb_per_s="));
    EXPECT_THAT(multiprocessors(device).error().message, HasSubstr("--set device.sms="));
    EXPECT_THAT(memoryCapacity(device).error().message, HasSubstr("--set device.memory_gb="));
    EXPECT_THAT(linkRateGbPerS(device).error().message, HasSubstr("--set device.nvlink_gb_per_s="));
    EXPECT_THAT(pcieRateGbPerS(device).error().message, HasSubstr("--set device.pcie_gb_per_s="));
    EXPECT_THAT(require(device.tdpW, device, "tdp_w").error().message, HasSubstr("power draw of empty"));
}

TEST(Device, CapacityIsSoldGigabytesAsGiBLessTheDriversShare) {
    // 80 GiB × 0.985 = 80 × 1,073,741,824 × 0.985 = 84,610,855,731.2 → rounded
    EXPECT_EQ(*memoryCapacity(sample()), 84'610'855'731);
}

TEST(Device, CapacityInBytesWinsOverTheRule) {
    Device device = sample();
    device.memoryBytes = 1234;
    EXPECT_EQ(*memoryCapacity(device), 1234);
}

TEST(SetDeviceFigure, SetsPeaksCountsNumbersAndPeerToPeer) {
    Device device = sample();
    ASSERT_TRUE(setDeviceFigure(device, "peak_dense_tflops.fp8", 700));
    ASSERT_TRUE(setDeviceFigure(device, "sms", 100));
    ASSERT_TRUE(setDeviceFigure(device, "memory_bandwidth_gb_per_s", 1500));
    ASSERT_TRUE(setDeviceFigure(device, "peer_to_peer", 0));
    EXPECT_DOUBLE_EQ(device.peakDenseTflops.at(DType::Fp8), 700);
    EXPECT_EQ(device.sms, 100);
    EXPECT_DOUBLE_EQ(*device.memoryBandwidthGbPerS, 1500);
    EXPECT_FALSE(device.peerToPeer);
}

TEST(SetDeviceFigure, EveryKeyItListsCanBeSet) {
    for (const std::string& key : deviceFigureKeys()) {
        Device device = sample();
        EXPECT_TRUE(setDeviceFigure(device, key, 1)) << key;
    }
}

TEST(SetDeviceFigure, NewNvlinkRateKeepsTheShareThatNcclCounts) {
    Device device = sample();
    ASSERT_TRUE(setDeviceFigure(device, "nvlink_gb_per_s", 450));
    EXPECT_DOUBLE_EQ(*device.nvlinkNcclGbPerS, 360);  // 240 / 300 × 450
}

TEST(SetDeviceFigure, NewPcieRateReplacesNcclsCountWhereTheOldRateIsUnknown) {
    Device device = sample();
    device.pcieNcclGbPerS = 12;  // as on V100: NCCL's count without a datasheet rate
    ASSERT_TRUE(setDeviceFigure(device, "pcie_gb_per_s", 20));
    EXPECT_DOUBLE_EQ(*pcieRateGbPerS(device), 20);
}

TEST(SetDeviceFigure, NewMemorySizeReplacesTheBytesSeen) {
    Device device = sample();
    device.memoryBytes = 1234;
    ASSERT_TRUE(setDeviceFigure(device, "memory_gb", 100));
    EXPECT_EQ(*memoryCapacity(device), 105'763'569'664);  // 100 GiB × 0.985
}

TEST(SetDeviceFigure, RefusesUnknownKeysWithTheNearest) {
    Device device = sample();
    const auto result = setDeviceFigure(device, "memory_bandwith_gb_per_s", 1);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("did you mean 'memory_bandwidth_gb_per_s'"));
    EXPECT_THAT(setDeviceFigure(device, "peak_dense_tflops.bf61", 1).error().message, HasSubstr("peak_dense_tflops.bf16"));
}

TEST(SetDeviceFigure, RefusesValuesOutOfRangeAndLeavesTheDeviceAlone) {
    Device device = sample();
    EXPECT_THAT(setDeviceFigure(device, "sms", 1.5).error().message, HasSubstr("whole number"));
    EXPECT_THAT(setDeviceFigure(device, "memory_gb", -1).error().message, HasSubstr("out of range"));
    EXPECT_THAT(setDeviceFigure(device, "peak_dense_tflops.bf16", 0).error().message, HasSubstr("out of range"));
    EXPECT_FALSE(setDeviceFigure(device, "tdp_w", std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(setDeviceFigure(device, "peer_to_peer", 2));
    EXPECT_EQ(device, sample());
}

Result<Device> parse(const std::string& text) {
    const auto json = parseJson(text, "device.json");
    if (!json) return tl::unexpected<Error>(json.error());
    return deviceFromJson(JsonCursor(*json, "device.json"));
}

TEST(DeviceJson, NullMeansUnknown) {
    const auto device = parse(R"({"name": "x", "sms": null, "peak_dense_tflops": {"bf16": null, "fp16": 10}})");
    ASSERT_TRUE(device) << device.error().toString();
    EXPECT_FALSE(device->sms);
    EXPECT_EQ(device->peakDenseTflops.count(DType::Bf16), 0u);
    EXPECT_DOUBLE_EQ(device->peakDenseTflops.at(DType::Fp16), 10);
}

TEST(DeviceJson, RefusesWhatItDoesNotKnow) {
    EXPECT_THAT(parse(R"({"name": "x", "smss": 3})").error().message, HasSubstr("did you mean 'sms'"));
    EXPECT_THAT(parse(R"({"sms": 3})").error().message, HasSubstr("'name' is missing"));
    EXPECT_THAT(parse(R"({"name": ""})").error().message, HasSubstr("empty"));
    EXPECT_THAT(parse(R"({"name": "x", "arch": "hoper"})").error().message, HasSubstr("did you mean 'hopper'"));
    EXPECT_THAT(parse(R"({"name": "x", "interconnect": "rope"})").error().message, HasSubstr("nvlink, xgmi, pcie or none"));
    EXPECT_THAT(parse(R"({"name": "x", "peak_dense_tflops": {"bf61": 3}})").error().message, HasSubstr("did you mean 'bf16'"));
    EXPECT_THAT(parse(R"({"name": "x", "tdp_w": "hot"})").error().toString(), HasSubstr("device.json: tdp_w: expected a number"));
}

}  // namespace
}  // namespace ringside
