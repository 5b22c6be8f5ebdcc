#include "sim/collective/tree_all_reduce.h"

#include "model/base/check.h"

namespace ringside {

namespace {

// The tree in which a node's height is its number of trailing zero bits: odd nodes are leaves, node 0 is the root and has
// one child. A parent differs from its child in the child's lowest one-bit and the bit above it; where that parent does
// not exist (the count is no power of two) the child hangs on the next existing one towards the root.
std::int64_t firstTreeParent(std::int64_t node, std::int64_t nodes) {
    if (node == 0) return -1;
    const std::int64_t low = node & -node;
    const std::int64_t above = (node - low) | (low * 2);
    return above < nodes ? above : node - low;
}

std::int64_t depthOf(const std::vector<std::int64_t>& parents) {
    std::int64_t deepest = 0;
    for (std::int64_t parent : parents) {
        std::int64_t depth = 0;
        for (; parent >= 0; parent = parents[static_cast<std::size_t>(parent)]) ++depth;
        deepest = std::max(deepest, depth);
    }
    return deepest;
}

}  // namespace

std::vector<std::int64_t> binaryTreeParents(std::int64_t nodes, int tree) {
    std::vector<std::int64_t> parents(static_cast<std::size_t>(nodes));
    const auto seat = [&](std::int64_t node) {  // the node of the first tree whose place this one takes
        if (tree == 0) return node;
        return nodes % 2 == 0 ? nodes - 1 - node : (node + nodes - 1) % nodes;
    };
    const auto nodeAt = [&](std::int64_t place) {
        if (tree == 0) return place;
        return nodes % 2 == 0 ? nodes - 1 - place : (place + 1) % nodes;
    };
    for (std::int64_t node = 0; node < nodes; ++node) {
        const std::int64_t parent = firstTreeParent(seat(node), nodes);
        parents[static_cast<std::size_t>(node)] = parent < 0 ? -1 : nodeAt(parent);
    }
    return parents;
}

std::int64_t doubleTreeDepth(std::int64_t ranks, std::int64_t ranksPerNode) {
    const std::int64_t nodes = ranks / ranksPerNode;
    return std::max(depthOf(binaryTreeParents(nodes, 0)), depthOf(binaryTreeParents(nodes, 1))) + ranksPerNode - 1;
}

TreePattern::TreePattern(std::int64_t ranks, std::int64_t ranksPerNode, Bytes bytes, Bytes chunkBytes)
    : ranks_(static_cast<std::uint32_t>(ranks)),
      chunks_(static_cast<std::uint32_t>(pipelineChunks(partOf(bytes, 2), chunkBytes))),
      seats_(static_cast<std::size_t>(2 * ranks)) {
    CHECK(ranks >= 2 && ranks % ranksPerNode == 0);
    const Bytes messageBytes = partOf(partOf(bytes, 2), chunks_);
    for (std::uint32_t tree = 0; tree < 2; ++tree) {
        const std::vector<std::int64_t> nodeParents = binaryTreeParents(ranks / ranksPerNode, static_cast<int>(tree));
        for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
            const std::int64_t node = rank / ranksPerNode;
            const std::int64_t nodeParent = nodeParents[static_cast<std::size_t>(node)];
            Seat& seat = seatOf(tree, rank);
            seat.parent = rank % ranksPerNode != 0 ? std::int64_t{rank} - 1 : nodeParent < 0 ? -1 : nodeParent * ranksPerNode;
            if (seat.parent < 0) continue;
            const std::uint32_t parent = static_cast<std::uint32_t>(seat.parent);
            auto& children = seatOf(tree, parent).children;
            const auto place = std::find(children.begin(), children.end(), kNoRank);
            CHECK(place != children.end());
            *place = rank;
            seat.up = static_cast<std::uint32_t>(connections_.size());
            connections_.push_back({rank, parent, messageBytes, tree});
            roles_.push_back({rank, static_cast<std::uint8_t>(tree), true});
            seat.down = static_cast<std::uint32_t>(connections_.size());
            connections_.push_back({parent, rank, messageBytes, tree});
            roles_.push_back({rank, static_cast<std::uint8_t>(tree), false});
        }
    }
}

double treeAllReduceSeconds(std::int64_t ranks, std::int64_t ranksPerNode, Bytes bytes, AlphaBeta link, Bytes chunkBytes) {
    const double half = static_cast<double>(bytes) / 2;
    const double chunks = static_cast<double>(pipelineChunks(partOf(bytes, 2), chunkBytes));
    const double hops = 2.0 * static_cast<double>(doubleTreeDepth(ranks, ranksPerNode));
    return hops * link.seconds(half / chunks) + (chunks - 1) * link.wireSeconds(half / chunks);
}

}  // namespace ringside
