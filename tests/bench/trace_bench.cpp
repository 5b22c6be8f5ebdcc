// Opening traces: a PyTorch-profiler file of 500 MB that the bench writes itself, and what the panels ask of its slices.
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "profiler_file.h"
#include "traces/analysis/range_statistics.h"
#include "traces/analysis/slice_search.h"
#include "traces/analysis/trace_path.h"
#include "traces/import/read_trace.h"

namespace ringside {
namespace {

void openTrace(benchmark::State& state) {
    const std::string path = writeProfilerFile(static_cast<std::size_t>(state.range(0)));
    const double bytes = static_cast<double>(std::filesystem::file_size(path));
    const double peak = peakOf([&] { benchmark::DoNotOptimize(readTrace({path})); });
    std::size_t slices = 0;
    for (auto _ : state) {
        const Result<ImportedTrace> imported = readTrace({path});
        if (!imported) {
            state.SkipWithError(imported.error().toString().c_str());
            break;
        }
        slices = imported->trace.size();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * static_cast<std::int64_t>(state.iterations()));
    state.counters["slices"] = static_cast<double>(slices);
    state.counters["peak_of_file"] = peak / bytes;
    std::filesystem::remove(path);
}
BENCHMARK(openTrace)->Name("trace/open_mb")->Arg(50)->Arg(500)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

/// A million slices, by name and by time.
struct Read {
    Read() {
        const std::string path = writeProfilerFile(400);
        Result<ImportedTrace> imported = readTrace({path});
        if (imported) trace = std::move(imported->trace);
        std::filesystem::remove(path);
    }
    Trace trace;
};
const Trace& bigTrace() {
    static const Read read;
    return read.trace;
}

void searchNames(benchmark::State& state) {
    const Trace& trace = bigTrace();
    for (auto _ : state) benchmark::DoNotOptimize(searchSlices(trace, "gemm|layer_norm.*float"));
    state.counters["slices"] = static_cast<double>(trace.size());
}
BENCHMARK(searchNames)->Name("trace/search")->Unit(benchmark::kMillisecond);

void statisticsOfRange(benchmark::State& state) {
    const Trace& trace = bigTrace();
    for (auto _ : state) benchmark::DoNotOptimize(rangeStatistics(trace, Time{}, trace.end()));
    state.counters["slices"] = static_cast<double>(trace.size());
}
BENCHMARK(statisticsOfRange)->Name("trace/range_statistics")->Unit(benchmark::kMillisecond);

void criticalPathOfTrace(benchmark::State& state) {
    const Trace& trace = bigTrace();
    for (auto _ : state) benchmark::DoNotOptimize(tracePath(trace, Time{}, trace.end()));
    state.counters["slices"] = static_cast<double>(trace.size());
}
BENCHMARK(criticalPathOfTrace)->Name("trace/critical_path")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringside
