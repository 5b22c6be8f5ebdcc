#include "traces/analysis/trace_path.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "model/base/check.h"
#include "traces/analysis/collectives.h"
#include "traces/analysis/enclosing.h"

namespace ringside {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

/// A stretch of a track during which one slice is the innermost.
struct Node {
    Time begin, end;
    std::uint32_t slice = 0, track = 0;
    std::uint32_t previous = kNone, next = kNone;  ///< on its track
    bool starts = false, ends = false;             ///< it is the first, the last of its slice
};

struct Edge {
    std::uint32_t from = 0, to = 0;  ///< nodes
    bool isLaunch = false, isInferred = false;
};

bool isDevice(TrackKind kind) { return kind != TrackKind::Host; }

class Graph {
public:
    Graph(const Trace& trace, Time begin, Time end) : trace_(trace), begin_(begin), end_(end) {
        firstNode_.assign(trace.size(), kNone);
        lastNode_.assign(trace.size(), kNone);
        for (std::size_t t = 0; t < trace.tracks.size(); ++t) cutTrack(t);
        matchRanks();
        addFlows();
        addCommunicators();
        indexDevices();
        addWaits();
        inferDeviceWaits();
        sortEdges();
    }

    const std::vector<Node>& nodes() const { return nodes_; }
    std::span<const Edge> into(std::uint32_t node) const { return {edges_.data() + firstInto_[node], firstInto_[node + 1] - firstInto_[node]}; }
    const std::vector<Edge>& edges() const { return edges_; }
    /// A collective cannot end before the last rank has come: that rank's node, or kNone if it is this one.
    std::uint32_t lastArrival(std::uint32_t node) const {
        const auto it = lastArrival_.find(nodes_[node].slice);
        return it == lastArrival_.end() || it->second == nodes_[node].slice ? kNone : firstNode_[it->second];
    }

private:
    void addNode(std::uint32_t slice, Time begin, Time end, std::uint32_t track, std::uint32_t& previous) {
        begin = std::max(begin, begin_);
        end = std::min(end, end_);
        const bool isEmptySlice = trace_.duration[slice] == Time{};
        if (end < begin || (end == begin && !isEmptySlice)) return;
        const auto id = static_cast<std::uint32_t>(nodes_.size());
        Node node{begin, end, slice, track, previous, kNone, firstNode_[slice] == kNone, false};
        if (node.starts) firstNode_[slice] = id;
        lastNode_[slice] = id;
        if (previous != kNone) nodes_[previous].next = id;
        nodes_.push_back(node);
        previous = id;
    }

    /// Innermost stretches. Of slices that overlap without nesting the later one counts while both run.
    void cutTrack(std::size_t t) {
        std::vector<std::uint32_t> open;
        std::uint32_t previous = kNone;
        Time cursor = begin_;
        const auto endOf = [&](std::uint32_t i) { return trace_.start[i] + trace_.duration[i]; };
        const auto track = static_cast<std::uint32_t>(t);
        const auto closeUntil = [&](Time at) {
            while (!open.empty() && endOf(open.back()) <= at) {
                const std::uint32_t top = open.back();
                open.pop_back();
                if (endOf(top) > cursor || trace_.duration[top] == Time{}) {
                    addNode(top, std::max(cursor, trace_.start[top]), endOf(top), track, previous);
                    cursor = std::max(cursor, endOf(top));
                }
            }
        };
        for (std::size_t i = trace_.firstSlice(t), last = trace_.firstSlice(t + 1); i < last && trace_.start[i] < end_; ++i) {
            const auto slice = static_cast<std::uint32_t>(i);
            if (trace_.category[i] == SliceCategory::Marker || endOf(slice) < begin_) continue;
            closeUntil(trace_.start[i]);
            if (!open.empty() && trace_.start[i] > cursor) addNode(open.back(), std::max(cursor, trace_.start[open.back()]), trace_.start[i], track, previous);
            cursor = std::max(cursor, trace_.start[i]);
            open.push_back(slice);
        }
        closeUntil(Time::max());
        for (std::uint32_t node = previous; node != kNone; node = nodes_[node].previous)
            if (lastNode_[nodes_[node].slice] == node) nodes_[node].ends = true;
    }

