#include "gui/topology/traffic.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

#include "traces/analysis/collectives.h"

namespace ringside::gui {
namespace {

/// The part of [start, end) that lies in [from, to).
double shareInside(Time start, Time end, Time from, Time to) {
    const Time length = end - start;
    if (length <= Time()) return start >= from && start < to ? 1 : 0;
    const Time inside = std::min(end, to) - std::max(start, from);
    return inside > Time() ? inside.seconds() / length.seconds() : 0;
}

TrafficPattern patternOf(std::string_view op) {
    if (op.find("all_to_all") != std::string_view::npos || op.find("alltoall") != std::string_view::npos) return TrafficPattern::AllToAll;
    if (op == "send" || op == "recv" || op == "send_recv" || op == "SendRecv") return TrafficPattern::Send;
    return TrafficPattern::Ring;
}

/// What each rank puts on the wire for every byte of the buffer: nccl-tests' factor; a chain (broadcast, reduce) has one rank that
/// only receives.
double sentPerByte(std::string_view op, std::int64_t n) {
    if (n < 2) return 0;
    const double factor = busbwFactor(op, n);
    const bool chain = op.find("broadcast") != std::string_view::npos || op == "reduce";
    return chain ? factor * static_cast<double>(n - 1) / static_cast<double>(n) : factor;
}

void addRoute(std::vector<double>& bytes, const Topology& topology, std::int64_t from, std::int64_t to, double amount) {
    for (const LinkId id : route(topology, from, to).links) bytes[id] += amount;
}

}  // namespace

Traffic trafficOf(const Prediction& prediction, Time begin, Time end) {
    const Schedule& schedule = *prediction.schedule;
    Traffic traffic;
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const RankClass& rankClass = schedule.classes[c];
        const RankProgram& program = schedule.programs[rankClass.program];
        // What all groups of an axis did alike is summed first.
        std::map<std::tuple<std::uint32_t, TrafficPattern, std::int32_t>, double> sums;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            const TaskTimes& times = prediction.timeline.classes[c][t];
            if (task.kind == TaskKind::Push || task.kind == TaskKind::Pull) {
                traffic.unplaced += shareInside(times.start, times.end, begin, end) > 0 ? 1 : 0;
                continue;
            }
            if (task.kind != TaskKind::Collective) continue;
            const CollectiveWork& work = schedule.collectives[task.work];
            const double sent = static_cast<double>(work.bytes()) * sentPerByte(nameOf(work.op), schedule.axes[work.axis].size) * shareInside(times.start, times.end, begin, end);
            if (sent > 0) sums[{work.axis, patternOf(nameOf(work.op)), work.sender}] += sent;
        }
        for (const auto& [key, sent] : sums) {
            const auto& [axisIndex, pattern, sender] = key;
            const CommAxis& axis = schedule.axes[axisIndex];
            for (std::int64_t i = 0; i < rankClass.ranks.count; ++i) {
                const std::int64_t rank = rankClass.ranks.at(i);
                const std::int64_t counts = pattern == TrafficPattern::Send ? std::max<std::int32_t>(sender, 0) : 0;  // the member that speaks for its group
                if (axis.positionOf(rank) != counts) continue;
                const RankSet members = axis.groupOf(rank);
                GroupTraffic group{pattern, {}, sent};
                for (std::int64_t m = 0; m < members.count; ++m) group.ranks.push_back(members.at(m));
                if (pattern == TrafficPattern::Send) std::rotate(group.ranks.begin(), group.ranks.begin() + counts, group.ranks.end());
                traffic.groups.push_back(std::move(group));
            }
        }
    }
    return traffic;
}

