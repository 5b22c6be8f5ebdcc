// FlowIndex: which slices a slice follows from and leads to, and the steps and phases of a trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gui/timeline/time_range.h"
#include "traces/trace.h"

namespace ringside::gui {

class FlowIndex {
public:
    FlowIndex() = default;
    /// O(slices + flows).
    explicit FlowIndex(const Trace& trace);

    /// Into Trace::flows.
    std::span<const std::uint32_t> into(std::uint32_t slice) const { return of(slice, intoFirst_, into_); }
    std::span<const std::uint32_t> outOf(std::uint32_t slice) const { return of(slice, outFirst_, out_); }

private:
    static std::span<const std::uint32_t> of(std::uint32_t slice, const std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& flows) {
        if (first.empty()) return {};
        return std::span(flows).subspan(first[slice], first[slice + 1] - first[slice]);
    }
    std::vector<std::uint32_t> intoFirst_, into_, outFirst_, out_;
};

/// The slice that `]` goes to: along dependencies before launches, to the one that starts first. kNoSlice at an end.
std::uint32_t nextAlongFlow(const Trace& trace, const FlowIndex& flows, std::uint32_t slice);
/// The slice that `[` goes to: of those it follows from, the one that ended last. kNoSlice at a beginning.
std::uint32_t previousAlongFlow(const Trace& trace, const FlowIndex& flows, std::uint32_t slice);

/// A named stretch of the whole trace: a step, or a phase of one.
struct Phase {
    TimeRange range;
    std::string name;
    bool step = false;
};

/// Steps and their phases as the lowest rank has them, by start, a step before its phases. One that is the whole trace for want of marks
/// is left out; so are phases where there are more than sixteen steps, as nobody could read them.
std::vector<Phase> stepsAndPhases(const Trace& trace);

}  // namespace ringside::gui
