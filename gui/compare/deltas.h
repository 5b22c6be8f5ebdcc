// Deltas: where two traces differ, name by name. Slices that carry the same task id on the same rank are one task, however the two
// sides call it (predicted and measured); all others are joined by their name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/timeline/time_range.h"
#include "traces/trace.h"

namespace ringside::gui {

struct DeltaRow {
    std::string name;                   ///< the upper side's where both have it
    SliceCategory category = SliceCategory::Compute;
    Time before, after;                 ///< sums over the slices below
    std::vector<Time> upper, lower;     ///< durations, in the order of the trace

    Time change() const { return after - before; }
};

struct Deltas {
    std::vector<DeltaRow> rows;         ///< the greatest change first, whichever way
    std::size_t joinedByTask = 0;       ///< slices of the lower side that were found by their task id
    std::vector<std::int64_t> ranks;    ///< that both have; where there is none, the first of each side are compared
};

/// Of what starts in the given range of each side, on ranks that belong together (traces/analysis/pairing.h, as for `ringside trace
/// diff`). Waiting and markers do not count. Task ids join traces of one schedule, names all others.
/// `layersTogether`: names that differ in numbers only ("all_gather unit 3") are one row ("all_gather unit #"). O(slices log slices).
Deltas deltasOf(const Trace& upper, const TimeRange& upperRange, const Trace& lower, const TimeRange& lowerRange, bool layersTogether = false);

/// The step with that place among the rank's steps; the whole trace where there is none.
TimeRange stepRange(const Trace& trace, std::int64_t rank, std::size_t index);

/// Counts per bin over the same bins for both sides.
struct PairedHistogram {
    Time least, most;
    std::vector<std::int64_t> upper, lower;
};
/// REQUIRES: bins ≥ 1.
PairedHistogram pairedHistogram(const DeltaRow& row, std::size_t bins);

}  // namespace ringside::gui
