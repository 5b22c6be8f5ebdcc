#include "model/cost/nccl_topology.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace ringside::nccl {
namespace {

constexpr double kSlack = 1e-9;  // 240 / 40 is 6 channels, whatever the last bit says

std::int64_t timesIn(double capacity, double speed) { return static_cast<std::int64_t>(std::floor(capacity / speed + kSlack)); }

// What a node offers to rings among `ranks` of its devices.
struct IntraNode {
    double ringGbPerS = 0;   // total over all rings
    double maxSpeed = 0;     // one ring
    double nvlinkGbPerS = 0; // per device; 0 without
    bool nvlink = false;
};

Result<double> computeCapabilityOf(const Device& device) {
    if (device.computeCapability) return *device.computeCapability;
    switch (device.arch) {
        case GpuArch::Volta: return 7.0;
        case GpuArch::Ampere: return 8.0;
        case GpuArch::Ada: return 8.9;
        case GpuArch::Hopper: return 9.0;
        case GpuArch::Blackwell: return 10.0;
        case GpuArch::BlackwellUltra: return 10.3;
        case GpuArch::Cdna2:
        case GpuArch::Cdna3:
        case GpuArch::Other: break;
    }
    return require(device.computeCapability, device, "compute_capability");
}

bool isAmd(const Device& device) { return device.arch == GpuArch::Cdna2 || device.arch == GpuArch::Cdna3; }

Generation generationOf(double computeCapability) {
    if (computeCapability >= 10.0) return Generation::Blackwell;
    if (computeCapability >= 9.0) return Generation::Hopper;
    return computeCapability >= 8.0 ? Generation::Ampere : Generation::Volta;
}

Result<double> pcieRate(const Device& device) {
    if (!device.pcieNcclGbPerS && device.pcieGbPerS) return *device.pcieGbPerS;
    return require(device.pcieNcclGbPerS, device, "pcie_nccl_gb_per_s");
}

// NCCL's per-link figures are close to 80 % of the signalling rate on every generation since Volta.
Result<double> nvlinkRate(const Device& device) {
    if (!device.nvlinkNcclGbPerS && device.nvlinkGbPerS) return *device.nvlinkGbPerS * 0.8;
    return require(device.nvlinkNcclGbPerS, device, "nvlink_nccl_gb_per_s");
}

// What NCCL assumes of the link between sockets. It tells Intel generations apart by CPU model; the PCIe generation stands in.
double socketLinkGbPerS(CpuVendor cpu, double pcie) {
    if (cpu == CpuVendor::Amd) return 16;
    if (cpu == CpuVendor::Arm) return 6;
    return pcie > 24 ? 22 : 10;
}

Result<IntraNode> overPcie(const NodeKind& kind, std::int64_t ranks) {
    TRY(double rate, pcieRate(kind.device));
    const double pcie = rate;
    // Intel root complexes move peer traffic at 5/6 of the rate.
    if (kind.fabric == IntraNodeFabric::PcieHost && kind.cpu == CpuVendor::Intel && ranks > 1) rate /= 1.2;
    const std::int64_t perSocket = std::max<std::int64_t>(1, kind.devices / std::max<std::int64_t>(1, kind.cpuSockets));
    if (kind.cpuSockets > 1 && ranks > perSocket) rate = std::min(rate, socketLinkGbPerS(kind.cpu, pcie));
    return IntraNode{rate, rate, 0, false};
}

// Directed Hamiltonian rings that fit in the links among the first n GPUs of the 8-GPU hybrid cube mesh (DGX-1V), found by
// exhaustive packing. Five GPUs have none: the fifth has links to only one of the others.
std::int64_t cubeMeshRings(std::int64_t ranks) {
    constexpr std::array<std::int64_t, 9> rings{0, 0, 1, 2, 4, 0, 2, 4, 6};
    return rings[static_cast<std::size_t>(std::clamp<std::int64_t>(ranks, 0, 8))];
}

Result<IntraNode> overNvlinkMesh(const NodeKind& kind, std::int64_t ranks) {
    TRY(const double total, nvlinkRate(kind.device));
    if (kind.devices == 8 && kind.device.nvlinks == 6) {
        const double link = total / 6;
        const auto rings = cubeMeshRings(ranks);
        if (rings == 0) return overPcie(kind, ranks);
        return IntraNode{link * static_cast<double>(rings), link, total, true};
    }
    // Otherwise every pair has the same number of links, and rings can use all links among the devices taken.
    const double pair = total / static_cast<double>(std::max<std::int64_t>(1, kind.devices - 1));
    return IntraNode{pair * static_cast<double>(ranks - 1), pair, total, true};
}

Result<IntraNode> overXgmi(const NodeKind& kind, std::int64_t ranks) {
    // RCCL has no such model; 0.72 of the links is what MI300X all-reduce reaches (47.7 of 64 GB/s with two devices, 312.9 of
    // 448 with eight).
    constexpr double efficiency = 0.72;
    double total = 0;
    if (kind.device.nvlinkGbPerS) {
        total = *kind.device.nvlinkGbPerS * efficiency;
    } else {
        TRY(total, require(kind.device.nvlinkNcclGbPerS, kind.device, "nvlink_gb_per_s"));
    }
    const double pair = total / static_cast<double>(std::max<std::int64_t>(1, kind.devices - 1));
    return IntraNode{pair * static_cast<double>(std::max<std::int64_t>(1, ranks - 1)), pair, total, true};
}

Result<IntraNode> describeIntraNode(const NodeKind& kind, std::int64_t ranks) {
    // A rank alone on its node reaches others through PCIe only.
    if (ranks == 1) {
        if (kind.device.pcieNcclGbPerS || kind.device.pcieGbPerS) return overPcie(kind, ranks);
        const double nic = kind.nics.gbitPerS / 8;
        return IntraNode{nic, nic, 0, false};
    }
    switch (kind.fabric) {
        case IntraNodeFabric::NvSwitch: {
            TRY(const double total, nvlinkRate(kind.device));
            return IntraNode{total, total, total, true};
        }
        case IntraNodeFabric::NvLinkMesh: return overNvlinkMesh(kind, ranks);
        case IntraNodeFabric::XgmiMesh: return overXgmi(kind, ranks);
        case IntraNodeFabric::PcieSwitch:
        case IntraNodeFabric::PcieHost: return overPcie(kind, ranks);
        case IntraNodeFabric::Loopback: break;
    }
    return badInput(kind.name, "the node kind joins CPU ranks by loopback, which NCCL does not do; use the gloo backend");
}

// Trees of two nodes (and CollNet) may run faster inside a node than between nodes, up to twice.
double raisedIntra(std::span<const double> speeds, const Graph& graph, double intraGbPerS) {
    double current = graph.bwIntra;
    for (auto speed = speeds.rbegin(); speed != speeds.rend() && current < 2 * graph.bwInter; ++speed) {
        if (*speed <= current) continue;
        if (*speed * graph.channels > intraGbPerS * (1 + kSlack)) break;
        current = *speed;
    }
    return current;
}

double raisedInter(std::span<const double> speeds, const Graph& graph, double nicGbPerS) {
    double current = graph.bwInter;
    for (auto speed = speeds.rbegin(); speed != speeds.rend() && current < 2 * graph.bwIntra; ++speed) {
        if (*speed <= current) continue;
        if (*speed > nicGbPerS * (1 + kSlack)) break;
        current = *speed;
    }
    return current;
}

struct NicUse {
    std::int64_t nics = 0;
    double gbPerS = 0;  // one NIC, as seen from a device
    double share = 1;
};

NicUse nicsOf(const NodeKind& kind, const GroupShape& group) {
    NicUse use;
    // A group that has only some of a node's devices uses the NICs near them; groups side by side divide the rest.
    const std::int64_t near = (kind.nics.count * group.ranksPerNode + kind.devices - 1) / std::max<std::int64_t>(1, kind.devices);
    const std::int64_t groups = std::max<std::int64_t>(1, group.groupsSharingNics);
    use.nics = std::clamp<std::int64_t>(std::min(near, kind.nics.count / groups), 1, kind.nics.count);
    use.share = std::min(1.0, static_cast<double>(kind.nics.count) / static_cast<double>(groups * use.nics));
    use.gbPerS = kind.nics.gbitPerS / 8;
    if (kind.device.pcieNcclGbPerS) use.gbPerS = std::min(use.gbPerS, *kind.device.pcieNcclGbPerS);
    return use;
}

Result<void> checkGroup(const Cluster& cluster, const GroupShape& group) {
    if (group.nodeKind >= cluster.nodes.size()) {
        return badInput(cluster.name, fmt::format("the group names node kind {} but the cluster has {}", group.nodeKind, cluster.nodes.size()));
    }
    if (group.ranks < 1 || group.nodes < 1 || group.ranksPerNode < 1 || group.ranks < group.nodes) {
        return badInput(cluster.name, fmt::format("a group of {} ranks on {} nodes ({} per node) is not possible", group.ranks, group.nodes,
                                                  group.ranksPerNode));
    }
    const NodeKind& kind = cluster.nodes[group.nodeKind].kind;
    if (group.ranksPerNode > kind.devices) {
        return badInput(cluster.name,
                        fmt::format("the group has {} ranks on a node of {} devices ({})", group.ranksPerNode, kind.devices, kind.name));
    }
    if (group.nodes > 1 && (kind.nics.count < 1 || kind.nics.gbitPerS <= 0)) {
        return badInput(kind.name, fmt::format("the group spans {} nodes but the node kind has no network; give nics.count and nics.gbit_per_s",
                                               group.nodes));
    }
    return {};
}

}  // namespace

