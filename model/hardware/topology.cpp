#include "model/hardware/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/base/check.h"
#include "model/hardware/node_layout.h"

namespace ringside {

std::string_view nameOf(VertexKind kind) {
    switch (kind) {
        case VertexKind::Device:
            return "device";
        case VertexKind::NvSwitch:
            return "nvswitch";
        case VertexKind::PcieSwitch:
            return "pcie-switch";
        case VertexKind::Cpu:
            return "cpu";
        case VertexKind::Nic:
            return "nic";
        case VertexKind::LeafSwitch:
            return "leaf-switch";
        case VertexKind::SpineSwitch:
            return "spine-switch";
    }
    return "?";
}

std::string_view nameOf(LinkKind kind) {
    switch (kind) {
        case LinkKind::NvLink:
            return "nvlink";
        case LinkKind::Xgmi:
            return "xgmi";
        case LinkKind::Pcie:
            return "pcie";
        case LinkKind::Socket:
            return "socket";
        case LinkKind::Loopback:
            return "loopback";
        case LinkKind::Network:
            return "network";
        case LinkKind::Uplink:
            return "uplink";
    }
    return "?";
}

Topology::Place Topology::placeOf(std::int64_t rank) const {
    CHECK(rank >= 0 && rank < deviceCount_);
    std::size_t g = groups_.size() - 1;
    while (groups_[g].firstRank > rank) --g;
    const Group& group = groups_[g];
    const std::int64_t within = (rank - group.firstRank) / group.devices;
    return {&group, group.firstNode + within, (rank - group.firstRank) % group.devices,
            group.firstVertex + static_cast<std::size_t>(within) * group.layout->vertices().size(),
            group.firstLink + static_cast<LinkId>(within) * group.linksPerNode};
}

Topology::Vertex Topology::deviceVertex(std::int64_t rank) const {
    const Place place = placeOf(rank);
    return place.firstVertex + static_cast<std::size_t>(place.local);
}

std::int64_t Topology::leafOf(std::int64_t node, std::int64_t nic) const {
    return node / cluster_.network.nodesPerLeaf * rails_ + (cluster_.network.railOptimised ? nic : 0);
}

std::vector<double> Topology::capacities() const {
    std::vector<double> out;
    out.reserve(links_.size());
    for (const TopologyLink& link : links_) out.push_back(link.bytesPerS);
    return out;
}

/// Adds vertices and links in the order that Group's arithmetic expects.
class TopologyBuilder {
public:
    static Result<Topology> build(const Cluster& cluster) {
        TopologyBuilder builder;
        Topology& topology = builder.topology_;
        topology.cluster_ = cluster;
        topology.deviceCount_ = cluster.deviceCount();
        TRY_VOID(builder.layOutGroups());
        builder.addNodes();
        if (builder.networked_) builder.addNetwork();
        builder.makeGraph();
        return std::move(builder.topology_);
    }

private:
    Result<void> layOutGroups() {
        const Cluster& cluster = topology_.cluster_;
        if (cluster.nodes.empty()) return badInput("cluster " + cluster.name, "the cluster has no nodes; add one");
        networked_ = cluster.nodeCount() > 1;
        std::int64_t rank = 0, node = 0, vertices = 0, links = 0;
        for (const NodeGroup& group : cluster.nodes) {
            TRY(NodeLayout layout, NodeLayout::create(group.kind));
            if (networked_ && layout.nics() == 0)
                return badInput("cluster " + cluster.name,
                                fmt::format("the {} nodes cannot reach each other: {} has no NICs; choose a network with --network, or use one node",
                                            cluster.nodeCount(), group.kind.name));
            Topology::Group out;
            out.firstRank = rank;
            out.firstNode = node;
            out.devices = group.kind.devices;
            out.firstVertex = static_cast<std::size_t>(vertices);
            out.firstLink = static_cast<LinkId>(links);
            const std::int64_t perNode = static_cast<std::int64_t>(layout.links().size()) + (networked_ ? 2 * layout.nics() : 0);
            out.linksPerNode = static_cast<LinkId>(perNode);
            topology_.rails_ = std::max(topology_.rails_, cluster.network.railOptimised ? layout.nics() : 1);
            rank += group.count * group.kind.devices;
            node += group.count;
            vertices += group.count * static_cast<std::int64_t>(layout.vertices().size());
            links += group.count * perNode;
            if (links > kMaxTopologyLinks)
                return badInput("cluster " + cluster.name,
                                fmt::format("{} devices are too many to route message by message (over {} links); use the closed forms",
                                            cluster.deviceCount(), kMaxTopologyLinks));
            out.layout = std::make_shared<const NodeLayout>(std::move(layout));
            topology_.groups_.push_back(std::move(out));
        }
        const std::int64_t blocks = (node + cluster.network.nodesPerLeaf - 1) / cluster.network.nodesPerLeaf;
        leaves_ = networked_ ? blocks * topology_.rails_ : 0;
        topology_.firstLeaf_ = static_cast<std::size_t>(vertices);
        topology_.firstUplink_ = static_cast<LinkId>(links);
        const bool spine = leaves_ > 1;
        vertices_.resize(static_cast<std::size_t>(vertices + leaves_ + (spine ? 1 : 0)));
        topology_.links_.reserve(static_cast<std::size_t>(links + (spine ? 2 * leaves_ : 0)));
        topology_.ends_.reserve(topology_.links_.capacity());
        return {};
    }

