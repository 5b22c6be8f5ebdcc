// Cluster: nodes of devices, how the devices of a node are joined, and the network between nodes.
//
// A cluster is kept compact (node kinds and counts), because closed forms need no more and 16,384 devices must cost
// nothing. The full property graph (topology.h, Boost.Graph) is expanded from it where messages are routed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/base/units.h"
#include "model/hardware/device.h"

namespace ringside {

/// How the devices of one node reach each other.
enum class IntraNodeFabric : std::uint8_t {
    NvSwitch,     ///< every pair at the full NVLink rate (DGX A100, HGX H100, NVL72)
    NvLinkMesh,   ///< direct links without a switch (DGX-1V cube mesh)
    XgmiMesh,     ///< AMD full mesh: a pair shares 1/(n−1) of the links
    PcieSwitch,   ///< devices below PCIe switches, peer to peer
    PcieHost,     ///< through the CPU's root complex / host memory
    Loopback,     ///< CPU ranks on one host
};
std::string_view nameOf(IntraNodeFabric fabric);  ///< "nvswitch", "nvlink-mesh", "xgmi-mesh", "pcie-switch", "pcie-host", "loopback"
Result<IntraNodeFabric> fabricByName(std::string_view name);

enum class CpuVendor : std::uint8_t { Intel, Amd, Arm };
std::string_view nameOf(CpuVendor vendor);        ///< "intel", "amd", "arm"
Result<CpuVendor> cpuVendorByName(std::string_view name);

struct Nics {
    std::int64_t count = 0;         ///< per node; 0: the node has no network
    double gbitPerS = 0;            ///< each, one direction
    double latencyUs = 0;           ///< one way, NIC to NIC through one switch, beyond what NCCL's own hop latency contains
    bool gpuDirect = true;          ///< NIC reads device memory (same PCIe switch)

    bool operator==(const Nics&) const = default;
};

struct NodeKind {
    std::string name;                      ///< "dgx-a100-80gb"
    Device device;
    std::int64_t devices = 1;
    IntraNodeFabric fabric = IntraNodeFabric::NvSwitch;
    CpuVendor cpu = CpuVendor::Amd;
    Nics nics;
    std::int64_t cpuSockets = 2;
    std::int64_t devicesPerPcieSwitch = 2; ///< PcieHost and Loopback have no switches

    bool operator==(const NodeKind&) const = default;
};

/// The network between nodes.
struct NetworkSpec {
    std::string name;                      ///< "ib-hdr-8x200", "ethernet-25g", …
    bool railOptimised = true;             ///< NIC i of every node on leaf switch i
    double oversubscription = 1.0;         ///< of the leaf's uplinks; 1: none
    std::int64_t nodesPerLeaf = 32;
    double switchLatencyUs = 0.3;          ///< per switch on the route beyond the first (which Nics::latencyUs contains)

    bool operator==(const NetworkSpec&) const = default;
};

/// A network by its name: the switches and the NICs that go with them.
struct NamedNetwork {
    NetworkSpec spec;
    Nics nics;                             ///< per node; count 0: no network ("none")
    std::vector<std::string> aliases = {};
    std::string source = {};               ///< where the figures come from

    bool operator==(const NamedNetwork&) const = default;
};

struct NodeGroup {
    NodeKind kind;
    std::int64_t count = 1;

    bool operator==(const NodeGroup&) const = default;
};

struct Cluster {
    std::string name;
    std::vector<NodeGroup> nodes;          ///< ranks are numbered through the groups in order
    NetworkSpec network;

    std::int64_t deviceCount() const;
    std::int64_t nodeCount() const;
    /// Index into `nodes` of the group that holds the rank. REQUIRES: 0 ≤ rank < deviceCount(). O(groups).
    std::size_t groupOf(std::int64_t rank) const;
    /// Node that holds the rank, counted through all groups. REQUIRES and cost as above.
    std::int64_t nodeOf(std::int64_t rank) const;

