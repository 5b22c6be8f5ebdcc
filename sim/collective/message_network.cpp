#include "sim/collective/message_network.h"

#include "model/hardware/topology.h"

#include <memory>
#include <utility>

#include "model/base/check.h"

namespace ringside {

namespace {

// Ids of a shared-NIC network: kind in the top byte, node below it, port or NIC within the node in the low 20 bits.
// Clearing the node then names the class of a link under rotation by whole nodes.
enum class SharedLink : std::uint64_t { DeviceOut, DeviceIn, NicOut, NicIn, Core };
constexpr std::uint64_t kLocalBits = 20;
constexpr std::uint64_t kNodeMask = ((std::uint64_t{1} << 56) - 1) & ~((std::uint64_t{1} << kLocalBits) - 1);

constexpr std::uint64_t linkId(SharedLink kind, std::int64_t node, std::int64_t local) {
    return static_cast<std::uint64_t>(kind) << 56 | static_cast<std::uint64_t>(node) << kLocalBits | static_cast<std::uint64_t>(local);
}

}  // namespace

MessageNetwork uniformNetwork(std::int64_t ranks, double bytesPerSecond, Time latency) {
    MessageNetwork network;
    network.ranks = ranks;
    // Named by source, distance and lane (two lanes at most are in use): turning the ranks keeps the last two.
    const std::uint64_t n = static_cast<std::uint64_t>(ranks);
    network.route = [=](std::int64_t source, std::int64_t destination, std::uint32_t lane, MessageRoute& route) {
        const std::uint64_t distance = static_cast<std::uint64_t>(destination - source + ranks) % n;
        route.add((static_cast<std::uint64_t>(source) * n + distance) * 2 + lane % 2, bytesPerSecond);
        route.latency = latency;
    };
    network.symmetry = RotationSymmetry{1, [n](std::uint64_t link) { return RotationSymmetry::LinkClass{link % (2 * n), 1}; }};
    return network;
}

MessageNetwork portNetwork(std::int64_t ranks, double bytesPerSecond, Time latency) {
    MessageNetwork network;
    network.ranks = ranks;
    network.route = [=](std::int64_t source, std::int64_t destination, std::uint32_t, MessageRoute& route) {
        route.add(static_cast<std::uint64_t>(source) * 2, bytesPerSecond);
        route.add(static_cast<std::uint64_t>(destination) * 2 + 1, bytesPerSecond);
        route.latency = latency;
    };
    network.symmetry = RotationSymmetry{1, [](std::uint64_t link) { return RotationSymmetry::LinkClass{link % 2, 1}; }};
    return network;
}

MessageNetwork sharedNicNetwork(const SharedNicSpec& spec) {
    CHECK(spec.nodes > 0 && spec.devicesPerNode > 0 && spec.nicsPerNode > 0);
    const bool nodeMajor = spec.order == SharedNicSpec::RankOrder::NodeMajor;
    MessageNetwork network;
    network.ranks = spec.nodes * spec.devicesPerNode;
    network.ranksPerNode = nodeMajor ? spec.devicesPerNode : 1;
    network.route = [spec, nodeMajor](std::int64_t source, std::int64_t destination, std::uint32_t, MessageRoute& route) {
        const auto placeOf = [&](std::int64_t rank) {
            return nodeMajor ? std::pair(rank / spec.devicesPerNode, rank % spec.devicesPerNode) : std::pair(rank % spec.nodes, rank / spec.nodes);
        };
        const auto [fromNode, fromDevice] = placeOf(source);
        const auto [toNode, toDevice] = placeOf(destination);
        if (fromNode == toNode) {
            route.add(linkId(SharedLink::DeviceOut, fromNode, fromDevice), spec.intraBytesPerSecond);
            route.add(linkId(SharedLink::DeviceIn, toNode, toDevice), spec.intraBytesPerSecond);
            route.latency = spec.intraLatency;
            return;
        }
        const auto nicOf = [&](std::int64_t device) { return device * spec.nicsPerNode / spec.devicesPerNode; };
        const SharedLink in = spec.fullDuplexNics ? SharedLink::NicIn : SharedLink::NicOut;
        route.add(linkId(SharedLink::NicOut, fromNode, nicOf(fromDevice)), spec.nicBytesPerSecond);
        if (spec.coreBytesPerSecond > 0) route.add(linkId(SharedLink::Core, 0, 0), spec.coreBytesPerSecond);
        route.add(linkId(in, toNode, nicOf(toDevice)), spec.nicBytesPerSecond);
        route.latency = spec.nicLatency;
    };
    if (nodeMajor)
        network.symmetry = RotationSymmetry{spec.devicesPerNode, [nodes = spec.nodes](std::uint64_t link) {
                                                const bool isCore = link >> 56 == static_cast<std::uint64_t>(SharedLink::Core);
                                                return RotationSymmetry::LinkClass{link & ~kNodeMask, isCore ? nodes : 1};
                                            }};
    return network;
}

MessageNetwork sharedNicNetwork(std::int64_t nodes, std::int64_t devicesPerNode, double intraBytesPerSecond, double nicBytesPerSecond,
                                std::int64_t nicsPerNode, Time intraLatency, Time nicLatency) {
    SharedNicSpec spec;
    spec.nodes = nodes;
    spec.devicesPerNode = devicesPerNode;
    spec.intraBytesPerSecond = intraBytesPerSecond;
    spec.nicBytesPerSecond = nicBytesPerSecond;
    spec.nicsPerNode = nicsPerNode;
    spec.intraLatency = intraLatency;
    spec.nicLatency = nicLatency;
    return sharedNicNetwork(spec);
}

MessageNetwork networkOf(const Topology& topology, std::span<const std::int64_t> ranks, Time hopLatency) {
    MessageNetwork network;
    network.ranks = static_cast<std::int64_t>(ranks.size());
    // Consecutive ranks of one node, where all nodes hold equally many; else every rank counts as a node of its own.
    const Cluster& cluster = topology.cluster();
    std::int64_t run = 1;
    while (run < network.ranks && cluster.nodeOf(ranks[static_cast<std::size_t>(run)]) == cluster.nodeOf(ranks[0])) ++run;
    bool regular = network.ranks % run == 0;
    for (std::int64_t i = 1; regular && i < network.ranks; ++i) {
        const bool sameNode = cluster.nodeOf(ranks[static_cast<std::size_t>(i)]) == cluster.nodeOf(ranks[static_cast<std::size_t>(i - 1)]);
        regular = sameNode == (i % run != 0);
    }
    network.ranksPerNode = regular ? run : 1;
    auto members = std::make_shared<const std::vector<std::int64_t>>(ranks.begin(), ranks.end());
    network.route = [&topology, members, hopLatency](std::int64_t source, std::int64_t destination, std::uint32_t, MessageRoute& out) {
        const Route way = route(topology, (*members)[static_cast<std::size_t>(source)], (*members)[static_cast<std::size_t>(destination)]);
        for (const LinkId link : way.links) out.add(link, topology.link(link).bytesPerS);
        out.latency = hopLatency + Time::fromSeconds(way.latencyS);
    };
    return network;
}

}  // namespace ringside
