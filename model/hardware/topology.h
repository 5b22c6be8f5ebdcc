// Topology: a cluster expanded into the graph of its devices, switches, NICs and links, and the routes through it.
//
// The graph is a Boost.Graph property graph; every cable is two directed edges, because all links here are full duplex.
// Routes are not searched in it: a cluster is regular, so a route follows from where its two ranks stand, in time
// proportional to its length. Tests hold the routes against a breadth-first search of the graph.
//
// Rates are those that collectives see (NCCL's count of NVLink and PCIe), so that the message level and the closed forms
// rest on the same figures. docs/models/hardware.md has the layout of every fabric.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "model/base/result.h"
#include "model/hardware/cluster.h"

namespace ringside {

enum class VertexKind : std::uint8_t { Device, NvSwitch, PcieSwitch, Cpu, Nic, LeafSwitch, SpineSwitch };
std::string_view nameOf(VertexKind kind);

enum class LinkKind : std::uint8_t { NvLink, Xgmi, Pcie, Socket, Loopback, Network, Uplink };
std::string_view nameOf(LinkKind kind);

using LinkId = std::uint32_t;

struct TopologyVertex {
    VertexKind kind = VertexKind::Device;
    std::int64_t index = 0;     ///< the rank of a device; else counted within the node (or the network)
    std::int64_t node = -1;     ///< −1: leaf and spine switches
};

struct TopologyLink {
    LinkKind kind = LinkKind::NvLink;
    LinkId id = 0;
    double bytesPerS = 0;       ///< one direction
    double latencyS = 0;
};

/// Compressed rows: a value without pointers into itself, so that a Topology can be moved and copied.
using TopologyGraph = boost::compressed_sparse_row_graph<boost::directedS, TopologyVertex, TopologyLink>;

class NodeLayout;  // node_layout.h: one node kind's vertices and links, shared by all nodes of the kind

/// Immutable once built; a value that may be read from many threads.
class Topology {
public:
    using Vertex = std::size_t;  ///< descriptor in graph()

    const TopologyGraph& graph() const { return graph_; }
    std::size_t linkCount() const { return links_.size(); }
    const TopologyLink& link(LinkId id) const { return links_[id]; }
    Vertex from(LinkId id) const { return ends_[id].first; }
    Vertex to(LinkId id) const { return ends_[id].second; }
    Vertex deviceVertex(std::int64_t rank) const;
    std::int64_t deviceCount() const { return deviceCount_; }
    const Cluster& cluster() const { return cluster_; }
    /// bytesPerS of every link, by id: what a flow simulation starts from.
    std::vector<double> capacities() const;

private:
    friend class TopologyBuilder;
    friend class RouteFinder;

    struct Group {                                 ///< one entry of Cluster::nodes
        std::shared_ptr<const NodeLayout> layout;
        std::int64_t firstRank = 0, firstNode = 0, devices = 1;
        std::size_t firstVertex = 0;
        LinkId firstLink = 0;
        LinkId linksPerNode = 0;                   ///< within the node, then two per NIC to its leaf
    };
    struct Place {
        const Group* group = nullptr;
        std::int64_t node = 0;                     ///< counted through the cluster
        std::int64_t local = 0;                    ///< device within the node
        std::size_t firstVertex = 0;
        LinkId firstLink = 0;
    };
    Place placeOf(std::int64_t rank) const;
    std::int64_t leafOf(std::int64_t node, std::int64_t nic) const;

    Cluster cluster_;
    TopologyGraph graph_;
    std::vector<TopologyLink> links_;              ///< by id; the graph's edges carry copies
    std::vector<std::pair<Vertex, Vertex>> ends_;
    std::vector<Group> groups_;
    std::int64_t deviceCount_ = 0;
    std::int64_t rails_ = 0;                       ///< leaf switches per block of nodesPerLeaf nodes
    std::size_t firstLeaf_ = 0;
    LinkId firstUplink_ = 0;                       ///< two per leaf: up, then down
};

/// Expands the cluster. Fails (bad input) where a needed rate is not known, where several nodes have no NICs to reach each
/// other, or where the graph would have more than kMaxTopologyLinks links. An unknown PCIe rate beside NVLink or xGMI is
/// no error: the NIC's own rate then limits. O(vertices + links).
Result<Topology> buildTopology(const Cluster& cluster);
constexpr std::int64_t kMaxTopologyLinks = 20'000'000;

struct Route {
    std::vector<LinkId> links;     ///< in order; empty if the ranks are the same
    double latencyS = 0;           ///< sum over the links

    bool operator==(const Route&) const = default;
};

/// From one rank's device to the other's, fewest hops first. Among equals NVLink is preferred to PCIe, and staying on one
/// rail to crossing the spine. Between nodes every device uses the NIC nearest to it: of n NICs and d devices, device i
/// has NIC ⌊i·n/d⌋ (with n > d it has n/d of them, drawn as one vertex of their joint rate). On a rail-optimised network a
/// message between rails changes rails inside a node where that takes no more hops (NCCL's PXN), else through the spine.
/// Both directions have the same number of hops. REQUIRES: 0 ≤ from, to < deviceCount(). O(length of the route).
Route route(const Topology& topology, std::int64_t from, std::int64_t to);

/// The least bytesPerS on the route; infinite for an empty one.
double bottleneck(const Topology& topology, const Route& route);

}  // namespace ringside
