#include "traces/analysis/steps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "traces/analysis/enclosing.h"

namespace ringside {
namespace {

constexpr std::string_view kStepMark = "ProfilerStep#";

std::optional<TracePhase> phaseOfName(std::string_view name) {
    if (name.starts_with("forward") || name == "DistributedDataParallel.forward") return TracePhase::Forward;
    if (name.starts_with("backward") || name.starts_with("autograd::engine::evaluate_function")) return TracePhase::Backward;
    if (name.starts_with("optimizer") || name.starts_with("Optimizer.step")) return TracePhase::Optimizer;
    return std::nullopt;
}

}  // namespace

std::string_view nameOf(StepSource source) {
    switch (source) {
        case StepSource::Marks: return "marks of the profiler";
        case StepSource::Optimizer: return "ends of the optimizer's steps";
        case StepSource::Whole: return "the whole trace";
    }
    return "?";
}

std::string_view nameOf(TracePhase phase) {
    switch (phase) {
        case TracePhase::Forward: return "forward";
        case TracePhase::Backward: return "backward";
        case TracePhase::Optimizer: return "optimizer";
    }
    return "?";
}

std::vector<std::int64_t> ranksOf(const Trace& trace) {
    std::set<std::int64_t> ranks;
    for (const Track& track : trace.tracks) ranks.insert(track.rank);
    return {ranks.begin(), ranks.end()};
}

Steps stepsOf(const Trace& trace, std::int64_t rank) {
    std::vector<bool> isMark(trace.names.size()), isOptimizer(trace.names.size());
    for (std::size_t n = 0; n < trace.names.size(); ++n) {
        isMark[n] = trace.names[n].starts_with(kStepMark);
        isOptimizer[n] = trace.names[n].starts_with("Optimizer.step");
    }
    std::map<std::int64_t, Step> onHost, onDevice;
    std::vector<Time> optimizerEnds;
    Time first = Time::max(), last = Time::fromPicoseconds(-Time::max().picoseconds());
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        if (trace.tracks[t].rank != rank) continue;
        const bool device = trace.tracks[t].kind != TrackKind::Host;
        for (std::size_t i = trace.firstSlice(t), end = trace.firstSlice(t + 1); i < end; ++i) {
            const Time begin = trace.start[i], over = begin + trace.duration[i];
            if (trace.category[i] != SliceCategory::Marker) {
                first = std::min(first, begin);
                last = std::max(last, over);
                continue;
            }
            if (isMark[trace.name[i]]) {
                std::int64_t number = 0;
                const std::string_view digits = std::string_view(trace.names[trace.name[i]]).substr(kStepMark.size());
                std::from_chars(digits.data(), digits.data() + digits.size(), number);
                auto [it, isNew] = (device ? onDevice : onHost).try_emplace(number, Step{number, begin, over});
                it->second.begin = std::min(it->second.begin, begin);
                it->second.end = std::max(it->second.end, over);
            } else if (isOptimizer[trace.name[i]]) {
                optimizerEnds.push_back(over);
            }
        }
    }
    Steps result;
    if (!onHost.empty() || !onDevice.empty()) {
        result.source = StepSource::Marks;
        for (const auto& [number, step] : onHost.empty() ? onDevice : onHost) result.steps.push_back(step);
        std::stable_sort(result.steps.begin(), result.steps.end(), [](const Step& a, const Step& b) { return a.begin < b.begin; });
        return result;
    }
    if (first > last) return result;
    if (optimizerEnds.size() > 1) {
        result.source = StepSource::Optimizer;
        std::sort(optimizerEnds.begin(), optimizerEnds.end());
        Time begin = first;
        for (const Time end : optimizerEnds) {
            if (end <= begin) continue;
            result.steps.push_back({static_cast<std::int64_t>(result.steps.size()), begin, end});
            begin = end;
        }
        return result;
    }
    result.steps.push_back({0, first, last});
    return result;
}

std::vector<PhaseSpan> phasesOf(const Trace& trace, std::int64_t rank, Time begin, Time end) {
    std::vector<std::optional<TracePhase>> ofName(trace.names.size());
    for (std::size_t n = 0; n < trace.names.size(); ++n) ofName[n] = phaseOfName(trace.names[n]);
    struct Span {
        Time begin = Time::max(), end;
    };
    std::array<Span, 3> onHost, onDevice;
    const auto add = [&](std::array<Span, 3>& spans, TracePhase phase, std::size_t i) {
        Span& span = spans[static_cast<std::size_t>(phase)];
        span.begin = std::min(span.begin, trace.start[i]);
        span.end = std::max(span.end, trace.start[i] + trace.duration[i]);
    };
    // A kernel of PyTorch's has no phase in its name: that of the operator around its launch counts.
    std::vector<std::uint32_t> launcher(trace.size(), kNoSlice);
    for (const Flow& flow : trace.flows)
        if (flow.kind == Flow::Kind::Launch) launcher[flow.to] = flow.from;
    std::map<std::uint32_t, std::vector<std::uint32_t>> parents;
    const auto phaseAround = [&](std::uint32_t slice) -> std::optional<TracePhase> {
        const std::uint32_t t = trace.track[slice];
        auto [it, isNew] = parents.try_emplace(t);
        if (isNew) it->second = parentSlices(trace, t);
        const std::size_t first = trace.firstSlice(t);
        for (std::uint32_t i = slice; i != kNoSlice; i = it->second[i - first])
            if (const auto phase = ofName[trace.name[i]]) return phase;
        return std::nullopt;
    };
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        if (trace.tracks[t].rank != rank) continue;
        const bool device = trace.tracks[t].kind != TrackKind::Host;
        const auto from = trace.start.begin() + static_cast<std::ptrdiff_t>(trace.firstSlice(t)), to = trace.start.begin() + static_cast<std::ptrdiff_t>(trace.firstSlice(t + 1));
        for (auto it = std::lower_bound(from, to, begin); it != to && *it < end; ++it) {
            const auto i = static_cast<std::uint32_t>(it - trace.start.begin());
            if (const auto own = ofName[trace.name[i]]) add(device ? onDevice : onHost, *own, i);
            else if (device && trace.category[i] == SliceCategory::Optimizer) add(onDevice, TracePhase::Optimizer, i);
            else if (device && trace.category[i] == SliceCategory::Compute && launcher[i] != kNoSlice)
                if (const auto phase = phaseAround(launcher[i])) add(onDevice, *phase, i);
        }
    }
    std::vector<PhaseSpan> phases;
    for (std::size_t p = 0; p < 3; ++p) {
        const Span& span = onDevice[p].begin < Time::max() ? onDevice[p] : onHost[p];
        if (span.begin < Time::max()) phases.push_back({static_cast<TracePhase>(p), span.begin, span.end});
    }
    return phases;
}

}  // namespace ringside
