// Whole predictions under FSDP, folded and with every rank by itself.
#include <benchmark/benchmark.h>

#include "model/base/heap.h"
#include "sim/player/fold_ranks.h"
#include "sim/prediction.h"

namespace {

using namespace ringside;

Scenario scenarioOf(const char* text) {
    const auto catalogs = Catalogs::builtin();
    const auto json = parseJson(text, "benchmark");
    auto scenario = resolveScenario(*json, "benchmark", *catalogs);
    if (!scenario) {
        std::fprintf(stderr, "%s\n", scenario.error().toString().c_str());
        std::abort();
    }
    return std::move(*scenario);
}

void predictRepeatedly(benchmark::State& state, const char* text) {
    keepFreedMemory();  // as the program does
    const Scenario scenario = scenarioOf(text);
    PredictOptions options;
    options.sensitivity = false;
    options.explain = false;
    std::uint64_t tasks = 0;
    for (auto _ : state) {
        auto prediction = predict(scenario, options);
        benchmark::DoNotOptimize(prediction->stepSeconds);
        tasks = prediction->schedule->programs.front().tasks.size();
    }
    state.counters["predictions/s"] = benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
    state.counters["tasks"] = static_cast<double>(tasks);
}

void Llama3_8BFsdp1On64(benchmark::State& state) {
    predictRepeatedly(state, R"({"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 64, "training": {"seq_len": 4096, "precision": "bf16-master"}, "strategy": "fsdp1"})");
}
BENCHMARK(Llama3_8BFsdp1On64)->Unit(benchmark::kMicrosecond);

void Llama3_8BFsdp2On64(benchmark::State& state) {
    predictRepeatedly(state, R"({"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 64, "training": {"seq_len": 4096, "precision": "bf16-master"}, "strategy": "fsdp2"})");
}
BENCHMARK(Llama3_8BFsdp2On64)->Unit(benchmark::kMicrosecond);

void Llama3_405BFsdp2On16384(benchmark::State& state) {
    predictRepeatedly(state, R"({"model": "llama-3.1-405b", "device": "h100-sxm", "devices": 16384, "training": {"seq_len": 8192, "precision": "bf16-master", "recompute": "full"}, "strategy": "fsdp2"})");
}
BENCHMARK(Llama3_405BFsdp2On16384)->Unit(benchmark::kMillisecond);

/// One step of 32 blocks, played for each of 1,024 ranks.
void Llama3_8BFsdp2UnfoldedOn1024(benchmark::State& state) {
    const Scenario scenario = scenarioOf(R"({"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 1024, "training": {"seq_len": 4096, "precision": "bf16-master"}, "strategy": "fsdp2"})");
    const Schedule unfolded = unfoldRanks(*writeSchedule(scenario));
    const auto prices = priceSchedule(unfolded, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
    for (auto _ : state) benchmark::DoNotOptimize(play(unfolded, *prices)->stepTime);
    state.counters["tasks/s"] = benchmark::Counter(static_cast<double>(state.iterations()) * 1024 * static_cast<double>(unfolded.programs.front().tasks.size()), benchmark::Counter::kIsRate);
}
BENCHMARK(Llama3_8BFsdp2UnfoldedOn1024)->Unit(benchmark::kMillisecond);

}  // namespace
