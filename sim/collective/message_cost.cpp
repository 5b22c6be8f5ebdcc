#include "sim/collective/message_cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/collective/message_level.h"
#include "sim/collective/tree_all_reduce.h"

namespace ringside {
namespace {

constexpr double kFewestChunks = 64, kMostChunks = 4096;  // of trees and chains
constexpr double kMostPasses = 8e6;                       // chunks times ranks that are played: about a minute

// Link ids: what kind of link, and which.
constexpr std::uint64_t kWire = 0, kNicOut = std::uint64_t{1} << 60, kNicIn = std::uint64_t{2} << 60, kLeafUp = std::uint64_t{3} << 60, kLeafDown = std::uint64_t{4} << 60;
constexpr std::uint64_t kKindMask = std::uint64_t{15} << 60;

struct Wire {
    double latencySeconds = 0, bytesPerSecond = 1;
    Bytes chunkBytes = 1;
};

/// A pipeline of `hops` stages through which `bytes` pass in chunks: T = hops·(α + c/B) + (C − 1)·c/B. The closed form
/// T = latency + bytes/B counts a chunk's time per stage as part of the hop's latency, so chunks are cut fine enough to fit
/// into it and α is what remains.
Wire pipeline(double hops, double bytes, const CollectiveCost& cost) {
    Wire wire;
    const double transfer = std::max(cost.transferSeconds, 1e-15);
    wire.bytesPerSecond = bytes / transfer;
    const double hopSeconds = cost.latencySeconds / hops;
    const double chunks = std::clamp(std::ceil(2 * transfer / std::max(hopSeconds, 1e-12)), kFewestChunks, kMostChunks);
    wire.chunkBytes = std::max<Bytes>(1, static_cast<Bytes>(std::ceil(bytes / chunks)));
    // Chunks are whole bytes, so the last one may be short of data; all are sent at full size.
    const double sent = std::ceil(bytes / static_cast<double>(wire.chunkBytes)) * static_cast<double>(wire.chunkBytes);
    const double chunkSeconds = static_cast<double>(wire.chunkBytes) / wire.bytesPerSecond;
    const double fill = (hops - 1) * chunkSeconds + (sent - bytes) / wire.bytesPerSecond;
    wire.latencySeconds = std::max(0.0, (cost.latencySeconds - fill) / hops);
    return wire;
}

/// Solves the algorithm's own closed form T = latency + transfer for the wire that gives it.
Wire wireOf(CollectiveOp op, const CollectiveCost& cost, const GroupShape& group, Bytes bytes) {
    const double n = static_cast<double>(group.ranks), size = static_cast<double>(bytes);
    if (cost.algorithm == CollectiveAlgorithm::Tree)  // each tree carries half, up and down again
        return pipeline(2 * static_cast<double>(doubleTreeDepth(group.ranks, group.ranksPerNode)), size / 2, cost);
    if (op == CollectiveOp::Broadcast || op == CollectiveOp::Reduce) return pipeline(n - 1, size, cost);
    Wire wire;
    const double hops = (op == CollectiveOp::AllReduce ? 2 : 1) * (n - 1);
    wire.latencySeconds = cost.latencySeconds / hops;
    wire.bytesPerSecond = hops * static_cast<double>((bytes + group.ranks - 1) / group.ranks) / std::max(cost.transferSeconds, 1e-15);
    return wire;
}

MessageNetwork networkFor(const Cluster& cluster, const GroupShape& group, const Wire& wire, std::int64_t ranksPerNode) {
    const NodeKind& kind = cluster.nodes[group.nodeKind].kind;
    const NetworkSpec& spec = cluster.network;
    const double nics = static_cast<double>(kind.nics.count) * kind.nics.gbitPerS * 1e9 / 8 / static_cast<double>(std::max<std::int64_t>(1, group.groupsSharingNics));
    const bool uplinks = spec.oversubscription > 1 && group.nodes > spec.nodesPerLeaf;
    const double uplink = nics * static_cast<double>(spec.nodesPerLeaf) / std::max(1.0, spec.oversubscription);
    const std::int64_t nodesPerLeaf = std::max<std::int64_t>(1, spec.nodesPerLeaf);

    MessageNetwork network;
    network.ranks = group.ranks;
    network.ranksPerNode = ranksPerNode;
    const Time latency = Time::fromSeconds(wire.latencySeconds);
    network.route = [=, rate = wire.bytesPerSecond](std::int64_t source, std::int64_t destination, std::uint32_t lane, MessageRoute& route) {
        const auto ranks = static_cast<std::uint64_t>(group.ranks);
        route.add(kWire | ((static_cast<std::uint64_t>(lane) * ranks + static_cast<std::uint64_t>(source)) * ranks + static_cast<std::uint64_t>(destination)), rate);
        route.latency = latency;
        const std::int64_t from = source / ranksPerNode, to = destination / ranksPerNode;
        if (from == to || nics <= 0) return;
        route.add(kNicOut | static_cast<std::uint64_t>(from), nics);
        route.add(kNicIn | static_cast<std::uint64_t>(to), nics);
        if (!uplinks || from / nodesPerLeaf == to / nodesPerLeaf) return;
        route.add(kLeafUp | static_cast<std::uint64_t>(from / nodesPerLeaf), uplink);
        route.add(kLeafDown | static_cast<std::uint64_t>(to / nodesPerLeaf), uplink);
    };
    if (!uplinks && group.ranks % ranksPerNode == 0) {
        RotationSymmetry symmetry;
        symmetry.ranksPerTurn = ranksPerNode;
        symmetry.linkClass = [ranks = group.ranks, ranksPerNode](std::uint64_t link) -> RotationSymmetry::LinkClass {
            if ((link & kKindMask) != kWire) return {link & kKindMask, 1};
            const auto n = static_cast<std::uint64_t>(ranks), turn = static_cast<std::uint64_t>(ranksPerNode);
            const std::uint64_t source = link / n % n, destination = link % n, lane = link / n / n;
            const std::uint64_t ahead = (destination + n - source) % n;
            return {(lane * n + source % turn) * n + ahead, 1};
        };
        network.symmetry = std::move(symmetry);
    }
    return network;
}

}  // namespace

Result<MessageCost> messageLevelCost(const Cluster& cluster, const GroupShape& group, const CollectiveModel& closed, CollectiveOp op, Bytes bytes) {
    MessageCost result;
    TRY(result.cost, closed.checkedCost(op, bytes));
    const bool ringOrTree = result.cost.algorithm == CollectiveAlgorithm::Ring || result.cost.algorithm == CollectiveAlgorithm::Tree;
    const bool known = op == CollectiveOp::AllReduce || op == CollectiveOp::AllGather || op == CollectiveOp::ReduceScatter || op == CollectiveOp::Broadcast || op == CollectiveOp::Reduce;
    if (group.ranks < 2 || bytes <= 0 || !ringOrTree || !known) return result;
    const std::int64_t ranksPerNode = group.nodes * group.ranksPerNode == group.ranks ? group.ranksPerNode : group.ranks;
    GroupShape shape = group;
    shape.ranksPerNode = ranksPerNode;
    const Wire wire = wireOf(op, result.cost, shape, bytes);
    // Rings are folded and cost nothing; in a tree or a chain every rank passes every chunk on.
    const double passes = static_cast<double>(group.ranks) * std::ceil(static_cast<double>(bytes) / static_cast<double>(wire.chunkBytes));
    const bool chunked = result.cost.algorithm == CollectiveAlgorithm::Tree || op == CollectiveOp::Broadcast || op == CollectiveOp::Reduce;
    if (chunked && passes > kMostPasses)
        return badInput("collectives.level", fmt::format("{} of {} ranks is {} messages at the message level, more than {}; use the level closed, fewer ranks, or the algorithm ring",
                                                         nameOf(op), formatCount(group.ranks), formatShortCount(passes), formatShortCount(kMostPasses)));
    MessageLevelOptions options;
    options.chunkBytes = wire.chunkBytes;
    TRY(const MessageLevelResult played, playCollectiveFolded(networkFor(cluster, shape, wire, ranksPerNode), op, result.cost.algorithm, bytes, options));
    result.cost.seconds = played.duration.seconds();
    result.messages = played.messages;
    return result;
}

}  // namespace ringside