    void addLink(std::size_t from, std::size_t to, LinkKind kind, double bytesPerS, double latencyS) {
        topology_.links_.push_back({kind, static_cast<LinkId>(topology_.links_.size()), bytesPerS, latencyS});
        topology_.ends_.emplace_back(from, to);
    }

    void addNodes() {
        for (std::size_t g = 0; g < topology_.groups_.size(); ++g) {
            const Topology::Group& group = topology_.groups_[g];
            const NodeLayout& layout = *group.layout;
            for (std::int64_t i = 0; i < topology_.cluster_.nodes[g].count; ++i) {
                const std::size_t base = group.firstVertex + static_cast<std::size_t>(i) * layout.vertices().size();
                const std::int64_t node = group.firstNode + i;
                for (std::uint32_t v = 0; v < layout.vertices().size(); ++v) {
                    const VertexKind kind = layout.vertices()[v];
                    const std::int64_t index = kind == VertexKind::Device ? group.firstRank + i * group.devices + v : layout.indexOf(v);
                    vertices_[base + v] = {kind, index, node};
                }
                // Latency inside a node is part of the collective's own hop latency, so it is not counted twice here.
                for (const NodeLayout::Link& link : layout.links()) addLink(base + link.from, base + link.to, link.kind, link.bytesPerS, 0);
                if (!networked_) continue;
                for (std::int64_t nic = 0; nic < layout.nics(); ++nic) {
                    const std::size_t leaf = topology_.firstLeaf_ + static_cast<std::size_t>(topology_.leafOf(node, nic));
                    const std::size_t vertex = base + layout.nicVertex(nic);
                    addLink(vertex, leaf, LinkKind::Network, layout.nicBytesPerS(), layout.nicLatencyS() / 2);
                    addLink(leaf, vertex, LinkKind::Network, layout.nicBytesPerS(), layout.nicLatencyS() / 2);
                }
            }
        }
    }

    /// What a leaf's uplinks carry: the NICs of a full leaf, over the oversubscription. With mixed nodes the fastest count.
    double uplinkBytesPerS() const {
        const NetworkSpec& network = topology_.cluster_.network;
        double perNode = 0;
        for (const Topology::Group& group : topology_.groups_) {
            const auto nics = static_cast<double>(network.railOptimised ? 1 : group.layout->nics());
            perNode = std::max(perNode, group.layout->nicBytesPerS() * nics);
        }
        return perNode * static_cast<double>(network.nodesPerLeaf) / network.oversubscription;
    }

    void addNetwork() {
        CHECK(topology_.links_.size() == topology_.firstUplink_);
        for (std::int64_t leaf = 0; leaf < leaves_; ++leaf)
            vertices_[topology_.firstLeaf_ + static_cast<std::size_t>(leaf)] = {VertexKind::LeafSwitch, leaf, -1};
        if (leaves_ < 2) return;
        const std::size_t spine = topology_.firstLeaf_ + static_cast<std::size_t>(leaves_);
        vertices_[spine] = {VertexKind::SpineSwitch, 0, -1};
        const double rate = uplinkBytesPerS(), latency = topology_.cluster_.network.switchLatencyUs * 1e-6;
        for (std::size_t leaf = topology_.firstLeaf_; leaf < spine; ++leaf) {
            addLink(leaf, spine, LinkKind::Uplink, rate, latency);
            addLink(spine, leaf, LinkKind::Uplink, rate, latency);
        }
    }

