// Price of pricing a kernel: a schedule asks for thousands.
#include <benchmark/benchmark.h>

#include "model/cost/compute_cost.h"

namespace ringside {
namespace {

ComputeCost h100(bool withTable) {
    Device device;
    device.name = "bench";
    device.arch = GpuArch::Hopper;
    device.sms = 132;
    device.peakDenseTflops = {{DType::Bf16, 989}};
    device.memoryBandwidthGbPerS = 3350;
    Profile profile = datasheetProfile(device);
    for (std::int64_t m = 256; withTable && m <= 4096; m *= 2)
        for (std::int64_t n = 256; n <= 4096; n *= 2)
            for (std::int64_t k = 256; k <= 4096; k *= 2) profile.gemmTable[DType::Bf16].push_back({{1, m, n, k}, 400});
    return ComputeCost::create(device, profile, DType::Bf16).value();
}

KernelWork gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
    KernelWork work;
    work.cls = KernelClass::Gemm;
    work.math = DType::Bf16;
    work.shape = {1, m, n, k};
    return work;
}

void largeGemm(benchmark::State& state) {
    const ComputeCost cost = h100(false);
    const KernelWork work = gemm(4096, 4096, 4096);
    for (auto _ : state) benchmark::DoNotOptimize(cost.seconds(work, 24, 0.1));
}
BENCHMARK(largeGemm);

void smallGemmWithSplits(benchmark::State& state) {
    const ComputeCost cost = h100(false);
    const KernelWork work = gemm(256, 256, 4096);
    for (auto _ : state) benchmark::DoNotOptimize(cost.seconds(work, 24, 0.1));
}
BENCHMARK(smallGemmWithSplits);

void gemmWithTableOf125(benchmark::State& state) {
    const ComputeCost cost = h100(true);
    const KernelWork work = gemm(3000, 4096, 4096);
    for (auto _ : state) benchmark::DoNotOptimize(cost.seconds(work, 24, 0.1));
}
BENCHMARK(gemmWithTableOf125);

void memoryKernel(benchmark::State& state) {
    const ComputeCost cost = h100(false);
    KernelWork work;
    work.bytes = 1e8;
    for (auto _ : state) benchmark::DoNotOptimize(cost.seconds(work, 24, 0.1));
}
BENCHMARK(memoryKernel);

}  // namespace
}  // namespace ringside
