// Double binary tree all-reduce: two trees, each reducing half of the buffer to its root and broadcasting it back.
//
// The nodes form both trees; inside a node the devices form a chain below its first device. The second tree is the
// mirror of the first (even number of nodes) or the first shifted by one (odd), so that a leaf of one is inner in the
// other (NCCL 2.30 src/graph/trees.cc); only rank 0 of an odd count is inner in both. Each half
// is cut into C chunks of c = S/(2C) bytes that follow each other.
// Message pattern: a rank sends a chunk up when all its children have sent theirs; the root turns it round; a rank sends
// it down when it came from above. 2·2(n − 1)·C messages.
// Closed form, h = depth in hops: T = 2h·(α + c/B) + (C − 1)·c/B where every pair has a wire of its own per tree. On one
// port per rank, inner ranks carry about 2S each way, and 2S/B is the lower bound: NCCL's factor ½ for trees.
#pragma once

#include <array>

#include "sim/collective/pattern.h"

namespace ringside {

/// Parent of every node in one of the two trees; −1 for the root. REQUIRES: nodes ≥ 1, tree 0 or 1.
std::vector<std::int64_t> binaryTreeParents(std::int64_t nodes, int tree);
/// The larger depth of both trees in hops: tree over the nodes plus the chain inside a node.
std::int64_t doubleTreeDepth(std::int64_t ranks, std::int64_t ranksPerNode);

class TreePattern {
public:
    /// REQUIRES: ranks ≥ 2, a multiple of ranksPerNode; bytes > 0.
    TreePattern(std::int64_t ranks, std::int64_t ranksPerNode, Bytes bytes, Bytes chunkBytes);

    std::vector<Connection> connections() const { return connections_; }
    std::uint64_t messageCount() const { return std::uint64_t{chunks_} * connections_.size(); }

    template <class Emit>
    void ready(std::uint32_t rank, Emit emit) {
        for (std::uint32_t tree = 0; tree < 2; ++tree) {
            seatOf(tree, rank).isReady = true;
            sendUp(tree, rank, emit);
            sendDown(tree, rank, emit);
        }
    }
    template <class Emit>
    void delivered(std::uint32_t connection, Emit emit) {
        const Role role = roles_[connection];
        if (role.isUp) {
            const std::uint32_t parent = static_cast<std::uint32_t>(seatOf(role.tree, role.child).parent);
            ++seatOf(role.tree, role.child).reported;
            sendUp(role.tree, parent, emit);
        } else {
            ++seatOf(role.tree, role.child).fromAbove;
            sendDown(role.tree, role.child, emit);
        }
    }

private:
    static constexpr std::uint32_t kNoRank = ~std::uint32_t{0};
    static constexpr std::size_t kMostChildren = 3;  // two in the tree, one in the chain

    struct Role {
        std::uint32_t child = 0;
        std::uint8_t tree = 0;
        bool isUp = false;
    };
    struct Seat {  // a rank's place in one tree
        std::int64_t parent = -1;
        std::array<std::uint32_t, kMostChildren> children{kNoRank, kNoRank, kNoRank};
        std::uint32_t up = 0, down = 0;  // connections to and from the parent
        std::uint32_t reported = 0;      // chunks that arrived at the parent
        std::uint32_t sentUp = 0, fromAbove = 0, sentDown = 0;
        bool isReady = false;
    };

    Seat& seatOf(std::uint32_t tree, std::uint32_t rank) { return seats_[tree * ranks_ + rank]; }

    template <class Emit>
    void sendUp(std::uint32_t tree, std::uint32_t rank, Emit emit) {
        Seat& seat = seatOf(tree, rank);
        if (!seat.isReady) return;
        std::uint32_t reduced = chunks_;
        for (const std::uint32_t child : seat.children)
            if (child != kNoRank) reduced = std::min(reduced, seatOf(tree, child).reported);
        if (reduced == seat.sentUp) return;
        const std::uint32_t fresh = reduced - seat.sentUp;
        seat.sentUp = reduced;
        if (seat.parent >= 0) {
            emit(seat.up, fresh);
        } else {
            seat.fromAbove = reduced;
            sendDown(tree, rank, emit);
        }
    }
    template <class Emit>
    void sendDown(std::uint32_t tree, std::uint32_t rank, Emit emit) {
        Seat& seat = seatOf(tree, rank);
        if (!seat.isReady || seat.fromAbove == seat.sentDown) return;
        const std::uint32_t fresh = seat.fromAbove - seat.sentDown;
        seat.sentDown = seat.fromAbove;
        for (const std::uint32_t child : seat.children)
            if (child != kNoRank) emit(seatOf(tree, child).down, fresh);
    }

    std::uint32_t ranks_, chunks_;
    std::vector<Seat> seats_;  // tree-major
    std::vector<Connection> connections_;
    std::vector<Role> roles_;
};

inline TreePattern treeAllReduce(std::int64_t ranks, std::int64_t ranksPerNode, Bytes bytes, Bytes chunkBytes = kPipelineChunk) {
    return TreePattern(ranks, ranksPerNode, bytes, chunkBytes);
}
double treeAllReduceSeconds(std::int64_t ranks, std::int64_t ranksPerNode, Bytes bytes, AlphaBeta link, Bytes chunkBytes = kPipelineChunk);

}  // namespace ringside
