// A broadcast through a binomial tree, rank by rank; docs/models/gloo.md.
#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/cost/binomial_broadcast.h"

namespace ringside {
namespace {

using Times = std::vector<double>;

TEST(BinomialBroadcast, ChildrenOfARankShareItsLink) {
    // One message takes 1 s. The root sends to 1 and 2 at once: both have it after 2; then 1 sends to 3.
    EXPECT_EQ(binomialBroadcastTimes(Times{0, 0, 0, 0}, {0, 1}), (Times{2, 3, 2, 3}));
    // Eight: 3 for the root's three, 2 more for those of rank 1 (3 and 5), one for 2 → 6, one for 3 → 7.
    EXPECT_EQ(binomialBroadcastTimes(Times(8, 0), {0, 1}), (Times{3, 5, 4, 6, 3, 5, 4, 6}));
}

TEST(BinomialBroadcast, AnyOriginOfTimeWillDo) { EXPECT_EQ(binomialBroadcastTimes(Times{-10, -10, -10, -1}, {0, 1}), (Times{-8, 0, -8, 0})); }

TEST(BinomialBroadcast, EveryHopAddsItsLatencyOnce) {
    EXPECT_EQ(binomialBroadcastTimes(Times{0, 0, 0, 0}, {10, 1}), (Times{12, 23, 12, 23}));
}

TEST(BinomialBroadcast, ALateLeafDelaysNobodyButItsParent) {
    // Rank 3 comes at 10: its parent 1 has had the buffer since 2 and is through when 3 is.
    EXPECT_EQ(binomialBroadcastTimes(Times{0, 0, 0, 10}, {0, 1}), (Times{2, 11, 2, 11}));
}

TEST(BinomialBroadcast, ALateChildLeavesTheLinkToTheOthers) {
    // Rank 1 comes at 0.5: 2 has sent half by then, shares until it has all at 1.5, and 1, with half, has the link alone until 2.
    EXPECT_EQ(binomialBroadcastTimes(Times{0, 0.5, 0, 0}, {0, 1}), (Times{2, 3, 1.5, 3}));
}

TEST(BinomialBroadcast, ALateRootDelaysAll) { EXPECT_EQ(binomialBroadcastTimes(Times{5, 0, 1}, {0, 1}), (Times{7, 7, 7})); }

TEST(BinomialBroadcast, ATreeIsAsDeepAsItsLongestWay) {
    EXPECT_EQ(binomialBroadcastDepth(1).transfers, 0);
    EXPECT_EQ(binomialBroadcastDepth(2).transfers, 1);
    EXPECT_EQ(binomialBroadcastDepth(16).transfers, 4 + 3 + 2 + 1);
    EXPECT_EQ(binomialBroadcastDepth(16).latencies, 4);
    EXPECT_EQ(binomialBroadcastDepth(5).transfers, 3 + 1);
}

TEST(BinomialBroadcast, DepthIsTheTimeOfRanksThatComeTogether) {
    for (std::int64_t n = 1; n <= 200; ++n) {
        const Times through = binomialBroadcastTimes(Times(static_cast<std::size_t>(n), 0), {0, 1});
        EXPECT_DOUBLE_EQ(*std::max_element(through.begin(), through.end()), binomialBroadcastDepth(n).transfers) << n;
    }
}

TEST(BinomialBroadcast, IsNeverFasterThanEachRanksLinkAndNeverThroughBeforeItCame) {
    ASSERT_TRUE(rc::check("bounds", [] {
        const auto n = *rc::gen::inRange<std::size_t>(1, 40);
        const auto at = *rc::gen::container<std::vector<int>>(n, rc::gen::inRange(0, 20));
        const Times entries(at.begin(), at.end());
        const Times through = binomialBroadcastTimes(entries, {0, 1});
        const auto [first, last] = std::minmax_element(through.begin(), through.end());
        double children = 0;
        for (std::size_t d = 1; d < n; d *= 2) ++children;
        RC_ASSERT(through.front() >= entries.front() + children - 1e-9);  // the root's link carries one buffer per child
        for (std::size_t r = 0; r < n; ++r) RC_ASSERT(through[r] >= std::max(entries[r], entries.front()) - 1e-9);
        // Ranks that come together at the last one's time are through no earlier.
        RC_ASSERT(*last <= *std::max_element(entries.begin(), entries.end()) + binomialBroadcastDepth(static_cast<std::int64_t>(n)).transfers + 1e-9);
        RC_ASSERT(*first <= *last);
    }));
}

}  // namespace
}  // namespace ringside
