// The module's host code against the stand-in (no GPU): devices, memory, streams, events, errors.
#include <algorithm>

#include <gmock/gmock.h>

#include "tests/gpu/host_logic/stand_in_device.h"

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class DeviceHostLogic : public StandInTest {};

TEST_F(DeviceHostLogic, TheDeviceSaysThatItIsAStandIn) {
    EXPECT_EQ(device_->info().kind, "cuda");
    EXPECT_EQ(device_->info().name, "stand-in (no GPU)");
    EXPECT_EQ(device_->info().memoryBytes, kGiB);
    EXPECT_THAT(device_->info().libraries, StartsWith("CUDA 13.0, cuBLASLt 13.0.2, cuDNN 9.19.0, NCCL 2.28."));
}

TEST_F(DeviceHostLogic, AModuleOfAnotherVersionIsRefused) {
    const Result<const RingsideCudaModule*> module = openCudaModule(RINGSIDE_OTHER_VERSION_FILE);
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().code, ErrorCode::MissingCapability);
    EXPECT_THAT(module.error().message, HasSubstr("is of version 2; this program takes version 1"));
}

TEST_F(DeviceHostLogic, WithoutADriverTheReasonIsGiven) {
    standIn().setDevices(-1);
    const auto made = CudaDevice::make(*module_, 0);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::MissingCapability);
    EXPECT_THAT(made.error().message, HasSubstr("no NVIDIA driver"));
}

TEST_F(DeviceHostLogic, WithoutADeviceTheReasonIsGiven) {
    standIn().setDevices(0);
    const auto made = CudaDevice::make(*module_, 0);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::MissingCapability);
    EXPECT_THAT(made.error().message, HasSubstr("no device found"));
}

TEST_F(DeviceHostLogic, AnOrdinalOutOfRangeIsNamedWithTheNumberOfDevices) {
    standIn().setDevices(2);
    const auto made = CudaDevice::make(*module_, 2);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::MissingCapability);
    EXPECT_THAT(made.error().message, HasSubstr("there is no device 2; this machine has 2"));
}

TEST_F(DeviceHostLogic, ALibraryThatDoesNotStartIsNamed) {
    standIn().failNext("cublasLtCreate", 1);
    const auto made = CudaDevice::make(*module_, 0);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, HasSubstr("cublasLtCreate"));
}

TEST_F(DeviceHostLogic, MemoryIsCountedAndGivenBack) {
    const std::int64_t before = standIn().memoryInUse();
    void* const a = device_->allocate(1000).value();
    void* const nothing = device_->allocate(0).value();
    EXPECT_NE(nothing, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0U);
    EXPECT_EQ(device_->bytesInUse(), 1000);
    device_->free(a);
    device_->free(nothing);
    device_->free(nullptr);
    EXPECT_EQ(device_->bytesInUse(), 0);
    EXPECT_EQ(standIn().memoryInUse(), before);
}

TEST_F(DeviceHostLogic, OutOfMemoryNamesWhatWasAskedForIsInUseAndThereIs) {
    void* const held = device_->allocate(256 * kMiB).value();
    const Result<void*> tooMuch = device_->allocate(2 * kGiB);
    ASSERT_FALSE(tooMuch);
    EXPECT_EQ(tooMuch.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(tooMuch.error().message, HasSubstr("asked for 2.00 GiB, 256 MiB are in use of 1.00 GiB"));
    // The error is not found again by what comes after.
    EXPECT_TRUE(device_->allocate(kMiB));
    EXPECT_TRUE(device_->synchronize());
    device_->free(held);
}

TEST_F(DeviceHostLogic, DestructionGivesEverythingBack) {
    ASSERT_TRUE(device_->allocate(kMiB));
    device_.reset();
    EXPECT_EQ(standIn().memoryInUse(), 0);
}

TEST_F(DeviceHostLogic, AnEventOfOneStreamIsWaitedForByTheOther) {
    const StreamIndex a = device_->createStream("compute").value(), b = device_->createStream("communication").value();
    standIn().clearLog();
    std::vector<int> order;
    device_->issue(a, [&](const StreamContext& stream) { EXPECT_NE(stream.native, nullptr); order.push_back(1); return Result<void>(); }, nullptr);
    const EventIndex event = device_->record(a);
    device_->wait(b, event);
    device_->issue(b, [&](const StreamContext&) { order.push_back(2); return Result<void>(); }, nullptr);
    ASSERT_TRUE(device_->waitOnHost(event));
    EXPECT_THAT(order, ElementsAre(1, 2));
    const std::vector<std::string> lines = standIn().lines();
    const auto record = std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return line.starts_with("cudaEventRecord"); });
    const auto wait = std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return line.starts_with("cudaStreamWaitEvent"); });
    ASSERT_TRUE(record != lines.end() && wait != lines.end());
    EXPECT_LT(record, wait);
    // "cudaEventRecord event E stream A", then "cudaStreamWaitEvent stream B event E", with A ≠ B.
    const std::string recorded = record->substr(16), waited = wait->substr(20);
    EXPECT_EQ(recorded.substr(0, recorded.find(" stream")), waited.substr(waited.find("event")));
    EXPECT_NE(recorded.substr(recorded.find("stream")), waited.substr(0, waited.find(" event")));
}

