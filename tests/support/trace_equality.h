// A trace as text, by what it says and not by how its tables are numbered: two traces are the same if their texts are.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "traces/trace.h"

namespace ringside {

inline std::string describe(const Trace& trace) {
    std::string out = fmt::format("{} of {}\n", trace.title, trace.worldSize);
    for (const Track& track : trace.tracks) out += fmt::format("track {} {} {} {}\n", track.rank, track.stream, nameOf(track.kind), track.name);
    std::vector<std::int32_t> seen;  // collectives by the order in which slices name them
    for (std::size_t i = 0; i < trace.size(); ++i) {
        out += fmt::format("slice {} {} {} {} {} {}", trace.track[i], trace.start[i].picoseconds(), trace.duration[i].picoseconds(), nameOf(trace.category[i]), trace.names[trace.name[i]], trace.task[i]);
        if (trace.collective[i] >= 0) {
            const auto it = std::find(seen.begin(), seen.end(), trace.collective[i]);
            out += fmt::format(" collective {}", it - seen.begin());
            if (it == seen.end()) {
                const CollectiveDetails& d = trace.collectives[static_cast<std::size_t>(trace.collective[i])];
                out += fmt::format(" {} {} {} {} {} {} {} {} {} [{}]", d.op, d.elements, d.dtype, d.bytes, d.groupSize, d.sequence, d.algorithm, d.protocol, d.group, fmt::join(d.ranks, " "));
                seen.push_back(trace.collective[i]);
            }
        }
        out += '\n';
    }
    std::vector<std::string> flows;
    for (const Flow& flow : trace.flows) flows.push_back(fmt::format("flow {} {} {}\n", flow.from, flow.to, static_cast<int>(flow.kind)));
    std::sort(flows.begin(), flows.end());
    for (const std::string& flow : flows) out += flow;
    for (const CounterSeries& counter : trace.counters) {
        out += fmt::format("counter {} {} {} [{}]", counter.rank, counter.name, counter.limit, fmt::join(counter.series, ", "));
        for (const Time at : counter.at) out += fmt::format(" {}", at.picoseconds());
        out += fmt::format(" = {}\n", fmt::join(counter.values, " "));
    }
    for (const Instant& instant : trace.instants) out += fmt::format("instant {} {} {}\n", instant.track, instant.at.picoseconds(), trace.names[instant.name]);
    for (const Allocation& a : trace.allocations)
        out += fmt::format("allocation {} {} {} {} {} {}\n", a.rank, a.begin.picoseconds(), a.end.picoseconds(), a.bytes, trace.names[a.name], trace.names[a.category]);
    return out;
}

}  // namespace ringside
