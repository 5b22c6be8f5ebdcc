#include "model/cost/nccl_formulas.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ringside::nccl {
namespace {

using Op = CollectiveOp;
using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;

bool isGatherOrScatter(Op op) { return op == Op::AllGather || op == Op::ReduceScatter; }
bool isRooted(Op op) { return op == Op::Broadcast || op == Op::Reduce; }

double ringSteps(Op op, std::int64_t ranks) {
    if (op == Op::AllReduce) return static_cast<double>(2 * (ranks - 1));
    return static_cast<double>(isGatherOrScatter(op) ? ranks - 1 : ranks);
}

double floorLog2(std::int64_t n) { return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n)) - 1); }

// Devices of a node other than one's own, as NCCL's whole division counts them.
double othersInNode(const Topology& t) { return static_cast<double>(t.ranks / t.nodes - 1); }

const Graph& graphOf(const Topology& t, Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::Tree: return t.tree;
        case Algorithm::Nvls:
        case Algorithm::NvlsTree: return t.nvls;
        case Algorithm::CollNetDirect: return t.collNet;
        default: return t.ring;
    }
}

double nvlsPerChannel(const Topology& t, NcclVersion version, Algorithm algorithm, double nvlsTreeCap) {
    const Graph& g = t.nvls;
    const bool twoNodes = t.nodes <= 2;
    if (version == NcclVersion::V2_27) {
        if (algorithm == Algorithm::NvlsTree) return std::min(g.bwIntra, twoNodes ? g.bwInter : g.bwInter / 2);
        return std::min(g.bwIntra, g.bwInter);
    }
    // All-reduce pipelines its reduce and its broadcast half.
    const double intra = 2 * g.bwIntra * nvlsEfficiency(t.generation) * (g.channels - 1) / g.channels;
    if (algorithm == Algorithm::NvlsTree) return std::min({intra, g.bwInter * (twoNodes ? 2 : 1), nvlsTreeCap});
    return std::min(intra, g.bwInter);
}

double treeBandwidth(const Topology& t, const Caps& caps, Protocol protocol) {
    const double channels = t.tree.channels;
    const double perChannel = t.nodes <= 2 ? t.tree.bwIntra : t.tree.bwInter;
    double bus = std::min(channels * perChannel * 0.92, channels * caps.treePerChannel);
    if (protocol == Protocol::LL) bus = std::min(bus / 3.8, caps.ll);
    if (protocol == Protocol::LL128) {
        bus = std::min(bus * (t.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0), channels * caps.treeLL128PerChannel);
    }
    // One device per node leaves only the plain tree, where the same device sends up and down.
    if (t.ranks / t.nodes == 1) bus *= 0.85;
    return bus;
}

double ringBandwidth(const Topology& t, const Caps& caps, Protocol protocol) {
    const double bus = t.ring.channels * (t.nodes <= 2 ? t.ring.bwIntra : t.ring.bwInter);
    if (protocol == Protocol::LL) return std::min(caps.ll, bus * 0.5);
    if (protocol == Protocol::LL128) return std::min(bus * 0.92, t.ring.channels * caps.ringLL128PerChannel);
    return bus;
}

double collNetDirectBandwidth(const Topology& t) {
    const double bus = t.collNet.channels * t.collNet.bwIntra;
    double devicesPerNic = t.ranksPerNode / t.collNet.channels;
    devicesPerNic -= (devicesPerNic - 1) / 2;
    return bus / devicesPerNic * (t.computeCapability >= 9.0 ? 0.85 : 1.0);
}

}  // namespace

bool isAvailable(const Topology& t, Op op, Algorithm algorithm, Protocol protocol, bool networkReduces) {
    if (op == Op::AllToAll || op == Op::SendRecv || op == Op::Gather || op == Op::Scatter) return false;
    if (algorithm == Algorithm::Ring) return true;
    if (isRooted(op)) return false;
    const bool simple = protocol == Protocol::Simple;
    switch (algorithm) {
        case Algorithm::Tree: return op == Op::AllReduce;
        case Algorithm::Nvls:
            // All-gather and reduce-scatter use it only on buffers that the user registered, which frameworks do not do by default.
            if (op != Op::AllReduce || (t.nodes > 1 && !networkReduces)) return false;
            return simple && t.nvls.channels > 0;
        case Algorithm::NvlsTree: return simple && op == Op::AllReduce && t.nodes > 1 && t.nvls.channels > 0;
        case Algorithm::CollNetDirect:
            return simple && op == Op::AllReduce && t.nodes > 1 && networkReduces && t.nvswitch && t.collNet.channels > 0;
        case Algorithm::CollNetChain: return simple && op == Op::AllReduce && t.nodes > 1 && networkReduces && t.collNet.channels > 0;
        case Algorithm::Pat: return simple && op != Op::AllReduce && t.nodes == t.ranks && t.nodes > 1 && t.nvidia;
        default: return false;
    }
}

