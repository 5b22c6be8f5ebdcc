#include "traces/trace.h"

#include <algorithm>

namespace ringside {

std::string_view nameOf(SliceCategory category) {
    switch (category) {
        case SliceCategory::Compute: return "compute";
        case SliceCategory::Optimizer: return "optimizer";
        case SliceCategory::Communication: return "communication";
        case SliceCategory::Copy: return "copy";
        case SliceCategory::Host: return "host";
        case SliceCategory::Wait: return "wait";
        case SliceCategory::Marker: return "marker";
    }
    return "?";
}

std::string_view nameOf(TrackKind kind) {
    switch (kind) {
        case TrackKind::Host: return "host";
        case TrackKind::Compute: return "compute";
        case TrackKind::Communication: return "communication";
        case TrackKind::Copy: return "copy";
    }
    return "?";
}

Time Trace::end() const {
    Time last;
    for (std::size_t i = 0; i < size(); ++i) last = std::max(last, start[i] + duration[i]);
    return last;
}

std::size_t Trace::firstSlice(std::size_t t) const {
    return static_cast<std::size_t>(std::lower_bound(track.begin(), track.end(), static_cast<std::uint32_t>(t)) - track.begin());
}

}  // namespace ringside
