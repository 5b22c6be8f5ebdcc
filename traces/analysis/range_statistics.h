// Range statistics: what happened in a part of a trace, on all tracks or some: the range panel and `trace inspect`.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "traces/analysis/breakdown.h"
#include "traces/trace.h"

namespace ringside {

/// All slices of one name and category that are not wholly outside the range.
struct NameStatistics {
    std::uint32_t name = 0;  ///< index into Trace::names
    SliceCategory category = SliceCategory::Host;
    std::int64_t count = 0;
    Time total;              ///< of the parts within the range
    Time self;               ///< the same without what nests in them on their track
    Time mean, least, p50, p90, p99, most;  ///< of the whole slices, uncut
};

struct RangeStatistics {
    Time begin, end;
    std::vector<std::pair<std::int64_t, Breakdown>> ranks;  ///< by rank: compute, hidden and exposed communication, host, idle
    std::vector<NameStatistics> names;  ///< the greatest self time first
    std::int64_t slices = 0;
};

/// Over [begin, end) of `tracks` (indices into Trace::tracks; none: all). O(slices of the tracks). REQUIRES: begin ≤ end.
RangeStatistics rangeStatistics(const Trace& trace, Time begin, Time end, std::span<const std::uint32_t> tracks = {});

/// The value below which `percent` of the sorted values lie (nearest rank). REQUIRES: values are sorted and not empty.
Time percentile(std::span<const Time> values, double percent);

/// How often slices of one name took how long.
struct Histogram {
    Time least, most;
    bool logarithmic = false;
    std::vector<std::int64_t> counts;  ///< by bin
    std::int64_t slices = 0;
    Time mean, p50, p90, p99;
    /// Where bin i begins; i = counts.size() is the end of the last.
    Time edge(std::size_t i) const;
};

/// Of the slices with one of those names which start in [begin, end). No counts if there are none. O(slices). REQUIRES: bins ≥ 1.
Histogram durationHistogram(const Trace& trace, std::span<const std::uint32_t> names, Time begin, Time end, std::size_t bins = 40, bool logarithmic = false);

}  // namespace ringside
