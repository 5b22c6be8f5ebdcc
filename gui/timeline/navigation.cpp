#include "gui/timeline/navigation.h"

#include <algorithm>
#include <cmath>

namespace ringside::gui {
namespace {

/// A share of a length; exact enough, and never beyond what int64 holds.
Time shareOf(Time length, double share) { return Time::fromPicoseconds(std::llround(static_cast<double>(length.picoseconds()) * share)); }

TimeRange widened(const TimeRange& range, double share) {
    const Time margin = std::max(shareOf(range.length(), share), Time::fromPicoseconds(1));
    return {range.begin - margin, range.end + margin};
}

}  // namespace

TimeRange keepInside(TimeRange window, const TimeRange& trace) {
    const TimeRange outer = widened(trace, 0.05);
    if (window.length() < kNarrowestWindow) {
        const Time begin = window.middle() - Time::fromPicoseconds(kNarrowestWindow.picoseconds() / 2);
        window = {begin, begin + kNarrowestWindow};
    }
    if (window.length() >= outer.length()) return outer.length() < kNarrowestWindow ? window : outer;
    if (window.begin < outer.begin) return {outer.begin, outer.begin + window.length()};
    if (window.end > outer.end) return {outer.end - window.length(), outer.end};
    return window;
}

TimeRange wholeTrace(const TimeRange& trace) { return keepInside(widened(trace, 0.01), trace); }

TimeRange zoomAt(const TimeRange& window, Time anchor, double factor, const TimeRange& trace) {
    const double before = static_cast<double>((anchor - window.begin).picoseconds()), length = static_cast<double>(window.length().picoseconds());
    const double most = static_cast<double>(widened(trace, 0.05).length().picoseconds());
    const double wanted = std::clamp(length * factor, static_cast<double>(kNarrowestWindow.picoseconds()), std::max(most, static_cast<double>(kNarrowestWindow.picoseconds())));
    const double share = length > 0 ? before / length : 0.5;
    const Time begin = anchor - Time::fromPicoseconds(std::llround(wanted * share));
    return keepInside({begin, begin + Time::fromPicoseconds(std::llround(wanted))}, trace);
}

TimeRange panBy(const TimeRange& window, double share, const TimeRange& trace) {
    const Time by = shareOf(window.length(), share);
    return keepInside({window.begin + by, window.end + by}, trace);
}

TimeRange centreOn(const TimeRange& window, const TimeRange& target, const TimeRange& trace) {
    const Time begin = target.middle() - Time::fromPicoseconds(window.length().picoseconds() / 2);
    return keepInside({begin, begin + window.length()}, trace);
}

TimeRange fitTo(const TimeRange& target, const TimeRange& trace) { return keepInside(widened(target, 0.1), trace); }

TimeRange centreThenFit(const TimeRange& window, const TimeRange& target, const TimeRange& trace) {
    const TimeRange centred = centreOn(window, target, trace);
    return centred == window ? fitTo(target, trace) : centred;
}

double heldKeySpeed(double heldSeconds) { return 0.8 + 2.4 * std::min(heldSeconds, 1.0); }

void WindowHistory::clear(const TimeRange& first) {
    windows_ = {first};
    at_ = 0;
    moving_ = false;
}

void WindowHistory::visit(const TimeRange& window, bool continuous) {
    if (window == windows_[at_]) return;
    const bool replaces = continuous && moving_ && at_ + 1 == windows_.size() && at_ > 0;
    moving_ = continuous;
    if (replaces) {
        windows_[at_] = window;
        return;
    }
    windows_.resize(at_ + 1);
    windows_.push_back(window);
    if (windows_.size() > kMost) windows_.erase(windows_.begin());
    at_ = windows_.size() - 1;
}

}  // namespace ringside::gui
