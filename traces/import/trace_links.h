// Trace links: what joins the slices of a read trace: launches by correlation, flow events, what announces a collective, and
// what an optimizer's range makes of the kernels launched in it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace ringside {

/// A runtime call or a kernel, by Kineto's `correlation`.
struct Correlated {
    std::int64_t correlation = 0;
    std::uint32_t slice = 0;
};

/// One end of a flow as read.
struct FlowEnd {
    std::uint64_t key = 0;      ///< of its flow: category and id
    Time at;
    std::uint32_t track = 0;
    enum class Role : std::uint8_t { Start, Step, End } role = Role::Start;
    bool toNext = false;        ///< an end without `bp: e` goes to the next slice to start
    Flow::Kind kind = Flow::Kind::Dependency;
};

struct FlowCounts {
    std::int64_t withoutStart = 0;  ///< ends whose flow never started
    std::int64_t withoutSlice = 0;  ///< ends at which no slice ran
};

/// Adds a Launch flow from each call to what it launched. Both lists come in any order and are sorted. O(n log n).
void linkLaunches(Trace& trace, std::vector<Correlated>& calls, std::vector<Correlated>& launched);

/// Adds the flows of `ends`, except launches of slices that have one already. O(n log n + slices).
FlowCounts linkFlows(Trace& trace, std::vector<FlowEnd> ends);

/// For each slice what launched it, or kNoSlice. O(slices + flows).
std::vector<std::uint32_t> launchersOf(const Trace& trace);

/// Communication kernels of which only the name is known take the details of the host slice (record_param_comms) around their
/// launch. `vague` are such slices; returns how many stay so.
std::int64_t adoptAnnouncedCollectives(Trace& trace, const std::vector<std::uint32_t>& vague);

/// Compute slices that were launched within, or run on the track of, a Marker slice of an optimizer's step become Optimizer.
void markOptimizer(Trace& trace);

}  // namespace ringside
