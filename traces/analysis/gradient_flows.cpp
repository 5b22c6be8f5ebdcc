#include "traces/analysis/gradient_flows.h"

#include <cstdint>
#include <set>
#include <utility>

namespace ringside {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

/// The kernel that made what `copy` copies: a bucket may take several gradients one after the other, but not many.
std::uint32_t gradientBefore(const Trace& trace, std::uint32_t copy) {
    constexpr std::uint32_t kFarthest = 8;
    const auto first = static_cast<std::uint32_t>(trace.firstSlice(trace.track[copy]));
    for (std::uint32_t back = 1; back <= kFarthest && copy >= first + back; ++back)
        if (trace.names[trace.name[copy - back]].starts_with("backward")) return copy - back;
    return copy > first ? copy - 1 : kNone;
}

}  // namespace

std::vector<Flow> gradientFlows(const Trace& trace) {
    const auto communicates = [&](std::uint32_t slice) { return trace.category[slice] == SliceCategory::Communication; };
    const auto computes = [&](std::uint32_t slice) { return trace.tracks[trace.track[slice]].kind == TrackKind::Compute; };
    std::vector<bool> waits(trace.size(), false), optimizes(trace.size(), false);  // has a flow into it; has one to the optimizer
    bool any = false;
    for (const Flow& flow : trace.flows) {
        if (flow.kind != Flow::Kind::Dependency) continue;
        any = waits[flow.to] = true;
        if (trace.category[flow.to] == SliceCategory::Optimizer) optimizes[flow.from] = true;
    }
    if (!any) return {};
    // The optimizer's slice that follows each slice on its track.
    std::vector<std::uint32_t> optimizer(trace.size(), kNone);
    for (auto i = static_cast<std::uint32_t>(trace.size()); i-- > 1;)
        if (trace.track[i] == trace.track[i - 1]) optimizer[i - 1] = trace.category[i] == SliceCategory::Optimizer ? i : optimizer[i];
    std::vector<Flow> flows;
    std::set<std::pair<std::uint32_t, std::uint32_t>> known;
    const auto add = [&](std::uint32_t from, std::uint32_t to) {
        if (from == kNone || to == kNone || !known.emplace(from, to).second) return;
        if (trace.start[from] + trace.duration[from] <= trace.start[to]) flows.push_back({from, to, Flow::Kind::Dependency});
    };
    for (const Flow& flow : trace.flows) {
        if (flow.kind != Flow::Kind::Dependency) continue;
        if (communicates(flow.to) && !communicates(flow.from) && computes(flow.from) && !waits[flow.from]) add(gradientBefore(trace, flow.from), flow.from);
        if (communicates(flow.from) && computes(flow.to) && trace.category[flow.to] != SliceCategory::Optimizer && !optimizes[flow.to]) add(flow.to, optimizer[flow.to]);
    }
    return flows;
}

}  // namespace ringside
