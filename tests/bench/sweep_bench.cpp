// Sweeps: rows per second with everything a row needs: document, scenario, prediction, text. One thread, and two.
#include <chrono>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "model/base/heap.h"
#include "sim/study/sweep.h"

namespace {

using namespace ringside;

const Catalogs& catalogs() {
    static const auto builtin = Catalogs::builtin();
    return *builtin;
}

SweepPlan planOf(const char* base, const std::vector<std::string>& axes) {
    SweepDefinition definition;
    definition.base = *parseJson(base, "benchmark");
    definition.axes = axes;
    auto plan = SweepPlan::create(definition, "benchmark", catalogs());
    if (!plan) {
        std::fprintf(stderr, "%s\n", plan.error().toString().c_str());
        std::abort();
    }
    return std::move(*plan);
}

/// 10 strategies × 4 micro-batches × 3 lengths of an 8 B model on 64 devices.
SweepPlan eightBillionOn64() {
    return planOf(R"({"model": "llama-3-8b", "device": "h100-sxm", "devices": 64, "training": {"precision": "bf16"}})",
                  {"strategy=ddp,naive,ps-sharded,zero1,zero2,zero3,megatron,fsdp1,fsdp2,hsdp", "micro_batch=1,2,3,4", "seq_len=2048,4096,8192"});
}

void SweepOfLlama3_8BOn64(benchmark::State& state) {
    keepFreedMemory();  // as the program does
    const SweepPlan plan = eightBillionOn64();
    SweepOptions options;
    options.threads = static_cast<int>(state.range(0));
    std::size_t rows = 0;
    for (auto _ : state) {
        const auto done = runSweep(plan, 0, options, [](const SweepBlock& block) -> Result<void> {
            if (block.outcomes[static_cast<std::size_t>(RowOutcome::Failed)] > 0) return failure(ErrorCode::BadInput, "benchmark", block.firstError);
            return {};
        });
        if (!done) {
            state.SkipWithError(done.error().toString().c_str());
            return;
        }
        rows += *done;
    }
    state.counters["rows/s"] = benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
    state.counters["rows/s/core"] = benchmark::Counter(static_cast<double>(rows) / static_cast<double>(options.threads), benchmark::Counter::kIsRate);
}
BENCHMARK(SweepOfLlama3_8BOn64)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

/// What a row costs before its prediction: the document and its resolution.
void SweepScenarioOfLlama3_8B(benchmark::State& state) {
    keepFreedMemory();
    const SweepPlan plan = eightBillionOn64();
    std::size_t row = 0;
    for (auto _ : state) {
        const auto document = plan.document(row++ % plan.rows());
        benchmark::DoNotOptimize(resolveScenario(*document, "benchmark", catalogs()));
    }
    state.counters["rows/s"] = benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(SweepScenarioOfLlama3_8B)->Unit(benchmark::kMicrosecond);

}  // namespace
