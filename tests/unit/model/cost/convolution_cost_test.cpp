// What convolutions and the kernels around them cost beyond their matrix product (docs/models/compute.md).
#include <gtest/gtest.h>

#include "model/catalog/hardware_catalog.h"
#include "model/cost/compute_cost.h"

namespace ringside {
namespace {

Device named(const char* name) { return HardwareCatalog::builtin().value().findDevice(name).value(); }

double seconds(const Device& device, DType math, const KernelWork& work, double winograd = 2.25) {
    Profile profile = datasheetProfile(device);
    profile.kernelFixedUs.value = 0;
    profile.winogradGain.value = winograd;
    return ComputeCost::create(device, profile, math)->seconds(work);
}

KernelWork convolution(DType math) {
    KernelWork work;
    work.cls = KernelClass::Convolution;
    work.math = math;
    work.shape = {1, 256 * 28 * 28, 512, 512 * 9};
    work.flops = 2.0 * 256 * 28 * 28 * 512 * 512 * 9;
    work.bytes = static_cast<double>(sizeOf(math)) * 2 * 256 * 28 * 28 * 512;
    return work;
}

TEST(ConvolutionCost, OfContiguousImagesAddsTheTransposes) {
    KernelWork work = convolution(DType::Fp16);
    const Device device = named("v100-sxm");
    const double alone = seconds(device, DType::Fp16, work);
    work.transposedBytes = 1e9;
    // Read and written at what is reached of 900 GB/s, of the part that the kernel does not take as it lies.
    const Profile profile = datasheetProfile(device);
    EXPECT_NEAR(seconds(device, DType::Fp16, work) - alone, 2e9 * profile.transposedShare.value / (profile.memoryEfficiency.value * 900e9), 3e-6);
}

TEST(ConvolutionCost, TakesWinogradsFormInFp32AndNotWhereTensorCoresAreFarAhead) {
    KernelWork fp32 = convolution(DType::Fp32), tf32 = convolution(DType::Tf32);
    const double plain = seconds(named("v100-sxm"), DType::Fp32, fp32);
    fp32.winograd = true;
    EXPECT_NEAR(plain / seconds(named("v100-sxm"), DType::Fp32, fp32), 2.25, 0.05);
    const double onTensorCores = seconds(named("a100-80gb-sxm"), DType::Tf32, tf32);
    tf32.winograd = true;
    EXPECT_EQ(seconds(named("a100-80gb-sxm"), DType::Tf32, tf32), onTensorCores) << "156 TFLOPS of tf32 against 19.5 of fp32";
    const double geForce = seconds(named("rtx-4090"), DType::Tf32, tf32, 1.0);
    EXPECT_LT(seconds(named("rtx-4090"), DType::Tf32, tf32), geForce) << "tf32 is no faster than fp32 there";
}

TEST(ElementKernel, IsBoundByTheMultiprocessorsWhereMemoryIsFast) {
    KernelWork work;
    work.bytes = 2e9;
    const Device a100 = named("a100-80gb-sxm"), a6000 = named("rtx-a6000");
    const double streaming = seconds(a100, DType::Fp16, work), slowMemory = seconds(a6000, DType::Fp16, work);
    work.elements = 1e9;
    // 108 multiprocessors of 64 lanes at 19.5 TFLOPS: 1.41 GHz, of which the sustained clock is left.
    const Profile profile = datasheetProfile(a100);
    EXPECT_NEAR(seconds(a100, DType::Fp16, work), 1e9 / (108 * 1.41e9 * profile.sustainedClock.value * profile.elementsPerClock.value), 0.02e-3);
    EXPECT_GT(seconds(a100, DType::Fp16, work), 1.5 * streaming);
    EXPECT_EQ(seconds(a6000, DType::Fp16, work), slowMemory);
}

TEST(RampOfATile, IsATimeAndNotANumberOfColumns) {
    // A short product in fp32: at A100's 97 columns of bf16 the ramp alone would be as long as 97 of its 64 columns.
    EXPECT_DOUBLE_EQ(gemmConstants(GpuArch::Ampere, 2, 312e12 / 108).rampK, 97);
    EXPECT_DOUBLE_EQ(gemmConstants(GpuArch::Ampere, 4, 19.5e12 / 108).rampK, 97 / 16.0);
    EXPECT_DOUBLE_EQ(gemmConstants(GpuArch::Ampere, 2, 0).rampK, 97) << "where the multiprocessors are not known";
}

}  // namespace
}  // namespace ringside