Graph searchRing(std::span<const double> speeds, double intraGbPerS, double maxSpeed, std::int64_t nics, double nicGbPerS) {
    Graph best;
    for (const double speed : speeds) {
        if (speed > maxSpeed * (1 + kSlack)) continue;
        if (best.channels > 0 && speed / best.bwInter <= 0.49) break;
        std::int64_t channels = std::min<std::int64_t>(timesIn(intraGbPerS, speed), kMaxRingChannels);
        if (nics > 0) channels = std::min(channels, nics * timesIn(nicGbPerS, speed));
        if (static_cast<double>(channels) * speed > best.channels * best.bwInter * (1 + kSlack)) {
            best = {static_cast<int>(channels), speed, speed};
        }
    }
    return best.channels > 0 ? best : Graph{1, 0.1, 0.1};
}

Graph duplicateChannels(Graph graph, double computeCapability) {
    if (graph.bwIntra < 25) return graph;
    if (computeCapability > 8.0 && graph.bwIntra < 50 && graph.channels > 4) return graph;
    const int channels = std::min(graph.channels * 2, kMaxRingChannels);
    const int times = (channels + graph.channels - 1) / graph.channels;
    return {channels, graph.bwIntra / times, graph.bwInter / times};
}

Graph searchNvls(std::span<const double> speeds, std::int64_t heads, double nvlinkGbPerS) {
    constexpr std::int64_t maxHeads = 32;
    heads = std::min(heads, maxHeads);
    for (const double speed : speeds) {
        if (timesIn(nvlinkGbPerS, speed) < heads + 1) continue;
        Graph graph{static_cast<int>(heads), speed, speed};
        graph.bwInter = raisedInter(speeds, graph, speeds.front());
        return graph;
    }
    return {};
}