    bool operator==(const Cluster&) const = default;
};

/// Limits of what a cluster may hold; beyond them a file is more likely wrong than ambitious.
constexpr std::int64_t kMaxNodes = 1'048'576;
constexpr std::int64_t kMaxDevicesPerNode = 1024;

/// Which ranks form a communicator: `count` ranks from `first` on, each `stride` apart. Enough for every axis of a mesh.
struct RankSet {
    std::int64_t first = 0, stride = 1, count = 1;

    std::int64_t at(std::int64_t i) const { return first + stride * i; }
    bool contains(std::int64_t rank) const {
        return rank >= first && (rank - first) % stride == 0 && (rank - first) / stride < count;
    }
    bool operator==(const RankSet&) const = default;
};

/// Whether some rank is in both. O(1) where the strides divide each other, else O(the smaller count).
bool sharesRank(const RankSet& a, const RankSet& b);

/// What a collective's cost depends on: the shape of its group on the cluster.
struct GroupShape {
    std::int64_t ranks = 1;
    std::int64_t nodes = 1;
    std::int64_t ranksPerNode = 1;         ///< the most in a node of the slowest kind
    std::int64_t groupsSharingNics = 1;    ///< groups of the same axis that use a node's NICs at once (1: alone)
    std::size_t nodeKind = 0;              ///< index into Cluster::nodes of the slowest kind in the group

    bool operator==(const GroupShape&) const = default;
};
/// Computed from the arithmetic of the progression, never by walking the ranks: O(groups × devices per node) at worst and
/// O(groups) where the stride divides the devices of a node (or the other way round), whatever the number of ranks.
/// groupsSharingNics is 1: only a strategy knows what runs at the same time. The slowest kind is, when the group spans
/// nodes, the one with the least NIC bandwidth per node, then the one with the least bandwidth between its devices.
/// REQUIRES: every rank is in the cluster, stride ≥ 1, count ≥ 1.
GroupShape groupShape(const Cluster& cluster, const RankSet& ranks);

/// `totalDevices` in nodes of `devicesPerNode` (0: as many as the kind holds). Fewer devices than one node holds make one
/// partly filled node; otherwise the total must be a multiple. A node filled in part keeps the NICs in proportion (at
/// least one): the others sit beside devices that the job does not have. Only nodes without NVLink or xGMI may hold more
/// devices than their kind says.
Result<Cluster> makeCluster(const NodeKind& kind, std::int64_t totalDevices, std::int64_t devicesPerNode, const NetworkSpec& network,
                            std::string name = {});

/// Replaces the network and the NICs of every node (`--network`). "none" leaves the nodes unconnected.
void applyNetwork(Cluster& cluster, const NamedNetwork& network);

/// How names in a cluster file are found. HardwareCatalog::lookups() gives the catalogue's.
struct HardwareLookups {
    std::function<Result<Device>(std::string_view)> device;
    std::function<Result<NodeKind>(std::string_view)> nodeKind;
    std::function<Result<NamedNetwork>(std::string_view)> network;
};

/// A cluster file (docs/guides/describe-a-cluster.md, docs/reference/cluster.schema.json). A network given by name also
/// sets the NICs of the nodes that are given by name or leave "nics" out.
Result<Cluster> clusterFromJson(const JsonCursor& json, const HardwareLookups& lookups);
/// Complete and self-contained (devices inline): clusterFromJson(toJson(c)) == c.
Json toJson(const Cluster& cluster);

// Parts of a cluster file, which the catalogue's own files share.
Result<NodeKind> nodeKindFromJson(const JsonCursor& json, const HardwareLookups& lookups, const std::vector<std::string>& extraKeys = {});
Json toJson(const NodeKind& kind);
Result<NetworkSpec> networkSpecFromJson(const JsonCursor& json, const std::vector<std::string>& extraKeys = {});
Json toJson(const NetworkSpec& network);
Result<Nics> nicsFromJson(const JsonCursor& json);
Json toJson(const Nics& nics);

}  // namespace ringside
