#include "gui/timeline/flow_index.h"

#include <algorithm>

#include "gui/timeline/slice_index.h"
#include "traces/analysis/steps.h"

namespace ringside::gui {

FlowIndex::FlowIndex(const Trace& trace) {
    if (trace.flows.empty()) return;
    const std::size_t slices = trace.size();
    intoFirst_.assign(slices + 1, 0);
    outFirst_.assign(slices + 1, 0);
    for (const Flow& flow : trace.flows) {
        ++intoFirst_[flow.to + 1];
        ++outFirst_[flow.from + 1];
    }
    for (std::size_t i = 0; i < slices; ++i) {
        intoFirst_[i + 1] += intoFirst_[i];
        outFirst_[i + 1] += outFirst_[i];
    }
    into_.resize(trace.flows.size());
    out_.resize(trace.flows.size());
    std::vector<std::uint32_t> intoNext = intoFirst_, outNext = outFirst_;
    for (std::uint32_t f = 0; f < trace.flows.size(); ++f) {
        into_[intoNext[trace.flows[f].to]++] = f;
        out_[outNext[trace.flows[f].from]++] = f;
    }
}

namespace {

/// Dependencies say more than launches.
int weightOf(Flow::Kind kind) { return kind == Flow::Kind::Launch ? 0 : 1; }

}  // namespace

std::uint32_t nextAlongFlow(const Trace& trace, const FlowIndex& flows, std::uint32_t slice) {
    std::uint32_t best = kNoSlice;
    int weight = -1;
    for (const std::uint32_t f : flows.outOf(slice)) {
        const Flow& flow = trace.flows[f];
        const int w = weightOf(flow.kind);
        if (w > weight || (w == weight && trace.start[flow.to] < trace.start[best])) best = flow.to, weight = w;
    }
    return best;
}

std::uint32_t previousAlongFlow(const Trace& trace, const FlowIndex& flows, std::uint32_t slice) {
    std::uint32_t best = kNoSlice;
    const auto end = [&](std::uint32_t s) { return trace.start[s] + trace.duration[s]; };
    int weight = -1;
    for (const std::uint32_t f : flows.into(slice)) {
        const Flow& flow = trace.flows[f];
        const int w = weightOf(flow.kind);
        if (w > weight || (w == weight && end(flow.from) > end(best))) best = flow.from, weight = w;
    }
    return best;
}

std::vector<Phase> stepsAndPhases(const Trace& trace) {
    std::vector<Phase> found;
    const std::vector<std::int64_t> ranks = ranksOf(trace);
    if (ranks.empty()) return found;
    const Steps steps = stepsOf(trace, ranks.front());
    for (const Step& step : steps.steps) {
        if (steps.source != StepSource::Whole) found.push_back({{step.begin, step.end}, "step " + std::to_string(step.number), true});
        if (steps.steps.size() > 16) continue;
        for (const PhaseSpan& phase : phasesOf(trace, ranks.front(), step.begin, step.end)) found.push_back({{phase.begin, phase.end}, std::string(nameOf(phase.phase)), false});
    }
    std::stable_sort(found.begin(), found.end(), [](const Phase& a, const Phase& b) { return a.range.begin < b.range.begin || (a.range.begin == b.range.begin && a.step && !b.step); });
    return found;
}

}  // namespace ringside::gui