Graph searchNvlsInter(std::span<const double> speeds, std::int64_t ranksPerNode, double nvlinkGbPerS, std::int64_t nics, double nicGbPerS) {
    Graph best;
    for (const double speed : speeds) {
        if (speed > nicGbPerS * (1 + kSlack)) continue;
        if (best.channels > 0 && speed / best.bwInter <= 0.49) break;
        const std::int64_t heads = std::min({ranksPerNode, nics * timesIn(nicGbPerS, speed), timesIn(nvlinkGbPerS, speed) - 1});
        if (heads < 1) continue;
        // Heads are devices that pull from the switch: more of them count before faster ones.
        if (heads > best.channels || static_cast<double>(heads) * speed > best.channels * best.bwInter) {
            best = {static_cast<int>(heads), speed, speed};
        }
    }
    if (best.channels > 0) best.bwInter = raisedInter(speeds, best, nicGbPerS);
    return best;
}

Result<Topology> describeTopology(const Cluster& cluster, const GroupShape& group, NcclVersion version, bool networkReduces) {
    TRY_VOID(checkGroup(cluster, group));
    const NodeKind& kind = cluster.nodes[group.nodeKind].kind;
    const bool multiNode = group.nodes > 1;

    Topology t;
    t.ranks = group.ranks;
    t.nodes = group.nodes;
    t.ranksPerNode = static_cast<double>(group.ranks) / static_cast<double>(group.nodes);
    t.amdCpu = kind.cpu == CpuVendor::Amd;
    t.x86 = kind.cpu != CpuVendor::Arm;
    t.nvidia = !isAmd(kind.device);
    if (group.ranks == 1) return t;

    if (t.nvidia) {
        TRY(t.computeCapability, computeCapabilityOf(kind.device));
    } else {
        t.computeCapability = 9.0;  // RCCL's tables are not NCCL's; the contemporary generation stands in
    }
    t.generation = generationOf(t.computeCapability);
    t.nvswitch = kind.fabric == IntraNodeFabric::NvSwitch;

    TRY(const IntraNode intra, describeIntraNode(kind, group.ranksPerNode));
    t.nvlink = intra.nvlink;
    t.nvlinkGbPerS = intra.nvlinkGbPerS;
    const auto speeds = multiNode ? interSpeeds(version, t.generation) : intraSpeeds(version, t.generation);
    NicUse nic;
    if (multiNode) nic = nicsOf(kind, group);

    if (t.nvidia || multiNode) {
        const double maxSpeed = multiNode ? std::min(intra.maxSpeed, nic.gbPerS) : intra.maxSpeed;
        t.ring = duplicateChannels(searchRing(speeds, intra.ringGbPerS, maxSpeed, nic.nics, nic.gbPerS), t.computeCapability);
    } else {
        constexpr int xgmiChannels = 16;
        t.ring = {xgmiChannels, intra.ringGbPerS / xgmiChannels, intra.ringGbPerS / xgmiChannels};
    }
    t.tree = t.ring;
    if (group.nodes == 2 && group.ranksPerNode > 1) t.tree.bwIntra = raisedIntra(speeds, t.tree, intra.ringGbPerS);

    if (t.nvswitch && t.nvidia && t.computeCapability >= 9.0 && group.ranksPerNode > 1) {
        t.nvls = multiNode ? searchNvlsInter(speeds, group.ranksPerNode, intra.nvlinkGbPerS, nic.nics, nic.gbPerS)
                           : searchNvls(speeds, group.ranksPerNode, intra.nvlinkGbPerS);
        // Up to 2.27 two devices do not use NVLS; 2.30 needs two heads.
        const int least = version == NcclVersion::V2_27 ? 3 : 2;
        if ((multiNode ? group.ranksPerNode : t.nvls.channels) < least) t.nvls = {};
        if (version == NcclVersion::V2_30 && t.nvls.channels < 2) t.nvls = {};
    }
    if (networkReduces && multiNode && t.nvidia) {
        constexpr std::int64_t maxHeads = 8;
        const double nvlink = intra.nvlink ? intra.nvlinkGbPerS : intra.ringGbPerS * 2;
        t.collNet = searchNvlsInter(speeds, std::min(group.ranksPerNode, maxHeads), nvlink, nic.nics, nic.gbPerS);
        t.collNet.bwInter = std::min(t.collNet.bwInter, nic.gbPerS);
        if (t.collNet.channels > 0) t.collNet.bwIntra = raisedIntra(speeds, t.collNet, intra.ringGbPerS);
    }

    t.pointToPointGbPerS = t.nvidia && !multiNode ? t.ring.channels * t.ring.bwIntra : intra.ringGbPerS;
    if (multiNode) {
        t.sameChannels = nic.nics == 1;
        t.nicLatencyUs = kind.nics.latencyUs;
        t.netOverheadUs = t.amdCpu && t.x86 ? 2 : 1;
        t.netShare = nic.share;
        t.netGbPerSOneRank = nic.gbPerS * nic.share;
        t.netGbPerSPerRank = std::min(nic.gbPerS, nic.gbPerS * static_cast<double>(nic.nics) / static_cast<double>(group.ranksPerNode)) * nic.share;
        if (group.nodes > cluster.network.nodesPerLeaf) t.fabricShare = 1 / std::max(1.0, cluster.network.oversubscription);
    }
    // LL128 needs stores that stay whole for 128 bytes: NVLink within the node, and NICs that read device memory directly.
    t.ll128 = t.nvidia && t.computeCapability >= 7.0 && (t.nvlink || group.ranksPerNode == 1) && (!multiNode || kind.nics.gpuDirect);
    return t;
}

}  // namespace ringside::nccl
