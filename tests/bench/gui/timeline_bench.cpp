// How long a picture of the timeline takes: raster painting on one core (its processor time), 1920 × 1080, offscreen.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <vector>

#include <QApplication>
#include <QImage>
#include <QPainter>

#include <benchmark/benchmark.h>

#include "gui/canvas/timeline_widget.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

constexpr QSize kScreen(1920, 1080);

/// Processor time of this thread: what one core needs, whoever else uses the machine.
class ThreadClock {
public:
    void start() { begin_ = now(); }
    double milliseconds() const { return static_cast<double>(now() - begin_) / 1e6; }

private:
    static std::int64_t now() {
        timespec at{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
        return at.tv_sec * 1'000'000'000LL + at.tv_nsec;
    }
    std::int64_t begin_ = 0;
};

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

DocumentPtr documentOf(Trace made) {
    Document parts;
    parts.trace = std::move(made);
    return makeDocument(std::move(parts));
}

void report(benchmark::State& state, std::vector<double> milliseconds) {
    std::sort(milliseconds.begin(), milliseconds.end());
    state.counters["median_ms"] = milliseconds[milliseconds.size() / 2];
    state.counters["worst_ms"] = milliseconds.back();
}

/// Processor time of one picture, in milliseconds.
double paintOnce(TimelineWidget& timeline, QImage& image) {
    ThreadClock clock;
    clock.start();
    QPainter painter(&image);
    timeline.paintInto(painter, kScreen, false);
    painter.end();
    return clock.milliseconds();
}

/// Frames at twenty zooms from the whole trace to a few slices, each at five places.
void repaintTenMillionSlices(benchmark::State& state) {
    Session session(documentOf(trace(static_cast<int>(state.range(0)), 10'000'000 / state.range(0))));
    Theme theme;
    TimelineWidget timeline(session, theme);
    timeline.resize(kScreen);
    QImage image(kScreen, QImage::Format_RGB32);
    std::vector<double> frames;
    for (auto _ : state)
        for (int zoom = 0; zoom < 20; ++zoom)
            for (int place = 0; place < 5; ++place) {
                const TimeRange all = wholeTrace(session.view().trace());
                const double length = all.length().seconds() * std::pow(0.5, zoom);
                const Time begin = all.begin + Time::fromSeconds((all.length().seconds() - length) * (place + 0.5) / 5);
                session.view().setWindow({begin, begin + Time::fromSeconds(length)});
                frames.push_back(paintOnce(timeline, image));
            }
    report(state, frames);
}
BENCHMARK(repaintTenMillionSlices)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond)->Iterations(1);

/// 1,024 ranks × 5,000 slices: from a Trace to a document, and a frame per step of scrolling from top to bottom.
void openAndScrollManyRanks(benchmark::State& state) {
    Trace made = trace(1024, 5000);
    ThreadClock clock;
    clock.start();
    Session session(documentOf(std::move(made)));
    Theme theme;
    TimelineWidget timeline(session, theme);
    timeline.resize(kScreen);
    QImage image(kScreen, QImage::Format_RGB32);
    paintOnce(timeline, image);
    state.counters["open_ms"] = clock.milliseconds();
    std::vector<double> frames;
    for (auto _ : state)
        for (int y = 0; y < 13'000; y += 100) {
            timeline.scrollTo(y);
            frames.push_back(paintOnce(timeline, image));
        }
    report(state, frames);
}
BENCHMARK(openAndScrollManyRanks)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace ringside::gui

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