    void matchRanks() {
        for (const MatchedCollective& one : matchCollectives(trace_)) {
            if (one.slices.size() < 2) continue;
            std::uint32_t last = one.slices.front();
            for (const std::uint32_t i : one.slices)
                if (trace_.start[i] > trace_.start[last]) last = i;
            if (firstNode_[last] == kNone) continue;
            for (const std::uint32_t i : one.slices)
                if (firstNode_[i] != kNone && trace_.start[last] < trace_.start[i] + trace_.duration[i]) lastArrival_[i] = last;
        }
    }

    void add(std::uint32_t fromSlice, std::uint32_t toSlice, bool isLaunch, bool isInferred) {
        const std::uint32_t from = lastNode_[fromSlice], to = firstNode_[toSlice];
        if (from == kNone || to == kNone || from == to) return;
        // What ends after its follower did was not waited for.
        if (nodes_[from].end > nodes_[lastNode_[toSlice]].end) return;
        edges_.push_back({from, to, isLaunch, isInferred});
    }

    void addFlows() {
        hasDependency_.resize(trace_.size());
        for (const Flow& flow : trace_.flows) {
            if (flow.kind == Flow::Kind::Collective) continue;
            add(flow.from, flow.to, flow.kind == Flow::Kind::Launch, false);
            if (flow.kind == Flow::Kind::Dependency) hasDependency_[flow.to] = true;
        }
    }

    /// The collectives of a communicator run one after the other, whatever streams they are on. Without sequence numbers (Gloo) nobody
    /// says that they do.
    void addCommunicators() {
        std::map<std::tuple<std::int64_t, std::string, std::vector<std::int64_t>>, std::vector<std::uint32_t>> ofGroup;
        for (std::uint32_t i = 0; i < trace_.size(); ++i) {
            if (firstNode_[i] == kNone || trace_.collective[i] < 0 || trace_.category[i] != SliceCategory::Communication) continue;
            const CollectiveDetails& details = trace_.collectives[static_cast<std::size_t>(trace_.collective[i])];
            if (details.sequence >= 0) ofGroup[{trace_.tracks[trace_.track[i]].rank, details.group, details.ranks}].push_back(i);
        }
        for (auto& [group, slices] : ofGroup) {
            std::stable_sort(slices.begin(), slices.end(), [&](std::uint32_t a, std::uint32_t b) { return trace_.start[a] + trace_.duration[a] < trace_.start[b] + trace_.duration[b]; });
            for (std::size_t k = 1; k < slices.size(); ++k)
                if (trace_.track[slices[k]] != trace_.track[slices[k - 1]]) add(slices[k - 1], slices[k], false, false);
        }
    }

    /// Device slices by their end, per rank.
    void indexDevices() {
        for (std::uint32_t i = 0; i < trace_.size(); ++i)
            if (firstNode_[i] != kNone && isDevice(trace_.tracks[trace_.track[i]].kind) && trace_.category[i] != SliceCategory::Host && trace_.category[i] != SliceCategory::Wait)
                byEnd_[trace_.tracks[trace_.track[i]].rank].push_back(i);
        for (auto& [rank, slices] : byEnd_)
            std::stable_sort(slices.begin(), slices.end(), [&](std::uint32_t a, std::uint32_t b) { return trace_.start[a] + trace_.duration[a] < trace_.start[b] + trace_.duration[b]; });
    }
    std::uint32_t lastToEnd(std::int64_t rank, Time at) const {
        const auto it = byEnd_.find(rank);
        if (it == byEnd_.end()) return kNone;
        const auto after = std::upper_bound(it->second.begin(), it->second.end(), at, [&](Time t, std::uint32_t i) { return t < trace_.start[i] + trace_.duration[i]; });
        return after == it->second.begin() ? kNone : *(after - 1);
    }

