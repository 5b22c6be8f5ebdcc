// Trace path: the critical path of any trace, walked back from the end of a range over what each slice waited for, and how much
// longer each slice could have taken (its slack). For predicted schedules sim/player/critical_path.h knows more; this one needs
// only the trace, so that measured, predicted and foreign traces are treated alike (docs/models/trace-path.md).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "traces/trace.h"

namespace ringside {

struct PathPiece {
    std::uint32_t slice = 0;   ///< kNoSlice (enclosing.h): nothing that the trace shows was waited for
    Time begin, end;           ///< the part of the slice that is on the path
    bool isInferred = false;   ///< no flow says that what follows waited for it: it was the last to end on the rank's device
};

struct TracePath {
    std::vector<PathPiece> pieces;  ///< in time order; they cover [begin, end) without gaps
    std::array<Time, 7> byCategory{};  ///< by SliceCategory
    Time idle;                      ///< of pieces without a slice
    Time begin, end;
};

/// Of what runs in [begin, end), from the slice that ends last in it. Markers do not count; on a host thread the innermost slice
/// does. A slice waited for: the slice before it on its track or its communicator; the ends of its dependencies; its launch; for a collective, the rank
/// that came last; for a wait of the host, the last thing to end on the rank's device. O(slices in the range × log).
TracePath tracePath(const Trace& trace, Time begin, Time end);

/// For each slice by how much its end could move without moving the end of the range, by the same edges; Time::max() for slices
/// that are not in [begin, end), and markers. Same cost.
std::vector<Time> sliceSlack(const Trace& trace, Time begin, Time end);

}  // namespace ringside