double latencyUs(const Topology& t, NcclVersion version, Op op, Algorithm algorithm, Protocol protocol) {
    const Link intraLink = t.nvlink ? Link::NvLink : Link::Pcie;
    const bool simple = protocol == Protocol::Simple;
    const double base = baseLatencyUs(algorithm, protocol);
    double intra = hopLatencyUs(version, intraLink, algorithm, protocol);
    // With one rank per node network latency is exposed in full; Simple also waits for the flush of the received data.
    double inter = hopLatencyUs(version, Link::Net, t.ranksPerNode == 1 ? Algorithm::Tree : algorithm, protocol);
    inter += t.nicLatencyUs * (simple ? 2 : 1);
    const double nodesLog = floorLog2(t.nodes);

    switch (algorithm) {
        case Algorithm::Ring: {
            if (isRooted(op)) {
                const Link link = t.nodes == 1 ? intraLink : Link::Net;
                if (t.sameChannels) return base + hopLatencyUs(version, link, Algorithm::Ring, protocol);
                return base + ringSteps(op, t.ranks) * hopLatencyUs(version, link, simple ? Algorithm::Tree : Algorithm::Ring, protocol);
            }
            intra = std::max(intra, t.netOverheadUs * (simple ? 3 : 1));
            const double interSteps = static_cast<double>((op == Op::AllReduce ? 2 : 1) * (t.nodes - 1));
            return base + (ringSteps(op, t.ranks) - interSteps) * intra + interSteps * inter;
        }
        case Algorithm::Tree: return base + 2 * (othersInNode(t) * intra + nodesLog * inter);
        case Algorithm::CollNetDirect: return base + 2 * (std::min(1.0, othersInNode(t)) * intra + othersInNode(t) * 0.4) + inter;
        case Algorithm::CollNetChain: return base + 2 * othersInNode(t) * intra + inter;
        case Algorithm::Nvls: return intra + (t.nodes > 1 ? inter : 0);
        case Algorithm::NvlsTree: return base + intra + 2 * nodesLog * inter;
        case Algorithm::Pat: return base + nodesLog * (inter / 3.5) + static_cast<double>(t.ranks) * 2.8;
        default: return base;
    }
}

double algorithmBandwidth(const Topology& t, NcclVersion version, Op op, Algorithm algorithm, Protocol protocol) {
    const Caps limits = caps(version, t.generation, t.nodes, t.amdCpu);
    const double busToAlgorithm = static_cast<double>(t.ranks) / ringSteps(op, t.ranks);
    const Graph& graph = graphOf(t, algorithm);
    switch (algorithm) {
        case Algorithm::Ring: return ringBandwidth(t, limits, protocol) * busToAlgorithm;
        case Algorithm::Tree: return treeBandwidth(t, limits, protocol) * 0.5;
        case Algorithm::Nvls:
        case Algorithm::NvlsTree: {
            const double bus = graph.channels * nvlsPerChannel(t, version, algorithm, limits.nvlsTreePerChannel);
            return version == NcclVersion::V2_27 ? bus * 5.0 / 6.0 : bus * busToAlgorithm;
        }
        case Algorithm::CollNetDirect: return collNetDirectBandwidth(t) * 0.5;
        case Algorithm::CollNetChain: return graph.channels * graph.bwIntra * 0.5;
        case Algorithm::Pat: return graph.channels * (t.nodes <= 2 ? graph.bwIntra : graph.bwInter) * 0.75;
        default: return 0;
    }
}

int communicatorChannels(const Topology& t) { return std::min(2 * t.ring.channels, kMaxChannels); }

Bytes bytesPerChannel(const Topology& t, Algorithm algorithm, Protocol protocol) {
    const bool slowRing = t.ring.channels * t.ring.bwIntra <= 12;
    switch (protocol) {
        case Protocol::LL: return Bytes{512} * 8 * (algorithm == Algorithm::Ring ? t.ranks : 1);
        case Protocol::LL128: return Bytes{640} * 8;
        default: return Bytes{algorithm == Algorithm::Ring && slowRing ? 256 : 512} * 64;
    }
}

bool hasPlateau(const Topology& t, Op op, Algorithm algorithm, Protocol protocol) {
    return algorithm == Algorithm::Ring && protocol == Protocol::Simple && op == Op::AllReduce && t.nodes > 1;
}

PointToPoint pointToPoint(const Topology& t, NcclVersion version, Op op) {
    const bool multiNode = t.nodes > 1;
    const Link link = multiNode ? Link::Net : (t.nvlink ? Link::NvLink : Link::Pcie);
    const Bytes chunk = t.nvlink && !multiNode ? 512 * kKiB : 128 * kKiB;
    PointToPoint p;
    p.latencyUs = baseLatencyUs(Algorithm::Ring, Protocol::Simple) + hopLatencyUs(version, link, Algorithm::Ring, Protocol::Simple);
    if (multiNode) p.latencyUs += 2 * t.nicLatencyUs;
    p.bytesPerChannel = chunk;
    if (op == Op::SendRecv) {
        p.usPerByte = 1 / (1000 * (multiNode ? std::min(t.netGbPerSOneRank, t.pointToPointGbPerS) : t.pointToPointGbPerS));
        p.fillBytes = chunk;
        return p;
    }
    // All-to-all, and the root of a gather or scatter: (n − ppn)/n of the buffer leaves the node, (ppn − 1)/n stays within; both run at once.
    const double n = static_cast<double>(t.ranks);
    const double within = (t.ranksPerNode - 1) / n / (1000 * t.pointToPointGbPerS);
    const double across = multiNode ? (n - t.ranksPerNode) / n / (1000 * t.netGbPerSPerRank * t.fabricShare) : 0;
    p.usPerByte = std::max(within, across);
    p.fillBytes = chunk * std::min<std::int64_t>(t.ranks, communicatorChannels(t));
    return p;
}

}  // namespace ringside::nccl
