#include "model/hardware/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "model/base/check.h"
#include "model/base/names.h"

namespace ringside {
namespace {

constexpr std::array kFabrics = {IntraNodeFabric::NvSwitch,   IntraNodeFabric::NvLinkMesh, IntraNodeFabric::XgmiMesh,
                                 IntraNodeFabric::PcieSwitch, IntraNodeFabric::PcieHost,   IntraNodeFabric::Loopback};
constexpr std::array kVendors = {CpuVendor::Intel, CpuVendor::Amd, CpuVendor::Arm};

template <class Enum, std::size_t N>
Result<Enum> byName(const std::array<Enum, N>& values, std::string_view what, std::string_view name) {
    std::vector<std::string> known;
    for (const Enum value : values) {
        if (name == nameOf(value)) return value;
        known.emplace_back(nameOf(value));
    }
    return badInput({}, unknownName(what, name, known));
}

struct Part {
    std::int64_t nodes = 0, ranksPerNode = 0;
};

/// Nodes of `d` devices touched by the progression first, first + stride, … (count terms, first counted from the start of
/// these nodes), and the most terms that fall into one node.
Part partOf(std::int64_t first, std::int64_t stride, std::int64_t count, std::int64_t d) {
    if (stride >= d || count == 1) return {count, 1};  // two terms are at least a node apart
    const std::int64_t last = first + stride * (count - 1);
    const std::int64_t firstNode = first / d, lastNode = last / d;  // stride < d: no node in between is skipped
    const auto termsBelow = [&](std::int64_t rank) { return rank <= first ? 0 : std::min(count, (rank - first + stride - 1) / stride); };
    const auto termsIn = [&](std::int64_t node) { return termsBelow((node + 1) * d) - termsBelow(node * d); };
    // The pattern of terms within a node repeats after stride / gcd(stride, d) nodes; the first and the last may be cut.
    const std::int64_t period = stride / std::gcd(stride, d);
    std::int64_t most = std::max(termsIn(firstNode), termsIn(lastNode));
    for (std::int64_t node = firstNode + 1; node < lastNode && node <= firstNode + period; ++node) most = std::max(most, termsIn(node));
    return {lastNode - firstNode + 1, most};
}

/// GB/s between the devices of a node; unknown counts as slowest, so that asking for it reports the missing figure.
double intraNodeRate(const NodeKind& kind) {
    switch (kind.fabric) {
        case IntraNodeFabric::NvSwitch:
        case IntraNodeFabric::NvLinkMesh:
        case IntraNodeFabric::XgmiMesh:
            return linkRateGbPerS(kind.device).value_or(0);
        case IntraNodeFabric::PcieSwitch:
        case IntraNodeFabric::PcieHost:
            return pcieRateGbPerS(kind.device).value_or(0);
        case IntraNodeFabric::Loopback:
            return kind.device.loopbackGbPerS.value_or(0);
    }
    return 0;
}

double networkRate(const NodeKind& kind) { return static_cast<double>(kind.nics.count) * kind.nics.gbitPerS; }

/// Nodes that are a box of slots rather than one board.
bool mayBeExtended(IntraNodeFabric fabric) {
    return fabric == IntraNodeFabric::PcieSwitch || fabric == IntraNodeFabric::PcieHost || fabric == IntraNodeFabric::Loopback;
}

/// Devices per node at or below `limit` that divide the total: what to suggest instead.
std::string divisorsBelow(std::int64_t total, std::int64_t limit) {
    std::string out;
    for (std::int64_t d = limit; d > 1; --d)
        if (total % d == 0) out += (out.empty() ? "" : ", ") + std::to_string(d);
    return out;
}

}  // namespace

std::string_view nameOf(IntraNodeFabric fabric) {
    switch (fabric) {
        case IntraNodeFabric::NvSwitch:
            return "nvswitch";
        case IntraNodeFabric::NvLinkMesh:
            return "nvlink-mesh";
        case IntraNodeFabric::XgmiMesh:
            return "xgmi-mesh";
        case IntraNodeFabric::PcieSwitch:
            return "pcie-switch";
        case IntraNodeFabric::PcieHost:
            return "pcie-host";
        case IntraNodeFabric::Loopback:
            return "loopback";
    }
    return "?";
}

std::string_view nameOf(CpuVendor vendor) {
    switch (vendor) {
        case CpuVendor::Intel:
            return "intel";
        case CpuVendor::Amd:
            return "amd";
        case CpuVendor::Arm:
            return "arm";
    }
    return "?";
}

Result<IntraNodeFabric> fabricByName(std::string_view name) { return byName(kFabrics, "fabric", name); }
Result<CpuVendor> cpuVendorByName(std::string_view name) { return byName(kVendors, "CPU vendor", name); }

std::int64_t Cluster::deviceCount() const {
    std::int64_t devices = 0;
    for (const NodeGroup& group : nodes) devices += group.count * group.kind.devices;
    return devices;
}

std::int64_t Cluster::nodeCount() const {
    std::int64_t count = 0;
    for (const NodeGroup& group : nodes) count += group.count;
    return count;
}

std::size_t Cluster::groupOf(std::int64_t rank) const {
    CHECK(rank >= 0);
    for (std::size_t g = 0; g < nodes.size(); ++g) {
        const std::int64_t devices = nodes[g].count * nodes[g].kind.devices;
        if (rank < devices) return g;
        rank -= devices;
    }
    CHECK(!"the rank is in the cluster");
    return 0;
}

std::int64_t Cluster::nodeOf(std::int64_t rank) const {
    CHECK(rank >= 0);
    std::int64_t firstNode = 0;
    for (const NodeGroup& group : nodes) {
        const std::int64_t devices = group.count * group.kind.devices;
        if (rank < devices) return firstNode + rank / group.kind.devices;
        rank -= devices;
        firstNode += group.count;
    }
    CHECK(!"the rank is in the cluster");
    return 0;
}

bool sharesRank(const RankSet& a, const RankSet& b) {
    const std::int64_t begin = std::max(a.first, b.first), end = std::min(a.at(a.count - 1), b.at(b.count - 1));
    if (begin > end) return false;
    const RankSet &coarse = a.stride >= b.stride ? a : b, &fine = a.stride >= b.stride ? b : a;
    const std::int64_t from = coarse.first + (std::max<std::int64_t>(0, begin - coarse.first) + coarse.stride - 1) / coarse.stride * coarse.stride;
    if (coarse.stride % fine.stride == 0) return from <= end && (from - fine.first) % fine.stride == 0;
    for (std::int64_t rank = from; rank <= end; rank += coarse.stride)
        if (fine.contains(rank)) return true;
    return false;
}

GroupShape groupShape(const Cluster& cluster, const RankSet& ranks) {
    CHECK(ranks.first >= 0 && ranks.stride >= 1 && ranks.count >= 1);
    GroupShape shape{.ranks = ranks.count, .nodes = 0, .ranksPerNode = 0, .groupsSharingNics = 1, .nodeKind = 0};
    std::vector<std::size_t> kinds;
    std::vector<std::int64_t> most;  // ranks in one node, per entry of kinds
    std::int64_t done = 0, groupStart = 0;  // terms placed so far; first rank of the node group
    for (std::size_t g = 0; g < cluster.nodes.size() && done < ranks.count; ++g) {
        const NodeGroup& group = cluster.nodes[g];
        const std::int64_t groupEnd = groupStart + group.count * group.kind.devices;
        const std::int64_t first = ranks.at(done);
        if (first < groupEnd) {
            const std::int64_t count = std::min(ranks.count - done, (groupEnd - 1 - first) / ranks.stride + 1);
            const Part part = partOf(first - groupStart, ranks.stride, count, group.kind.devices);
            shape.nodes += part.nodes;
            most.push_back(part.ranksPerNode);
            kinds.push_back(g);
            done += count;
        }
        groupStart = groupEnd;
    }
    CHECK(done == ranks.count);
    const auto slower = [&](std::size_t a, std::size_t b) {
        const NodeKind &x = cluster.nodes[a].kind, &y = cluster.nodes[b].kind;
        if (shape.nodes > 1 && networkRate(x) != networkRate(y)) return networkRate(x) < networkRate(y);
        return intraNodeRate(x) < intraNodeRate(y);
    };
    const auto slowest = std::min_element(kinds.begin(), kinds.end(), slower);
    shape.nodeKind = *slowest;
    shape.ranksPerNode = most[static_cast<std::size_t>(slowest - kinds.begin())];
    return shape;
}

Result<Cluster> makeCluster(const NodeKind& kind, std::int64_t totalDevices, std::int64_t devicesPerNode, const NetworkSpec& network,
                            std::string name) {
    if (totalDevices < 1 || totalDevices > kMaxNodes * kMaxDevicesPerNode)
        return badInput("--devices", fmt::format("{} devices; expected 1 to {}", totalDevices, kMaxNodes * kMaxDevicesPerNode));
    const bool given = devicesPerNode != 0;
    if (!given) devicesPerNode = kind.devices;
    if (devicesPerNode < 1 || devicesPerNode > kMaxDevicesPerNode)
        return badInput("--devices-per-node", fmt::format("{} devices per node; expected 1 to {}", devicesPerNode, kMaxDevicesPerNode));
    if (devicesPerNode > kind.devices && !mayBeExtended(kind.fabric))
        return badInput("--devices-per-node",
                        fmt::format("a {} node holds {} devices, not {}; ask for at most {}, or describe your node in a cluster file", kind.name,
                                    kind.devices, devicesPerNode, kind.devices));
    const std::int64_t used = std::min(devicesPerNode, totalDevices);
    if (totalDevices % used != 0) {
        const std::string others = divisorsBelow(totalDevices, devicesPerNode);
        return badInput("--devices", fmt::format("{} devices do not fill nodes of {}; use {} or {} devices{}", totalDevices, devicesPerNode,
                                                 totalDevices / devicesPerNode * devicesPerNode, (totalDevices / devicesPerNode + 1) * devicesPerNode,
                                                 others.empty() ? std::string() : fmt::format(", or --devices-per-node {}", others)));
    }
    const std::int64_t nodes = totalDevices / used;
    if (nodes > kMaxNodes)
        return badInput("--devices",
                        fmt::format("{} devices in nodes of {} are {} nodes; expected at most {}", totalDevices, used, nodes, kMaxNodes));

    Cluster cluster;
    NodeKind filled = kind;
    if (used < kind.devices && kind.nics.count > 0) filled.nics.count = std::max<std::int64_t>(1, kind.nics.count * used / kind.devices);
    filled.devices = used;
    cluster.name = name.empty() ? fmt::format("{}x {}", nodes, kind.name) : std::move(name);
    cluster.nodes.push_back({std::move(filled), nodes});
    cluster.network = network;
    return cluster;
}

void applyNetwork(Cluster& cluster, const NamedNetwork& network) {
    cluster.network = network.spec;
    for (NodeGroup& group : cluster.nodes) group.kind.nics = network.nics;
}

}  // namespace ringside
