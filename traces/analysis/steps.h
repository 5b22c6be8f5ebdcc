// Steps and phases: which parts of a trace are training steps, and of a step forward, backward and optimizer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/trace.h"

namespace ringside {

struct Step {
    std::int64_t number = 0;  ///< the N of ProfilerStep#N; counted from 0 where nobody said
    Time begin, end;
    Time length() const { return end - begin; }
    bool operator==(const Step&) const = default;
};

/// How steps were found; say so where they were not marked.
enum class StepSource : std::uint8_t {
    Marks,      ///< ProfilerStep#N
    Optimizer,  ///< each ends with an Optimizer.step
    Whole,      ///< the whole trace is one
};
std::string_view nameOf(StepSource source);  ///< "marks of the profiler", …

struct Steps {
    std::vector<Step> steps;  ///< by begin; at least one if the rank has a slice
    StepSource source = StepSource::Whole;
};

/// Of one rank. Marks on the host count before those on the device. O(slices of the rank).
Steps stepsOf(const Trace& trace, std::int64_t rank);

enum class TracePhase : std::uint8_t { Forward, Backward, Optimizer };
std::string_view nameOf(TracePhase phase);  ///< "forward", …

struct PhaseSpan {
    TracePhase phase = TracePhase::Forward;
    Time begin, end;  ///< from the first to the last thing of the phase; phases may overlap
};

/// The phases of what starts in [begin, end) on `rank`, on the device where it has one: by our names ("forward …"), by
/// PyTorch's ranges and operators, and kernels by what launched them. Phases that are not seen are left out. O(slices of the rank + flows).
std::vector<PhaseSpan> phasesOf(const Trace& trace, std::int64_t rank, Time begin, Time end);

/// The ranks that have tracks, in order.
std::vector<std::int64_t> ranksOf(const Trace& trace);

}  // namespace ringside
