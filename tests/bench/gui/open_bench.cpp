// Opening a file as the window does: read, index, flows, counters, steps. Processor time of one core, and the most memory it takes.
#include <filesystem>

#include <benchmark/benchmark.h>

#include "../profiler_file.h"
#include "gui/core/document.h"

namespace ringside::gui {
namespace {

void openProfilerFile(benchmark::State& state) {
    const Catalogs catalogs = Catalogs::builtin().value();
    const std::string path = writeProfilerFile(static_cast<std::size_t>(state.range(0)));
    const double bytes = static_cast<double>(std::filesystem::file_size(path));
    const double peak = peakOf([&] { benchmark::DoNotOptimize(openDocument({path}, catalogs)); });
    std::size_t slices = 0;
    for (auto _ : state) {
        const Result<DocumentPtr> document = openDocument({path}, catalogs);
        if (!document) {
            state.SkipWithError(document.error().toString().c_str());
            break;
        }
        slices = (*document)->trace.size();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * static_cast<std::int64_t>(state.iterations()));
    state.counters["slices"] = static_cast<double>(slices);
    state.counters["peak_of_file"] = peak / bytes;
    std::filesystem::remove(path);
}
BENCHMARK(openProfilerFile)->Arg(500)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace
}  // namespace ringside::gui
