#include "traces/import/trace_links.h"

#include <algorithm>
#include <map>

#include "traces/analysis/enclosing.h"
#include "traces/analysis/interval.h"
#include "traces/import/event_kinds.h"

namespace ringside {

void linkLaunches(Trace& trace, std::vector<Correlated>& calls, std::vector<Correlated>& launched) {
    const auto before = [](const Correlated& a, const Correlated& b) { return a.correlation != b.correlation ? a.correlation < b.correlation : a.slice < b.slice; };
    std::sort(calls.begin(), calls.end(), before);
    std::sort(launched.begin(), launched.end(), before);
    std::size_t c = 0;
    for (const Correlated& target : launched) {
        while (c < calls.size() && calls[c].correlation < target.correlation) ++c;
        if (c < calls.size() && calls[c].correlation == target.correlation) trace.flows.push_back({calls[c].slice, target.slice, Flow::Kind::Launch});
    }
}

std::vector<std::uint32_t> launchersOf(const Trace& trace) {
    std::vector<std::uint32_t> launchers(trace.size(), kNoSlice);
    for (const Flow& flow : trace.flows)
        if (flow.kind == Flow::Kind::Launch) launchers[flow.to] = flow.from;
    return launchers;
}

FlowCounts linkFlows(Trace& trace, std::vector<FlowEnd> ends) {
    FlowCounts counts;
    std::stable_sort(ends.begin(), ends.end(), [](const FlowEnd& a, const FlowEnd& b) {
        if (a.key != b.key) return a.key < b.key;
        return a.at != b.at ? a.at < b.at : a.role < b.role;
    });
    std::vector<TrackPoint> points;
    points.reserve(ends.size());
    for (const FlowEnd& end : ends) points.push_back({end.track, end.at});
    std::vector<std::uint32_t> slices = enclosingSlices(trace, points);
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (!ends[i].toNext) continue;
        const auto first = trace.start.begin() + static_cast<std::ptrdiff_t>(trace.firstSlice(ends[i].track));
        const auto last = trace.start.begin() + static_cast<std::ptrdiff_t>(trace.firstSlice(ends[i].track + 1));
        const auto next = std::lower_bound(first, last, ends[i].at);
        if (next != last) slices[i] = static_cast<std::uint32_t>(next - trace.start.begin());
    }
    const std::vector<std::uint32_t> launchers = launchersOf(trace);
    for (std::size_t begin = 0, end = 0; begin < ends.size(); begin = end) {
        while (end < ends.size() && ends[end].key == ends[begin].key) ++end;
        // A kernel may seem to begin before its launch, as the two are of different clocks: a lone start goes first.
        const auto isStart = [&](std::size_t i) { return ends[i].role == FlowEnd::Role::Start; };
        std::size_t starts = 0, theStart = begin;
        for (std::size_t i = begin; i < end; ++i)
            if (isStart(i)) {
                ++starts;
                theStart = i;
            }
        std::uint32_t from = kNoSlice;
        bool started = starts == 1;
        if (started) from = slices[theStart];
        if (started && from == kNoSlice) ++counts.withoutSlice;
        for (std::size_t i = begin; i < end; ++i) {
            if (isStart(i)) {
                if (starts == 1) continue;
                started = true;
                from = slices[i];
                if (from == kNoSlice) ++counts.withoutSlice;
                continue;
            }
            if (!started) {
                ++counts.withoutStart;
                continue;
            }
            const std::uint32_t to = slices[i];
            if (to == kNoSlice) {
                ++counts.withoutSlice;
                continue;
            }
            if (from != kNoSlice && from != to) {
                const bool isLaunch = ends[i].kind == Flow::Kind::Launch;
                if (!isLaunch || launchers[to] == kNoSlice) trace.flows.push_back({from, to, ends[i].kind});
            }
            if (ends[i].role == FlowEnd::Role::Step) from = to;
        }
    }
    return counts;
}

std::int64_t adoptAnnouncedCollectives(Trace& trace, const std::vector<std::uint32_t>& vague) {
    if (vague.empty()) return 0;
    const std::vector<std::uint32_t> launchers = launchersOf(trace);
    std::map<std::uint32_t, std::vector<std::uint32_t>> parentsByTrack;
    std::int64_t left = 0;
    for (const std::uint32_t slice : vague) {
        std::int32_t announced = -1;
        if (const std::uint32_t call = launchers[slice]; call != kNoSlice) {
            const std::uint32_t t = trace.track[call];
            auto [it, isNew] = parentsByTrack.try_emplace(t);
            if (isNew) it->second = parentSlices(trace, t);
            const std::size_t first = trace.firstSlice(t);
            for (std::uint32_t i = call; i != kNoSlice && announced < 0; i = it->second[i - first]) announced = trace.collective[i];
        }
        if (announced < 0) {
            ++left;
            continue;
        }
        // What only the kernel's name tells stays.
        CollectiveDetails& own = trace.collectives[static_cast<std::size_t>(trace.collective[slice])];
        const std::string algorithm = own.algorithm, protocol = own.protocol;
        own = trace.collectives[static_cast<std::size_t>(announced)];
        if (own.algorithm.empty()) own.algorithm = algorithm;
        if (own.protocol.empty()) own.protocol = protocol;
    }
    return left;
}

void markOptimizer(Trace& trace) {
    std::map<std::uint32_t, std::vector<Interval>> ranges;  // by track
    std::vector<bool> isRange(trace.names.size());
    for (std::size_t n = 0; n < trace.names.size(); ++n) isRange[n] = isOptimizerRange(trace.names[n]);
    for (std::size_t i = 0; i < trace.size(); ++i)
        if (trace.category[i] == SliceCategory::Marker && isRange[trace.name[i]]) ranges[trace.track[i]].push_back({trace.start[i], trace.start[i] + trace.duration[i]});
    if (ranges.empty()) return;
    for (auto& [track, intervals] : ranges) intervals = unionOf(std::move(intervals));
    const auto inRange = [&](std::uint32_t slice) {
        const auto it = ranges.find(trace.track[slice]);
        if (it == ranges.end()) return false;
        const Time at = trace.start[slice];
        const auto after = std::upper_bound(it->second.begin(), it->second.end(), at, [](Time t, const Interval& interval) { return t < interval.begin; });
        return after != it->second.begin() && at < (after - 1)->end;
    };
    const std::vector<std::uint32_t> launchers = launchersOf(trace);
    for (std::uint32_t i = 0; i < trace.size(); ++i)
        if (trace.category[i] == SliceCategory::Compute && (inRange(i) || (launchers[i] != kNoSlice && inRange(launchers[i])))) trace.category[i] = SliceCategory::Optimizer;
}

}  // namespace ringside
