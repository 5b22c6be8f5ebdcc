// The closed forms and the message level agree where nothing contends.
#include <gtest/gtest.h>

#include "sim/collective/broadcast.h"
#include "sim/collective/halving_doubling.h"
#include "sim/collective/hierarchical.h"
#include "sim/collective/message_level.h"
#include "sim/collective/reduce.h"
#include "sim/collective/ring_all_gather.h"
#include "sim/collective/ring_all_reduce.h"
#include "sim/collective/ring_reduce_scatter.h"
#include "sim/collective/tree_all_reduce.h"

namespace ringside {
namespace {

constexpr double kBandwidth = 25e9;
constexpr AlphaBeta kLink{5e-6, kBandwidth};
using Algorithm = CollectiveAlgorithm;

MessageNetwork uniform(std::int64_t ranks) { return uniformNetwork(ranks, kBandwidth, Time::fromMicroseconds(5)); }

double played(const MessageNetwork& network, CollectiveOp op, Algorithm algorithm, Bytes bytes) {
    const auto result = playCollective(network, op, algorithm, bytes);
    EXPECT_TRUE(result) << result.error().toString();
    return result ? result->duration.seconds() : 0;
}

template <class Check>
void forRanksAndSizes(Check check) {
    for (const std::int64_t ranks : {2, 3, 4, 5, 7, 8, 16, 31, 64})
        for (const Bytes bytes : {kMiB, 25 * kMiB, kGiB}) {
            SCOPED_TRACE(testing::Message() << ranks << " ranks, " << bytes << " bytes");
            check(ranks, bytes);
        }
}

void expectWithinOnePercent(double message, double closed) { EXPECT_NEAR(message, closed, 0.01 * closed); }

TEST(ClosedForms, RingAllReduceAgreesWithItsMessages) {
    forRanksAndSizes([](std::int64_t n, Bytes s) {
        expectWithinOnePercent(played(uniform(n), CollectiveOp::AllReduce, Algorithm::Ring, s), ringAllReduceSeconds(n, s, kLink));
    });
}

TEST(ClosedForms, RingAllGatherAndReduceScatterAgreeWithTheirMessages) {
    forRanksAndSizes([](std::int64_t n, Bytes s) {
        expectWithinOnePercent(played(uniform(n), CollectiveOp::AllGather, Algorithm::Ring, s), ringAllGatherSeconds(n, s, kLink));
        expectWithinOnePercent(played(uniform(n), CollectiveOp::ReduceScatter, Algorithm::Ring, s), ringReduceScatterSeconds(n, s, kLink));
    });
}

TEST(ClosedForms, TreeAllReduceAgreesWithItsMessages) {
    forRanksAndSizes([](std::int64_t n, Bytes s) {
        expectWithinOnePercent(played(uniform(n), CollectiveOp::AllReduce, Algorithm::Tree, s), treeAllReduceSeconds(n, 1, s, kLink));
    });
}

TEST(ClosedForms, HalvingDoublingAgreesWithItsMessages) {
    forRanksAndSizes([](std::int64_t n, Bytes s) {
        expectWithinOnePercent(played(uniform(n), CollectiveOp::AllReduce, Algorithm::HalvingDoubling, s), halvingDoublingAllReduceSeconds(n, s, kLink));
    });
}

TEST(ClosedForms, BroadcastAgreesWithItsMessages) {
    forRanksAndSizes([](std::int64_t n, Bytes s) {
        expectWithinOnePercent(played(uniform(n), CollectiveOp::Broadcast, Algorithm::Ring, s), ringBroadcastSeconds(n, s, kLink));
        expectWithinOnePercent(played(portNetwork(n, kBandwidth, Time::fromMicroseconds(5)), CollectiveOp::Broadcast, Algorithm::Binomial, s),
                               binomialBroadcastSeconds(n, s, kLink));
    });
}

TEST(ClosedForms, ReduceAgreesWithItsMessages) {
    forRanksAndSizes([](std::int64_t n, Bytes s) {
        expectWithinOnePercent(played(uniform(n), CollectiveOp::Reduce, Algorithm::Ring, s), ringReduceSeconds(n, s, kLink));
        expectWithinOnePercent(played(uniform(n), CollectiveOp::Reduce, Algorithm::Binomial, s), binomialReduceSeconds(n, s, kLink));
    });
}

TEST(ClosedForms, HierarchicalAgreesWithItsMessagesWhenEveryDeviceHasItsNic) {
    const AlphaBeta inside{2e-6, 200e9}, between{10e-6, 25e9};
    for (const std::int64_t nodes : {1, 2, 3, 8})
        for (const std::int64_t devices : {1, 2, 4, 8}) {
            if (nodes * devices < 2) continue;
            const auto network = sharedNicNetwork(nodes, devices, 200e9, 25e9, devices, Time::fromMicroseconds(2), Time::fromMicroseconds(10));
            expectWithinOnePercent(played(network, CollectiveOp::AllReduce, Algorithm::Hierarchical, 64 * kMiB),
                                   hierarchicalAllReduceSeconds(nodes * devices, devices, 64 * kMiB, inside, between));
        }
}

TEST(ClosedForms, RingAllReduceOfAHundredMegabytesOnEightRanks) {
    // 2·7 steps of 5 µs + 12.5 MB / 25 GB/s = 14 · (5 + 500) µs = 7.07 ms.
    EXPECT_NEAR(ringAllReduceSeconds(8, 100'000'000, kLink), 7.07e-3, 1e-9);
}

TEST(DoubleTree, EveryRankIsInnerInOneTreeAndALeafOfTheOtherButRankZeroOfAnOddCount) {
    for (std::int64_t nodes = 2; nodes <= 65; ++nodes) {
        std::vector<int> innerIn(static_cast<std::size_t>(nodes), 0);
        for (int tree = 0; tree < 2; ++tree) {
            const auto parents = binaryTreeParents(nodes, tree);
            std::vector<int> children(static_cast<std::size_t>(nodes), 0);
            int roots = 0;
            for (std::int64_t node = 0; node < nodes; ++node) {
                const std::int64_t parent = parents[static_cast<std::size_t>(node)];
                if (parent < 0)
                    ++roots;
                else
                    ++children[static_cast<std::size_t>(parent)];
                // Every node reaches the root.
                std::int64_t hops = 0;
                for (std::int64_t at = node; at >= 0; at = parents[static_cast<std::size_t>(at)]) ASSERT_LE(++hops, nodes);
            }
            EXPECT_EQ(roots, 1);
            for (std::int64_t node = 0; node < nodes; ++node) {
                EXPECT_LE(children[static_cast<std::size_t>(node)], 2);
                innerIn[static_cast<std::size_t>(node)] += children[static_cast<std::size_t>(node)] > 0;
            }
        }
        // The even places are inner. An even count has n/2 of them in each tree, and the mirror swaps even and odd. An odd
        // count n has (n + 1)/2, so n + 1 inner places in all for n ranks: one rank, by the shift rank 0, must have two.
        for (std::int64_t node = 0; node < nodes; ++node)
            EXPECT_EQ(innerIn[static_cast<std::size_t>(node)], nodes % 2 == 1 && node == 0 ? 2 : 1) << node << " of " << nodes;
    }
}

TEST(DoubleTree, DepthGrowsWithTheLogarithm) {
    // Heights by trailing zeros: 0 ─ 4 ─ 2/6 ─ 1/3/5/7 for eight nodes, so three hops; a chain of 8 devices adds 7.
    EXPECT_EQ(doubleTreeDepth(8, 1), 3);
    EXPECT_EQ(doubleTreeDepth(64, 8), 3 + 7);
    EXPECT_EQ(doubleTreeDepth(2, 1), 1);
}

}  // namespace
}  // namespace ringside
