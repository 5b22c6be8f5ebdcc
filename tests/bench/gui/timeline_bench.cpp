// How long a picture of the timeline takes: raster painting on one core (its processor time), 1920 × 1080, offscreen.
#include <cmath>
#include <vector>

#include "screen.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

/// `ranks` ranks with a compute and a communication track; `slices` of each rank, with gaps, names and lengths that differ.
Trace trace(int ranks, std::int64_t slices) {
    TraceBuilder builder;
    builder.reserve(static_cast<std::size_t>(ranks * slices));
    std::vector<std::uint32_t> names;
    for (int i = 0; i < 500; ++i) names.push_back(builder.internName("layer." + std::to_string(i) + " some_kernel_with_a_name"));
    std::uint64_t random = 1609;
    const auto next = [&] { return random = random * 6364136223846793005ULL + 1442695040888963407ULL, random >> 33; };
    for (int rank = 0; rank < ranks; ++rank) {
        const std::uint32_t compute = builder.addTrack(rank, 1, TrackKind::Compute, "compute"), nccl = builder.addTrack(rank, 2, TrackKind::Communication, "nccl");
        Time at;
        for (std::int64_t i = 0; i < slices * 9 / 10; ++i) {
            const Time length = Time::fromNanoseconds(static_cast<std::int64_t>(next() % 20000) + 200);
            builder.addSlice(compute, at, length, next() % 10 == 0 ? SliceCategory::Optimizer : SliceCategory::Compute, names[next() % names.size()]);
            at += length + Time::fromNanoseconds(static_cast<std::int64_t>(next() % 3000));
        }
        const Time end = at;
        at = Time();
        for (std::int64_t i = 0; i < slices / 10 && at < end; ++i) {
            const Time length = Time::fromNanoseconds(static_cast<std::int64_t>(next() % 90000) + 1000);
            builder.addSlice(nccl, at, length, SliceCategory::Communication, names[next() % 20]);
            at += length + Time::fromNanoseconds(static_cast<std::int64_t>(next() % 50000));
        }
    }
    return builder.build();
}

/// Frames at twenty zooms from the whole trace to a few slices, each at five places.
void repaintTenMillionSlices(benchmark::State& state) {
    Screen screen(trace(static_cast<int>(state.range(0)), 10'000'000 / state.range(0)));
    const TimeRange all = wholeTrace(screen.session.view().trace());
    screen.paintAfterEach(state, 100, [&](int i) {
        const double length = all.length().seconds() * std::pow(0.5, i / 5);
        const Time begin = all.begin + Time::fromSeconds((all.length().seconds() - length) * (i % 5 + 0.5) / 5);
        screen.session.view().setWindow({begin, begin + Time::fromSeconds(length)});
    });
}
BENCHMARK(repaintTenMillionSlices)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond)->Iterations(1);

/// 1,024 ranks × 5,000 slices: from a Trace to a document and its first picture, and a frame per step of scrolling from top to bottom.
void openAndScrollManyRanks(benchmark::State& state) {
    Trace made = trace(1024, 5000);
    const Stopwatch watch(CLOCK_THREAD_CPUTIME_ID);
    Screen screen(std::move(made));
    screen.paint();
    state.counters["open_ms"] = watch.milliseconds();
    screen.paintAfterEach(state, 130, [&](int i) { screen.timeline.scrollTo(100 * i); });
}
BENCHMARK(openAndScrollManyRanks)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace ringside::gui