    void addWaits() {
        for (std::uint32_t i = 0; i < trace_.size(); ++i) {
            if (firstNode_[i] == kNone || trace_.category[i] != SliceCategory::Wait || hasDependency_[i]) continue;
            const Track& track = trace_.tracks[trace_.track[i]];
            if (isDevice(track.kind)) continue;
            const std::uint32_t before = lastToEnd(track.rank, trace_.start[i] + trace_.duration[i]);
            if (before != kNone) add(before, i, false, true);
        }
    }

    /// PyTorch does not write which event a stream waited for. A kernel that began long after its launch and its stream's last
    /// kernel waited for something: the last thing that ended on its device.
    void inferDeviceWaits() {
        const std::size_t known = edges_.size();
        std::vector<Time> explained(nodes_.size(), Time::fromPicoseconds(-Time::max().picoseconds()));
        for (std::size_t e = 0; e < known; ++e) explained[edges_[e].to] = std::max(explained[edges_[e].to], nodes_[edges_[e].from].end);
        for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
            const Node& node = nodes_[n];
            const Track& track = trace_.tracks[node.track];
            if (!node.starts || !isDevice(track.kind) || hasDependency_[node.slice] || trace_.duration[node.slice] == Time{}) continue;
            Time explainedUntil = explained[n];
            if (node.previous != kNone) explainedUntil = std::max(explainedUntil, nodes_[node.previous].end);
            if (explainedUntil >= node.begin) continue;
            const std::uint32_t before = lastToEnd(track.rank, node.begin);
            if (before == kNone || before == node.slice || trace_.start[before] + trace_.duration[before] <= explainedUntil) continue;
            add(before, node.slice, false, true);
        }
    }

    void sortEdges() {
        std::stable_sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.to < b.to; });
        firstInto_.assign(nodes_.size() + 1, 0);
        for (const Edge& edge : edges_) ++firstInto_[edge.to + 1];
        for (std::size_t n = 1; n < firstInto_.size(); ++n) firstInto_[n] += firstInto_[n - 1];
    }

    const Trace& trace_;
    Time begin_, end_;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> firstNode_, lastNode_;  ///< per slice
    std::vector<Edge> edges_;                          ///< by `to`
    std::vector<std::size_t> firstInto_;
    std::vector<bool> hasDependency_;
    std::map<std::int64_t, std::vector<std::uint32_t>> byEnd_;
    std::map<std::uint32_t, std::uint32_t> lastArrival_;
};

}  // namespace

