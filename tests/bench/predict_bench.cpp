// Whole predictions: names resolved once, then workload, schedule, prices, play, memory and breakdown for each.
#include <benchmark/benchmark.h>

#include "model/base/heap.h"
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

void Gpt2SmallDdpOn8(benchmark::State& state) {
    predictRepeatedly(state, R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "training": {"micro_batch": 8}, "strategy": "ddp"})");
}
BENCHMARK(Gpt2SmallDdpOn8)->Unit(benchmark::kMicrosecond);

void Llama3_8BDdpOn1024(benchmark::State& state) {
    predictRepeatedly(state, R"({"model": "llama-3-8b", "device": "h100-sxm", "devices": 1024, "training": {"micro_batch": 1, "seq_len": 4096, "recompute": "full"}, "strategy": "ddp"})");
}
BENCHMARK(Llama3_8BDdpOn1024)->Unit(benchmark::kMicrosecond);

void Gpt2SmallUnfoldedOn64(benchmark::State& state) {
    const Scenario scenario = scenarioOf(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 64, "strategy": "ddp"})");
    auto schedule = writeSchedule(scenario);
    const Schedule unfolded = [&] {
        Schedule all = *schedule;
        all.classes.clear();
        for (std::int64_t r = 0; r < 64; ++r) all.classes.push_back({0, 0, {r, 1, 1}});
        return all;
    }();
    const auto prices = priceSchedule(unfolded, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
    for (auto _ : state) benchmark::DoNotOptimize(play(unfolded, *prices)->stepTime);
    state.counters["tasks/s"] = benchmark::Counter(static_cast<double>(state.iterations()) * 64 * static_cast<double>(unfolded.programs.front().tasks.size()), benchmark::Counter::kIsRate);
}
BENCHMARK(Gpt2SmallUnfoldedOn64)->Unit(benchmark::kMillisecond);

}  // namespace
