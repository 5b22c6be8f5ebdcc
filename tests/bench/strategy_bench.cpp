// Whole predictions of the sizes that studies ask for: sharded giants, unfolded ranks with jitter, long accumulation.
#include <sys/resource.h>

#include <benchmark/benchmark.h>

#include "model/base/heap.h"
#include "sim/prediction.h"

namespace {

using namespace ringside;

Scenario scenarioOf(const std::string& text) {
    static const auto catalogs = Catalogs::builtin();
    auto scenario = resolveScenario(*parseJson(text, "benchmark"), "benchmark", *catalogs);
    if (!scenario) {
        std::fprintf(stderr, "%s\n", scenario.error().toString().c_str());
        std::abort();
    }
    return std::move(*scenario);
}

/// Of the process so far: run one benchmark alone to read it.
double peakMegabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

void predictRepeatedly(benchmark::State& state, const std::string& text) {
    keepFreedMemory();  // as the program does
    const Scenario scenario = scenarioOf(text);
    double tasks = 0;
    for (auto _ : state) {
        auto prediction = predict(scenario, {false, false, false});
        benchmark::DoNotOptimize(prediction->stepSeconds);
        tasks = 0;
        for (const RankClass& rankClass : prediction->schedule->classes) tasks += static_cast<double>(prediction->schedule->programs[rankClass.program].tasks.size());
    }
    state.counters["predictions/s"] = benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
    state.counters["tasks"] = tasks;
    state.counters["peak_MB"] = peakMegabytes();
}

void Llama405BFsdp2On16384(benchmark::State& state) {
    predictRepeatedly(state, R"({"model": "llama-3.1-405b", "device": "h100-sxm", "devices": 16384, "training": {"precision": "bf16-master", "recompute": "full"}, "strategy": "fsdp2"})");
}
BENCHMARK(Llama405BFsdp2On16384)->Unit(benchmark::kMillisecond);

void Llama8BFsdp2On1024UnfoldedWithJitter(benchmark::State& state) {
    predictRepeatedly(state, R"({"model": "llama-3-8b", "device": "h100-sxm", "devices": 1024, "training": {"precision": "bf16-master"}, "strategy": "fsdp2",
                                 "perturbation": {"jitter": 0.05, "samples": 1}})");
}
BENCHMARK(Llama8BFsdp2On1024UnfoldedWithJitter)->Unit(benchmark::kMillisecond)->Iterations(3);

/// One of each, as a sweep over strategies asks for them.
void Llama8BMixedStrategiesOn64(benchmark::State& state) {
    keepFreedMemory();
    std::vector<Scenario> scenarios;
    for (const char* strategy : {"ddp", "zero1", "zero2", "zero3", "megatron", "fsdp1", "fsdp2", "hsdp"})
        for (const int microBatch : {1, 2})
            scenarios.push_back(scenarioOf(fmt::format(R"({{"model": "llama-3-8b", "device": "h100-sxm", "devices": 64, "training": {{"precision": "bf16", "micro_batch": {}}}, "strategy": "{}"}})", microBatch, strategy)));
    std::int64_t done = 0;
    for (auto _ : state)
        for (const Scenario& scenario : scenarios) {
            benchmark::DoNotOptimize(predict(scenario, {false, false, false})->stepSeconds);
            ++done;
        }
    state.counters["predictions/s"] = benchmark::Counter(static_cast<double>(done), benchmark::Counter::kIsRate);
}
BENCHMARK(Llama8BMixedStrategiesOn64)->Unit(benchmark::kMillisecond);

void Gpt2DdpAccumulating(benchmark::State& state) {
    predictRepeatedly(state, fmt::format(R"({{"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "training": {{"micro_batch": 8, "grad_accum": {}}}, "strategy": "ddp"}})", state.range(0)));
}
BENCHMARK(Gpt2DdpAccumulating)->Arg(1)->Arg(8)->Arg(64)->Arg(512)->Arg(4096)->Unit(benchmark::kMicrosecond);

void Llama8BPipelineOn64(benchmark::State& state) {
    predictRepeatedly(state, R"({"model": "llama-3-8b", "device": "h100-sxm", "devices": 64, "training": {"precision": "bf16", "grad_accum": 256}, "strategy": {"name": "ddp", "tp": 2, "pp": 4}})");
}
BENCHMARK(Llama8BPipelineOn64)->Unit(benchmark::kMillisecond);

}  // namespace
