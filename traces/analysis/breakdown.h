// Breakdown: where the time of a step went on one rank (docs/models/breakdown.md).
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/interval.h"
#include "traces/trace.h"

namespace ringside {

/// compute + optimizer + communicationExposed + host + idle = step, exactly. communicationHidden stands beside them: it is
/// time in which communication ran under compute or optimizer, and is already counted there.
struct Breakdown {
    Time step;
    Time compute;               ///< Compute slices, or Copy slices on compute tracks, run; no optimizer kernel does
    Time optimizer;             ///< an Optimizer slice runs
    Time communicationHidden;   ///< communication runs, compute or optimizer too
    Time communicationExposed;  ///< communication runs, neither compute nor optimizer does
    Time host;                  ///< nothing runs on the device, a Host slice is active: host-bound
    Time idle;                  ///< the rest
    Time copyExposed;           ///< the part of `idle` in which only a copy track worked

    Time communication() const { return communicationHidden + communicationExposed; }
    /// Hidden part of the communication in percent, as HTA's "comp_comm_overlap"; 100 if there is none to hide.
    double overlapPercent() const;

    bool operator==(const Breakdown&) const = default;
};

/// What ran when on one rank, by what it counts as. Slices of a track may be added in any order; in time order it is fastest.
class RankActivity {
public:
    void add(TrackKind track, SliceCategory category, Time begin, Time end);
    /// Over [begin, end). REQUIRES: begin ≤ end.
    Breakdown breakdown(Time begin, Time end) const;

private:
    std::vector<Interval> compute_, optimizer_, communication_, copy_, host_;
};

/// Over [0, step) of `rank`; slices are cut at its borders. O(slices of the rank), as its tracks are sorted.
Breakdown breakdownOf(const Trace& trace, std::int64_t rank, Time step);
/// Over [begin, end). REQUIRES: begin ≤ end.
Breakdown breakdownOf(const Trace& trace, std::int64_t rank, Time begin, Time end);

}  // namespace ringside
