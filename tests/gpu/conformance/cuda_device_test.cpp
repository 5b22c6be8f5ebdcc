// A real device, where there is one: that it answers, copies and multiplies. The whole suite runs in tests/conformance.
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "tests/gpu/conformance/cuda_device_factory.h"

namespace ringside {
namespace {

TEST(CudaDevice, EitherIsThereOrSaysWhyNot) {
    const Result<std::unique_ptr<ComputeDevice>> device = makeCudaDeviceForTests();
    if (device) return;
    EXPECT_EQ(device.error().code, ErrorCode::MissingCapability);
    EXPECT_FALSE(device.error().message.empty());
}

TEST(CudaDevice, CopiesInMultipliesAndCopiesOut) {
    Result<std::unique_ptr<ComputeDevice>> made = makeCudaDeviceForTests();
    if (!made) GTEST_SKIP() << "no CUDA device: " << made.error().toString();
    ComputeDevice& device = **made;
    EXPECT_EQ(device.info().name.find("stand-in"), std::string::npos) << "a stand-in is no device";
    // [1 2; 3 4]·[5 6; 7 8] = [19 22; 43 50]
    const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
    std::vector<float> c(4);
    const Result<StreamIndex> stream = device.createStream("compute");
    ASSERT_TRUE(stream) << stream.error().toString();
    void* memory = device.allocate(3 * 256).value();
    char* const base = static_cast<char*>(memory);
    device.issue(*stream, [&](const StreamContext& s) -> Result<void> {
        TRY_VOID(device.copyIn(s, base, a.data(), 16));
        TRY_VOID(device.copyIn(s, base + 256, b.data(), 16));
        KernelCall call;
        call.op = KernelOp::Matmul;
        call.in = {base, base + 256};
        call.out = {base + 512};
        call.dims = {1, 2, 2, 2, 0, 0};
        call.scalars = {1, 0};
        TRY_VOID(device.run(s, call));
        return device.copyOut(s, c.data(), base + 512, 16);
    });
    const Result<void> done = device.synchronize();
    ASSERT_TRUE(done) << done.error().toString();
    EXPECT_EQ(c, (std::vector<float>{19, 22, 43, 50}));
    device.free(memory);
}

}  // namespace
}  // namespace ringside
