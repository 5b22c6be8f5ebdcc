// One edit of a scenario, as the GUI makes it: set a key, resolve, predict with the memory timeline, make the trace. Painting is not in it.
#include <benchmark/benchmark.h>

#include "model/base/heap.h"
#include "sim/prediction.h"

namespace {

using namespace ringside;

void editRepeatedly(benchmark::State& state, const char* text) {
    keepFreedMemory();  // as the program does
    const auto catalogs = Catalogs::builtin();
    Json document = *parseJson(text, "benchmark");
    PredictOptions options;
    options.memoryTimeline = true;
    options.sensitivity = false;
    std::int64_t batch = 1;
    std::size_t slices = 0;
    for (auto _ : state) {
        document["training"]["micro_batch"] = 1 + (batch++ % 2);
        const auto scenario = resolveScenario(document, "benchmark", *catalogs);
        const auto prediction = predict(*scenario, options);
        const Trace trace = traceOf(*prediction);
        slices = trace.size();
        benchmark::DoNotOptimize(trace.start.data());
    }
    state.counters["slices"] = static_cast<double>(slices);
}

void EditLlama3_8BFsdpOn8(benchmark::State& state) {
    editRepeatedly(state, R"({"model": "llama-3-8b", "device": "h100-sxm", "devices": 8, "training": {"seq_len": 4096, "precision": "bf16-master"}, "strategy": "fsdp2"})");
}
BENCHMARK(EditLlama3_8BFsdpOn8)->Unit(benchmark::kMillisecond);

}  // namespace
