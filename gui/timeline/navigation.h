// Navigation: how a window moves over a trace. Pure functions of ranges, and the list of windows to go back to.
#pragma once

#include <cstddef>
#include <vector>

#include "gui/timeline/time_range.h"

namespace ringside::gui {

/// The narrowest window: below it a pixel is shorter than a picosecond and the axis has nothing left to say.
inline constexpr Time kNarrowestWindow = Time::fromPicoseconds(2000);

/// `window` moved, and cut where it is longer than the trace with its margin, so that it lies in the trace widened by a
/// twentieth on each side: the borders of a trace can be seen, and it cannot be lost.
TimeRange keepInside(TimeRange window, const TimeRange& trace);

/// The whole trace with a little room around it.
TimeRange wholeTrace(const TimeRange& trace);

/// `factor` < 1 zooms in. The instant `anchor` keeps its place on the screen, unless a border of the trace is in the way.
TimeRange zoomAt(const TimeRange& window, Time anchor, double factor, const TimeRange& trace);

/// Moves by a share of the window's length; 0.1 is a tenth to the right.
TimeRange panBy(const TimeRange& window, double share, const TimeRange& trace);

/// The same zoom with `target` in the middle, or as little of a move as shows it if it is shorter than the window.
TimeRange centreOn(const TimeRange& window, const TimeRange& target, const TimeRange& trace);

/// `target` with a tenth of room on each side.
TimeRange fitTo(const TimeRange& target, const TimeRange& trace);

/// F: centres what is off the middle, fits what is centred already.
TimeRange centreThenFit(const TimeRange& window, const TimeRange& target, const TimeRange& trace);

/// How fast a held key moves after it was held for `heldSeconds`: windows per second for panning, and the exponent of e per
/// second for zooming. Starts gently, is four times as fast after a second.
double heldKeySpeed(double heldSeconds);

/// Windows that were shown, to go back and forward through. Moves that follow each other closely count as one.
class WindowHistory {
public:
    void clear(const TimeRange& first);
    /// `continuous`: part of the movement that the last visit began; replaces it instead of adding one.
    void visit(const TimeRange& window, bool continuous);
    bool canGoBack() const { return at_ > 0; }
    bool canGoForward() const { return at_ + 1 < windows_.size(); }
    /// REQUIRES: canGoBack() or canGoForward().
    const TimeRange& back() { return windows_[--at_]; }
    const TimeRange& forward() { return windows_[++at_]; }

private:
    static constexpr std::size_t kMost = 256;
    std::vector<TimeRange> windows_ = {TimeRange{}};
    std::size_t at_ = 0;
    bool moving_ = false;
};

}  // namespace ringside::gui
