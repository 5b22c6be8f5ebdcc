// The CPU's kernels, one thread: rates to hold against oneDNN's and the memory's, and what issuing work costs.
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/device.h"

namespace ringside {
namespace {

/// A device, a stream and tensors of 4 Mi elements with harmless values.
class Rig {
public:
    Rig() : device_(makeCpuDevice().value()), stream_(device_->createStream("bench").value()) {
        for (float*& tensor : tensors_) {
            tensor = static_cast<float*>(device_->allocate(kElements * 4).value());
            for (std::int64_t i = 0; i < kElements; ++i) tensor[i] = 0.01F * static_cast<float>(i % 37) - 0.2F;
        }
    }
    float* operator[](std::size_t i) const { return tensors_[i]; }
    ComputeDevice& device() { return *device_; }
    StreamIndex stream() const { return stream_; }

    /// The loop runs on the stream, so that kernels are timed and not the way there.
    void run(benchmark::State& state, const KernelCall& call) {
        device_->issue(stream_, [&](const StreamContext& context) -> Result<void> {
            for (auto _ : state) TRY_VOID(device_->run(context, call));
            return {};
        });
        if (const Result<void> result = device_->synchronize(); !result) state.SkipWithError(result.error().toString().c_str());
    }

private:
    static constexpr std::int64_t kElements = 4 << 20;
    std::unique_ptr<ComputeDevice> device_;
    StreamIndex stream_;
    std::vector<float*> tensors_ = std::vector<float*>(9);
};

void rate(benchmark::State& state, const char* unit, double perCall) {
    state.counters[unit] = benchmark::Counter(perCall * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void matmulKernel(benchmark::State& state) {
    Rig t;
    const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
    t.run(state, {KernelOp::Matmul, state.range(3) != 0 ? DType::Bf16 : DType::Fp32, {t[0], t[1]}, {t[2]}, {1, m, n, k, 0, 1}, {1, 0}});
    rate(state, "GFLOP/s", 2.0 * static_cast<double>(m * n * k));
}
BENCHMARK(matmulKernel)->ArgNames({"m", "n", "k", "bf16"})->Args({512, 512, 512, 0})->Args({1024, 1024, 1024, 0})->Args({256, 1024, 1024, 0})->Args({16, 4096, 1024, 0})
    ->Args({1024, 1024, 1024, 1})->Unit(benchmark::kMicrosecond);

void attentionKernel(benchmark::State& state) {
    Rig t;
    const std::int64_t b = 4, s = 256, h = 8, d = 64, stride = h * d;
    const std::int64_t causal = state.range(0);
    const bool backward = state.range(1) != 0;
    const KernelCall forward{KernelOp::Attention, DType::Fp32, {t[0], t[1], t[2]}, {t[3], t[4]}, {b, s, h, h, d, causal, stride, stride, stride}, {0.125}};
    const KernelCall gradient{KernelOp::AttentionGradient, DType::Fp32, {t[0], t[0], t[1], t[2], t[3], t[4]}, {t[5], t[6], t[7]}, {b, s, h, h, d, causal, stride, stride, stride, stride, stride}, {0.125}};
    if (backward) t.device().issue(t.stream(), [&](const StreamContext& context) { return t.device().run(context, forward); });
    t.run(state, backward ? gradient : forward);
    rate(state, "GFLOP/s", (backward ? 10.0 : 4.0) * static_cast<double>(b * h * s * s * d) / (causal != 0 ? 2 : 1));
}
BENCHMARK(attentionKernel)->ArgNames({"causal", "backward"})->ArgsProduct({{0, 1}, {0, 1}})->Unit(benchmark::kMicrosecond);

constexpr std::int64_t kMi = 1 << 20;  // elements: 4 MiB a tensor

void layerNormKernel(benchmark::State& state) {
    Rig t;
    t.run(state, {KernelOp::LayerNorm, DType::Fp32, {t[0], t[1], t[2]}, {t[3], t[4]}, {1024, 1024}, {1e-5}});
    rate(state, "GB/s", 8.0 * kMi);
}
BENCHMARK(layerNormKernel)->Unit(benchmark::kMicrosecond);

void geluKernel(benchmark::State& state) {
    Rig t;
    t.run(state, {KernelOp::Activation, DType::Fp32, {t[0]}, {t[1]}, {kMi, static_cast<std::int64_t>(ActivationKind::Gelu)}, {}});
    rate(state, "GB/s", 8.0 * kMi);
}
BENCHMARK(geluKernel)->Unit(benchmark::kMicrosecond);

void adamKernel(benchmark::State& state) {
    Rig t;
    t.run(state, {KernelOp::AdamFused, DType::Fp32, {t[0]}, {t[1], t[2], t[3]}, {kMi, 3}, {1e-3, 0.9, 0.999, 1e-8, 0.01}});
    rate(state, "GB/s", 28.0 * kMi);
}
BENCHMARK(adamKernel)->Unit(benchmark::kMicrosecond);

void convolutionKernel(benchmark::State& state) {
    Rig t;
    const auto op = static_cast<KernelOp>(static_cast<std::int64_t>(KernelOp::Convolution) + state.range(0));
    t.run(state, {op, DType::Fp32, {t[0], t[1]}, {t[2]}, {8, 64, 56, 56, 64, 3, 3, 1, 1}, {0}});
    rate(state, "GFLOP/s", 2.0 * 8 * 64 * 56 * 56 * 64 * 9);
}
BENCHMARK(convolutionKernel)->ArgName("gradient")->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

/// Per piece of work that does nothing, issued to a stream that is kept busy.
void issueEmptyWork(benchmark::State& state) {
    Rig t;
    constexpr int kBatch = 1000;
    for (auto _ : state) {
        for (int i = 0; i < kBatch; ++i) t.device().issue(t.stream(), [](const StreamContext&) -> Result<void> { return {}; });
        benchmark::DoNotOptimize(t.device().synchronize().has_value());
    }
    state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(issueEmptyWork)->UseRealTime();

/// Issue to an idle stream and wait for it.
void roundTrip(benchmark::State& state) {
    Rig t;
    for (auto _ : state) {
        t.device().issue(t.stream(), [](const StreamContext&) -> Result<void> { return {}; });
        benchmark::DoNotOptimize(t.device().synchronize().has_value());
    }
}
BENCHMARK(roundTrip)->UseRealTime();

}  // namespace
}  // namespace ringside