TEST_F(DeviceHostLogic, EventsOfBeforeTheLastSynchronizeAreOver) {
    const StreamIndex a = device_->createStream("compute").value();
    const EventIndex event = device_->record(a);
    ASSERT_TRUE(device_->synchronize());
    standIn().clearLog();
    device_->wait(a, event);
    EXPECT_TRUE(device_->waitOnHost(event));
    EXPECT_EQ(standIn().count("cudaStreamWaitEvent"), 0);
    EXPECT_EQ(device_->record(a), event + 1);
}

TEST_F(DeviceHostLogic, EventsAreUsedAgain) {
    const StreamIndex a = device_->createStream("compute").value();
    for (int round = 0; round < 3; ++round) {
        device_->record(a);
        ASSERT_TRUE(device_->synchronize());
    }
    EXPECT_EQ(standIn().count("cudaEventCreateWithFlags"), 1);
}

TEST_F(DeviceHostLogic, TimedWorkStandsBetweenTwoEventsAndIsOnTheHostsClock) {
    const StreamIndex a = device_->createStream("compute").value();
    float* x = put({1, 2, 3, 4});
    std::vector<float> host(4);
    standIn().clearLog();
    std::vector<WorkTimes> times(2);
    for (WorkTimes& time : times) device_->issue(a, [&](const StreamContext& stream) { return device_->copyOut(stream, host.data(), x, 16); }, &time);
    const std::vector<std::string> lines = standIn().lines();
    ASSERT_GE(lines.size(), 3U);
    std::vector<std::string> calls;
    for (const std::string& line : lines)
        if (!line.starts_with("cudaEventCreate")) calls.push_back(line.substr(0, line.find(' ')));
    EXPECT_THAT(calls, ElementsAre("cudaEventRecord", "cudaMemcpyAsync", "cudaEventRecord", "cudaEventRecord", "cudaMemcpyAsync", "cudaEventRecord"));
    ASSERT_TRUE(device_->synchronize());
    EXPECT_GT(times[0].beginNs, 0);
    EXPECT_LE(times[0].beginNs, times[0].endNs);
    EXPECT_LE(times[0].endNs, times[1].beginNs + 200);  // fp32 milliseconds round
    EXPECT_EQ(host, (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(DeviceHostLogic, WorkAfterAnErrorIsSkippedAndSynchronizeTellsTheFirst) {
    const StreamIndex a = device_->createStream("compute").value();
    bool ran = false;
    WorkTimes times;
    device_->issue(a, [](const StreamContext&) { return Result<void>(failure(ErrorCode::RuntimeFailure, "", "the first")); }, &times);
    device_->issue(a, [&](const StreamContext&) { ran = true; return Result<void>(failure(ErrorCode::RuntimeFailure, "", "the second")); }, &times);
    const Result<void> result = device_->synchronize();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "the first");
    EXPECT_FALSE(ran);
    EXPECT_TRUE(device_->synchronize());
    device_->issue(a, [&](const StreamContext&) { ran = true; return Result<void>(); }, &times);
    EXPECT_TRUE(device_->synchronize());
    EXPECT_TRUE(ran);
}

TEST_F(DeviceHostLogic, AFailedCallOfCudaIsNamed) {
    const StreamIndex a = device_->createStream("compute").value();
    standIn().failNext("cudaEventRecord", 700);
    device_->record(a);
    const Result<void> result = device_->synchronize();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(result.error().message, HasSubstr("cudaEventRecord"));
    EXPECT_THAT(result.error().message, HasSubstr("700"));
}

TEST_F(DeviceHostLogic, AnErrorThatShowsOnlyAtTheEndIsFoundBySynchronize) {
    standIn().failNext("cudaDeviceSynchronize", 700);
    const Result<void> result = device_->synchronize();
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("cudaDeviceSynchronize"));
}

}  // namespace
}  // namespace ringside