Traffic trafficOf(const Trace& trace, Time begin, Time end) {
    std::set<std::int64_t> present;
    for (const Track& track : trace.tracks)
        if (track.kind == TrackKind::Communication) present.insert(track.rank);
    std::vector<std::int64_t> world(static_cast<std::size_t>(std::max<std::int64_t>(trace.worldSize, 1)));
    std::iota(world.begin(), world.end(), 0);

    Traffic traffic;
    std::map<std::pair<TrafficPattern, std::vector<std::int64_t>>, double> sums;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        if (trace.category[i] != SliceCategory::Communication) continue;
        const double share = shareInside(trace.start[i], trace.start[i] + trace.duration[i], begin, end);
        if (share <= 0) continue;
        const std::int64_t rank = trace.tracks[trace.track[i]].rank;
        const CollectiveDetails* details = trace.collective[i] < 0 ? nullptr : &trace.collectives[static_cast<std::size_t>(trace.collective[i])];
        const bool everybody = details && details->ranks.empty() && (details->groupSize == trace.worldSize || details->groupSize == 0);
        if (!details || details->bytes <= 0 || (details->ranks.empty() && !everybody)) {
            ++traffic.unplaced;
            continue;
        }
        const std::vector<std::int64_t>& ranks = everybody ? world : details->ranks;
        // The first rank of the group that was recorded speaks for all of it.
        const auto speaker = std::find_if(ranks.begin(), ranks.end(), [&](std::int64_t r) { return present.contains(r); });
        if (speaker == ranks.end() || *speaker != rank) continue;
        sums[{patternOf(details->op), ranks}] += static_cast<double>(details->bytes) * sentPerByte(details->op, static_cast<std::int64_t>(ranks.size())) * share;
    }
    for (const auto& [key, sent] : sums)
        if (sent > 0) traffic.groups.push_back({key.first, key.second, sent});
    return traffic;
}

std::vector<std::vector<std::int64_t>> ringOrders(const Cluster& cluster, std::span<const std::int64_t> ranks) {
    std::vector<std::vector<std::int64_t>> nodes;  // the group's ranks, node by node
    std::int64_t last = -1;
    for (const std::int64_t rank : ranks) {
        const std::int64_t node = cluster.nodeOf(rank);
        if (nodes.empty() || node != last) nodes.emplace_back();
        nodes.back().push_back(rank);
        last = node;
    }
    if (nodes.size() < 2) return {std::vector<std::int64_t>(ranks.begin(), ranks.end())};
    std::size_t rings = 0;
    for (const auto& node : nodes) rings = std::max(rings, node.size());
    std::vector<std::vector<std::int64_t>> orders;
    for (std::size_t c = 0; c < rings; ++c) {
        // Through a node from device c up, through the next one back down: a ring enters a node on the rail on which it left the last.
        std::vector<std::int64_t>& order = orders.emplace_back();
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            std::vector<std::int64_t> node = nodes[n];
            std::rotate(node.begin(), node.begin() + static_cast<std::ptrdiff_t>(c % node.size()), node.end());
            if (n % 2 == 1) std::reverse(node.begin(), node.end());
            order.insert(order.end(), node.begin(), node.end());
        }
    }
    return orders;
}

std::vector<double> bytesOnLinks(const Topology& topology, std::span<const GroupTraffic> traffic) {
    std::vector<double> bytes(topology.linkCount(), 0);
    for (const GroupTraffic& group : traffic) {
        const bool inside = std::all_of(group.ranks.begin(), group.ranks.end(), [&](std::int64_t r) { return r >= 0 && r < topology.deviceCount(); });
        const std::size_t n = group.ranks.size();
        if (!inside || n < 2) continue;
        switch (group.pattern) {
            case TrafficPattern::Send: addRoute(bytes, topology, group.ranks[0], group.ranks[1], group.bytesPerRank); break;
            case TrafficPattern::AllToAll:
                for (const std::int64_t from : group.ranks)
                    for (const std::int64_t to : group.ranks)
                        if (from != to) addRoute(bytes, topology, from, to, group.bytesPerRank / static_cast<double>(n - 1));
                break;
            case TrafficPattern::Ring: {
                const auto orders = ringOrders(topology.cluster(), group.ranks);
                const double each = group.bytesPerRank / static_cast<double>(orders.size());
                for (const auto& order : orders)
                    for (std::size_t i = 0; i < n; ++i) addRoute(bytes, topology, order[i], order[(i + 1) % n], each);
                break;
            }
        }
    }
    return bytes;
}

double loadOf(double bytes, const TopologyLink& link, Time length) {
    const double possible = link.bytesPerS * length.seconds();
    return possible > 0 ? bytes / possible : 0;
}

}  // namespace ringside::gui