    void makeGraph() {
        topology_.graph_ = TopologyGraph(boost::edges_are_unsorted_multi_pass, topology_.ends_.begin(), topology_.ends_.end(),
                                         topology_.links_.begin(), vertices_.size());
        for (std::size_t v = 0; v < vertices_.size(); ++v) topology_.graph_[v] = vertices_[v];
    }

    Topology topology_;
    std::vector<TopologyVertex> vertices_;
    std::int64_t leaves_ = 0;
    bool networked_ = false;
};

Result<Topology> buildTopology(const Cluster& cluster) { return TopologyBuilder::build(cluster); }

class RouteFinder {
public:
    RouteFinder(const Topology& topology, std::int64_t from, std::int64_t to)
        : topology_(topology), a_(topology.placeOf(from)), b_(topology.placeOf(to)) {}

    Route find() {
        if (a_.node == b_.node) {
            append(a_, layout(a_).devicePath(a_.local, b_.local));
        } else {
            acrossNodes();
        }
        for (const LinkId id : route_.links) route_.latencyS += topology_.link(id).latencyS;
        return std::move(route_);
    }

private:
    using Place = Topology::Place;
    static const NodeLayout& layout(const Place& place) { return *place.group->layout; }

    void append(const Place& place, const NodeLayout::Path& path) {
        for (std::size_t i = 1; i < path.size(); ++i) route_.links.push_back(place.firstLink + layout(place).linkBetween(path[i - 1], path[i]));
    }

    struct Way {
        std::int64_t nicA = 0, nicB = 0;
        NodeLayout::Path out, in;  ///< device to NIC, in each node
        std::int64_t leafA = 0, leafB = 0;
        std::size_t hops() const { return out.size() - 1 + in.size() - 1 + (leafA == leafB ? 2 : 4); }
    };

    Way way(std::int64_t nicA, std::int64_t nicB) const {
        return {nicA,
                nicB,
                layout(a_).nicPath(a_.local, nicA),
                layout(b_).nicPath(b_.local, nicB),
                topology_.leafOf(a_.node, nicA),
                topology_.leafOf(b_.node, nicB)};
    }

    void acrossNodes() {
        const std::int64_t ownA = layout(a_).nicOf(a_.local), ownB = layout(b_).nicOf(b_.local);
        Way best = way(ownA, ownB);
        if (best.leafA != best.leafB && topology_.cluster_.network.railOptimised && ownA != ownB) {
            // Changing rails inside the sender's node (then the receiver's) is preferred among equal lengths.
            if (ownA < layout(b_).nics())
                if (Way other = way(ownA, ownA); other.hops() <= best.hops() && other.leafA == other.leafB) best = std::move(other);
            if (ownB < layout(a_).nics())
                if (Way other = way(ownB, ownB); other.hops() <= best.hops() && other.leafA == other.leafB) best = std::move(other);
        }
        append(a_, best.out);
        route_.links.push_back(nicLink(a_, best.nicA));
        if (best.leafA != best.leafB) {
            route_.links.push_back(topology_.firstUplink_ + static_cast<LinkId>(2 * best.leafA));
            route_.links.push_back(topology_.firstUplink_ + static_cast<LinkId>(2 * best.leafB + 1));
        }
        route_.links.push_back(nicLink(b_, best.nicB) + 1);
        std::reverse(best.in.begin(), best.in.end());
        append(b_, best.in);
    }

    /// NIC to leaf; the next id is leaf to NIC.
    static LinkId nicLink(const Place& place, std::int64_t nic) {
        return place.firstLink + static_cast<LinkId>(layout(place).links().size()) + static_cast<LinkId>(2 * nic);
    }

    const Topology& topology_;
    Place a_, b_;
    Route route_;
};

Route route(const Topology& topology, std::int64_t from, std::int64_t to) { return RouteFinder(topology, from, to).find(); }

double bottleneck(const Topology& topology, const Route& route) {
    double least = std::numeric_limits<double>::infinity();
    for (const LinkId id : route.links) least = std::min(least, topology.link(id).bytesPerS);
    return least;
}

}  // namespace ringside
