// Traces in words, as JSON and as CSV: what `ringside trace inspect` and `trace diff` print.
#pragma once

#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "traces/analysis/breakdown.h"
#include "traces/analysis/collectives.h"
#include "traces/analysis/diff.h"
#include "traces/analysis/range_statistics.h"
#include "traces/analysis/steps.h"
#include "traces/analysis/trace_path.h"
#include "traces/import/read_trace.h"

namespace ringside {

struct StepReport {
    std::int64_t rank = 0;
    Step step;
    Breakdown breakdown;
};

/// Collectives of one operation, size and group together.
struct CollectiveSummary {
    std::string op, group, algorithm, protocol;
    Bytes bytes = 0;
    std::int64_t groupSize = 0, count = 0, complete = 0;
    double waitSeconds = 0;      ///< mean over slices
    double transferSeconds = 0;  ///< median
    double algbw = 0, busbw = 0; ///< at the median transfer
};

struct TraceReport {
    const ImportedTrace* imported = nullptr;
    std::vector<StepReport> steps;  ///< by rank, then time
    StepSource stepSource = StepSource::Whole;
    std::vector<CollectiveSummary> collectives;  ///< most time first
    std::vector<NameStatistics> names;           ///< on the device if there is one; most self time first
    TracePath path;
};

/// Of the whole trace. `imported` must outlive the report.
TraceReport reportOf(const ImportedTrace& imported);

std::string inspectText(const TraceReport& report);
Json inspectJson(const TraceReport& report);
/// One row per rank and step.
std::string inspectCsv(const TraceReport& report);

std::string diffText(const TraceDiff& diff, const std::string& a, const std::string& b);
Json diffJson(const TraceDiff& diff, const std::string& a, const std::string& b);
/// One row per name.
std::string diffCsv(const TraceDiff& diff);

}  // namespace ringside