TracePath tracePath(const Trace& trace, Time begin, Time end) {
    CHECK(begin <= end);
    const Graph graph(trace, begin, end);
    const std::vector<Node>& nodes = graph.nodes();
    TracePath path;
    path.begin = begin;
    path.end = end;
    const auto put = [&](std::uint32_t slice, Time from, Time to, bool isInferred) {
        if (from >= to) return;
        if (slice == kNoSlice) path.idle += to - from;
        else path.byCategory[static_cast<std::size_t>(trace.category[slice])] += to - from;
        if (!path.pieces.empty() && path.pieces.back().slice == slice && path.pieces.back().begin == to) path.pieces.back().begin = from;
        else path.pieces.push_back({slice, from, to, isInferred});
    };
    std::uint32_t at = kNone;
    for (std::uint32_t n = 0; n < nodes.size(); ++n)
        if (at == kNone || nodes[n].end > nodes[at].end || (nodes[n].end == nodes[at].end && isDevice(trace.tracks[nodes[n].track].kind) && !isDevice(trace.tracks[nodes[at].track].kind))) at = n;
    Time cursor = end;
    bool isInferred = false;
    std::vector<bool> visited(nodes.size());
    while (at != kNone && cursor > begin && !visited[at]) {
        visited[at] = true;
        // Behind what ends last nothing is shown.
        if (nodes[at].end < cursor) {
            put(kNoSlice, nodes[at].end, cursor, false);
            cursor = nodes[at].end;
        }
        if (const std::uint32_t last = graph.lastArrival(at); last != kNone && nodes[last].begin > nodes[at].begin && nodes[last].begin <= cursor && !visited[last]) {
            // It began when the last rank got there: the path goes on in that rank.
            put(nodes[at].slice, nodes[last].begin, cursor, isInferred);
            cursor = std::min(cursor, nodes[last].begin);
            at = last;
            visited[at] = true;
        }
        const Node& node = nodes[at];
        std::uint32_t best = node.previous;
        Time reached = best == kNone ? begin : std::min(nodes[best].end, node.begin);
        bool inferred = false;
        for (const Edge& edge : graph.into(at)) {
            // A launch may still be running when its kernel begins; other things that end later were waited for.
            const Time over = std::min(nodes[edge.from].end, edge.isLaunch ? node.begin : cursor);
            if (visited[edge.from] || (best != kNone && over <= reached)) continue;
            best = edge.from;
            reached = over;
            inferred = edge.isInferred;
        }
        put(node.slice, std::max(std::min(node.begin, cursor), reached), cursor, isInferred);
        cursor = std::min(cursor, std::max(node.begin, reached));
        isInferred = inferred;
        at = best;
        if (at != kNone && reached < cursor) {
            put(kNoSlice, reached, cursor, false);
            cursor = reached;
        }
    }
    put(kNoSlice, begin, cursor, false);
    std::reverse(path.pieces.begin(), path.pieces.end());
    return path;
}

std::vector<Time> sliceSlack(const Trace& trace, Time begin, Time end) {
    CHECK(begin <= end);
    const Graph graph(trace, begin, end);
    const std::vector<Node>& nodes = graph.nodes();
    std::vector<std::uint32_t> firstOut(nodes.size() + 1, 0);
    for (const Edge& edge : graph.edges()) ++firstOut[edge.from + 1];
    for (std::size_t n = 1; n < firstOut.size(); ++n) firstOut[n] += firstOut[n - 1];
    std::vector<std::uint32_t> out(graph.edges().size()), next(firstOut.begin(), firstOut.end() - 1);
    for (const Edge& edge : graph.edges()) out[next[edge.from]++] = edge.to;

    std::vector<std::uint32_t> order(nodes.size());
    for (std::uint32_t n = 0; n < order.size(); ++n) order[n] = n;
    // Whoever may wait for another ends no earlier: by end, the later first.
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return nodes[a].end != nodes[b].end ? nodes[a].end > nodes[b].end : nodes[a].begin > nodes[b].begin; });
    Time last;
    for (const Node& node : nodes) last = std::max(last, node.end);
    std::vector<Time> slack(nodes.size(), Time::max());
    const auto startOf = [&](std::uint32_t n) {  // of a collective what counts is when the last rank comes
        const std::uint32_t arrival = graph.lastArrival(n);
        return arrival == kNone ? nodes[n].begin : std::max(nodes[n].begin, std::min(nodes[arrival].begin, nodes[n].end));
    };
    for (const std::uint32_t n : order) {
        Time own = last - nodes[n].end;
        const auto follow = [&](std::uint32_t m) {
            if (slack[m] == Time::max()) return;
            const Time start = startOf(m);
            const Time room = nodes[n].end <= start ? start - nodes[n].end : std::max(nodes[m].end - nodes[n].end, Time{});
            own = std::min(own, room + slack[m]);
        };
        if (nodes[n].next != kNone) follow(nodes[n].next);
        for (std::uint32_t e = firstOut[n]; e < firstOut[n + 1]; ++e) follow(out[e]);
        slack[n] = own;
    }
    std::vector<Time> result(trace.size(), Time::max());
    for (std::uint32_t n = 0; n < nodes.size(); ++n)
        if (nodes[n].ends) result[nodes[n].slice] = slack[n];
    return result;
}

}  // namespace ringside
