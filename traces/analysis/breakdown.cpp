#include "traces/analysis/breakdown.h"

#include <algorithm>
#include <vector>

#include "model/base/check.h"
#include "traces/analysis/interval.h"

namespace ringside {
namespace {

/// Slices of a busy stream touch each other: most of them only make the last interval longer.
void append(std::vector<Interval>& intervals, Interval slice) {
    if (slice.begin >= slice.end) return;
    if (!intervals.empty() && intervals.back().begin <= slice.begin && slice.begin <= intervals.back().end)
        intervals.back().end = std::max(intervals.back().end, slice.end);
    else
        intervals.push_back(slice);
}

IntervalSet within(const std::vector<Interval>& intervals, Time begin, Time end) {
    IntervalSet all = unionOf(intervals);
    if (!all.empty() && (all.front().begin < begin || all.back().end > end)) return clip(all, begin, end);
    return all;
}

}  // namespace

void RankActivity::add(TrackKind track, SliceCategory category, Time begin, Time end) {
    const bool host = track == TrackKind::Host;
    switch (category) {
        case SliceCategory::Compute: return append(host ? host_ : compute_, {begin, end});
        // A copy kernel keeps a compute stream busy; the copy engine's work leaves it free.
        case SliceCategory::Copy: return append(track == TrackKind::Compute ? compute_ : host ? host_ : copy_, {begin, end});
        case SliceCategory::Optimizer: return append(optimizer_, {begin, end});
        case SliceCategory::Communication: return append(communication_, {begin, end});
        case SliceCategory::Host: return append(host_, {begin, end});
        case SliceCategory::Wait: case SliceCategory::Marker: return;
    }
}

Breakdown RankActivity::breakdown(Time begin, Time end) const {
    CHECK(begin <= end);
    const IntervalSet optimizer = within(optimizer_, begin, end), communication = within(communication_, begin, end), host = within(host_, begin, end);
    const IntervalSet busy = unionOf(within(compute_, begin, end), optimizer);
    const IntervalSet busyOrCommunicating = unionOf(busy, communication);
    const IntervalSet device = unionOf(busyOrCommunicating, within(copy_, begin, end));

    Breakdown result;
    result.step = end - begin;
    result.optimizer = lengthOf(optimizer);
    result.compute = lengthOf(busy) - result.optimizer;
    result.communicationHidden = intersectionLength(communication, busy);
    result.communicationExposed = lengthOf(communication) - result.communicationHidden;
    result.host = lengthOf(host) - intersectionLength(host, device);
    result.copyExposed = lengthOf(device) - lengthOf(busyOrCommunicating);
    result.idle = result.step - lengthOf(busyOrCommunicating) - result.host;
    return result;
}

double Breakdown::overlapPercent() const {
    const Time all = communication();
    if (all == Time{}) return 100;
    return 100.0 * static_cast<double>(communicationHidden.picoseconds()) / static_cast<double>(all.picoseconds());
}

Breakdown breakdownOf(const Trace& trace, std::int64_t rank, Time step) { return breakdownOf(trace, rank, Time{}, step); }

Breakdown breakdownOf(const Trace& trace, std::int64_t rank, Time begin, Time end) {
    RankActivity activity;
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        if (trace.tracks[t].rank != rank) continue;
        const std::size_t last = trace.firstSlice(t + 1);
        for (std::size_t i = trace.firstSlice(t); i < last; ++i) activity.add(trace.tracks[t].kind, trace.category[i], trace.start[i], trace.start[i] + trace.duration[i]);
    }
    return activity.breakdown(begin, end);
}

}  // namespace ringside
