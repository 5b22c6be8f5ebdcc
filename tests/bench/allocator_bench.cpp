// What the allocator model costs in a prediction: budget 100 µs for the 2,000 allocate/free pairs of a step.
#include <vector>

#include <benchmark/benchmark.h>

#include "model/memory/allocator.h"

namespace ringside {
namespace {

/// The allocations of a transformer step: per layer some saved activations and some that die at once in forward; in
/// backward the saved ones go in reverse order while gradients and workspaces come and go; gradients stay to the end.
class TransformerStep {
public:
    /// Saves its own bookkeeping between runs, so that only the allocator is timed.
    void run(CachingAllocator& allocator, int layers) {
        constexpr Bytes kHidden = 16 * kMiB, kNorm = 32 * kKiB;
        saved_.clear();
        gradients_.clear();
        for (int layer = 0; layer < layers; ++layer) {
            for (const Bytes size : {kHidden, kNorm, kNorm, 3 * kHidden, kHidden, kHidden, kHidden, kNorm, kNorm, 4 * kHidden, 4 * kHidden, kHidden}) {
                saved_.push_back(allocator.allocate(size, 0));
                if (size == kHidden) allocator.free(allocator.allocate(kHidden / 2 + 512 * layer, 0));
            }
        }
        for (int layer = 0; layer < layers; ++layer) {
            for (int i = 0; i < 12; ++i) {
                const auto gradient = allocator.allocate(i % 3 == 0 ? kHidden : kNorm, 0);
                if (i % 2 == 0) gradients_.push_back(allocator.allocate(i == 0 ? 10 * kMiB : 6400 + 512 * i, 0));
                allocator.free(saved_.back());
                saved_.pop_back();
                allocator.free(gradient);
            }
        }
        for (const auto block : gradients_) allocator.free(block);
    }

private:
    std::vector<CachingAllocator::Block> saved_, gradients_;
};

void allocatorStep(benchmark::State& state) {
    constexpr int kLayers = 56;
    constexpr int kPairs = kLayers * (12 + 5 + 12 + 6);  // saved, short-lived (5 of kHidden), their gradients, parameter gradients
    CachingAllocator allocator(state.range(0) != 0);
    TransformerStep step;
    for (auto _ : state) {
        allocator.reset();
        step.run(allocator, kLayers);
        benchmark::DoNotOptimize(allocator.peakReserved());
    }
    state.SetItemsProcessed(state.iterations() * kPairs);
    state.counters["pairs"] = kPairs;
}
BENCHMARK(allocatorStep)->ArgName("expandable")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ringside
