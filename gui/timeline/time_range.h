// TimeRange: a half-open stretch of time [begin, end): what a window shows, what a selection covers.
#pragma once

#include <algorithm>

#include "model/base/units.h"

namespace ringside::gui {

struct TimeRange {
    Time begin, end;

    Time length() const { return end - begin; }
    Time middle() const { return begin + Time::fromPicoseconds((end - begin).picoseconds() / 2); }
    bool empty() const { return end <= begin; }
    bool contains(Time t) const { return begin <= t && t < end; }
    bool overlaps(const TimeRange& other) const { return begin < other.end && other.begin < end; }
    bool operator==(const TimeRange&) const = default;
};

/// The range between two instants in either order.
inline TimeRange between(Time a, Time b) { return a <= b ? TimeRange{a, b} : TimeRange{b, a}; }

/// What lies in both; empty (at a border of `outer`) where nothing does.
inline TimeRange clamp(const TimeRange& range, const TimeRange& outer) {
    const Time begin = std::clamp(range.begin, outer.begin, outer.end);
    return {begin, std::clamp(range.end, begin, outer.end)};
}

}  // namespace ringside::gui
