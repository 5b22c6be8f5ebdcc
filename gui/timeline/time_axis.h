// TimeAxis: time to pixel and back, and the ticks of a ruler.
#pragma once

#include <string>
#include <vector>

#include "gui/timeline/time_range.h"

namespace ringside::gui {

/// Pixels count from the left border of the window. Differences are taken in whole picoseconds before anything becomes a double, so a
/// nanosecond a month into a trace is still a nanosecond wide.
class TimeAxis {
public:
    /// REQUIRES: the window is not empty, width > 0.
    TimeAxis(const TimeRange& window, double width)
        : window_(window), width_(width), pixelsPerPs_(width / static_cast<double>(window.length().picoseconds())) {}

    const TimeRange& window() const { return window_; }
    double width() const { return width_; }
    double toX(Time t) const { return static_cast<double>((t - window_.begin).picoseconds()) * pixelsPerPs_; }
    double widthOf(Time length) const { return static_cast<double>(length.picoseconds()) * pixelsPerPs_; }
    Time toTime(double x) const;
    /// How long a pixel is, in picoseconds; may be below one.
    double psPerPixel() const { return 1 / pixelsPerPs_; }

private:
    TimeRange window_;
    double width_, pixelsPerPs_;
};

struct RulerTick {
    Time at;
    std::string label;
};

/// Ticks at 1, 2 or 5 times a power of ten, at least `spacing` pixels apart; all labels have the unit and the decimals that their
/// distance asks for ("1,250 µs", "1.25 ms").
std::vector<RulerTick> rulerTicks(const TimeAxis& axis, double spacing);

/// A time within a trace, to the nanosecond: "12.345678 ms" (formatTime rounds to three digits, which is too coarse for a start).
std::string formatInstant(Time t);

}  // namespace ringside::gui
