#include "traces/analysis/breakdown.h"

#include <algorithm>
#include <vector>

#include "model/base/check.h"
#include "traces/analysis/interval.h"

namespace ringside {
namespace {

/// Slices of one rank as sets of instants within a window.
struct Activity {
    IntervalSet compute, optimizer, communication, copy, host;
};

Activity activityOf(const Trace& trace, std::int64_t rank, Time begin, Time end) {
    std::vector<Interval> compute, optimizer, communication, copy, host;
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        if (trace.tracks[t].rank != rank) continue;
        const TrackKind kind = trace.tracks[t].kind;
        const std::size_t last = trace.firstSlice(t + 1);
        for (std::size_t i = trace.firstSlice(t); i < last; ++i) {
            const Interval slice{std::max(trace.start[i], begin), std::min(trace.start[i] + trace.duration[i], end)};
            if (slice.begin >= slice.end) continue;
            switch (trace.category[i]) {
                case SliceCategory::Compute: (kind == TrackKind::Host ? host : compute).push_back(slice); break;
                // A copy kernel keeps a compute stream busy; the copy engine's work leaves it free.
                case SliceCategory::Copy: (kind == TrackKind::Compute ? compute : kind == TrackKind::Host ? host : copy).push_back(slice); break;
                case SliceCategory::Optimizer: optimizer.push_back(slice); break;
                case SliceCategory::Communication: communication.push_back(slice); break;
                case SliceCategory::Host: host.push_back(slice); break;
                case SliceCategory::Wait:
                case SliceCategory::Marker: break;
            }
        }
    }
    return {unionOf(std::move(compute)), unionOf(std::move(optimizer)), unionOf(std::move(communication)), unionOf(std::move(copy)),
            unionOf(std::move(host))};
}

}  // namespace

double Breakdown::overlapPercent() const {
    const Time all = communication();
    if (all == Time{}) return 100;
    return 100.0 * static_cast<double>(communicationHidden.picoseconds()) / static_cast<double>(all.picoseconds());
}

Breakdown breakdownOf(const Trace& trace, std::int64_t rank, Time step) { return breakdownOf(trace, rank, Time{}, step); }

Breakdown breakdownOf(const Trace& trace, std::int64_t rank, Time begin, Time end) {
    CHECK(begin <= end);
    const Activity activity = activityOf(trace, rank, begin, end);
    const IntervalSet busy = unionOf(activity.compute, activity.optimizer);
    const IntervalSet busyOrCommunicating = unionOf(busy, activity.communication);
    const IntervalSet device = unionOf(busyOrCommunicating, activity.copy);

    Breakdown result;
    result.step = end - begin;
    result.optimizer = lengthOf(activity.optimizer);
    result.compute = lengthOf(busy) - result.optimizer;
    result.communicationHidden = intersectionLength(activity.communication, busy);
    result.communicationExposed = lengthOf(activity.communication) - result.communicationHidden;
    result.host = lengthOf(activity.host) - intersectionLength(activity.host, device);
    result.copyExposed = lengthOf(device) - lengthOf(busyOrCommunicating);
    result.idle = result.step - lengthOf(busyOrCommunicating) - result.host;
    return result;
}

}  // namespace ringside
