// Screen: a timeline of 1920 × 1080 on no display, and how long its pictures take.
#pragma once

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <QImage>
#include <QPainter>

#include <benchmark/benchmark.h>

#include "gui/canvas/timeline_widget.h"

namespace ringside::gui {

constexpr QSize kScreen(1920, 1080);

/// Milliseconds of `clock` since it was made. CLOCK_THREAD_CPUTIME_ID: what one core needs, whoever else uses the machine.
class Stopwatch {
public:
    explicit Stopwatch(clockid_t clock) : clock_(clock), begin_(now()) {}
    double milliseconds() const { return static_cast<double>(now() - begin_) / 1e6; }

private:
    std::int64_t now() const {
        timespec at{};
        clock_gettime(clock_, &at);
        return at.tv_sec * 1'000'000'000LL + at.tv_nsec;
    }
    clockid_t clock_;
    std::int64_t begin_;
};

/// The median and the worst as counters of the benchmark. REQUIRES: not empty.
inline void report(benchmark::State& state, std::vector<double> milliseconds) {
    std::sort(milliseconds.begin(), milliseconds.end());
    state.counters["median_ms"] = milliseconds[milliseconds.size() / 2];
    state.counters["worst_ms"] = milliseconds.back();
}

inline DocumentPtr documentOf(Trace trace) {
    Document parts;
    parts.trace = std::move(trace);
    return makeDocument(std::move(parts));
}

class Screen {
public:
    explicit Screen(Trace trace) : session(documentOf(std::move(trace))) { timeline.resize(kScreen); }

    /// Processor time of one picture, in milliseconds.
    double paint() {
        const Stopwatch watch(CLOCK_THREAD_CPUTIME_ID);
        QPainter painter(&image_);
        timeline.paintInto(painter, kScreen, false);
        painter.end();
        return watch.milliseconds();
    }

    /// `change(i)` and a picture, for i from 0 to count.
    template <class Change>
    void paintAfterEach(benchmark::State& state, int count, Change change) {
        std::vector<double> frames;
        for (auto _ : state)
            for (int i = 0; i < count; ++i) {
                change(i);
                frames.push_back(paint());
            }
        report(state, frames);
    }

    Session session;
    Theme theme;
    TimelineWidget timeline{session, theme};

private:
    QImage image_{kScreen, QImage::Format_RGB32};
};

}  // namespace ringside::gui
