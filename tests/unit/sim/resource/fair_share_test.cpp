#include "sim/resource/fair_share.h"

#include <gtest/gtest.h>

#include <limits>

namespace ringside {
namespace {

using Paths = std::vector<std::vector<LinkIndex>>;

struct Flows {
    std::vector<std::uint32_t> first{0};
    std::vector<LinkIndex> links;
    explicit Flows(const Paths& paths) {
        for (const auto& path : paths) {
            links.insert(links.end(), path.begin(), path.end());
            first.push_back(static_cast<std::uint32_t>(links.size()));
        }
    }
};

std::vector<double> share(const std::vector<double>& capacities, const Paths& paths, std::vector<double> weights = {}, std::vector<double> caps = {}) {
    const Flows flows(paths);
    return maxMinFairShare(capacities, FlowPaths{flows.first, flows.links, weights, caps});
}

TEST(FairShare, FlowsOnOneLinkGetEqualParts) {
    // 900 / 3 = 300 each.
    EXPECT_EQ(share({900}, {{0}, {0}, {0}}), (std::vector<double>{300, 300, 300}));
}

TEST(FairShare, WhatABottleneckedFlowLeavesGoesToTheOthers) {
    // Link 1 (100) holds flows 1 and 2 to 50 each. Link 0 (1000) then has 1000 − 50 = 950 left for flow 0.
    EXPECT_EQ(share({1000, 100}, {{0}, {0, 1}, {1}}), (std::vector<double>{950, 50, 50}));
}

TEST(FairShare, TheLineNetworkGivesTheLongFlowTheSmallestFairPart) {
    // Three links 120, 60, 300; one flow over all, one on each. Link 1: 60/2 = 30 for the long flow and its neighbour;
    // link 0 leaves 120 − 30 = 90, link 2 leaves 300 − 30 = 270.
    EXPECT_EQ(share({120, 60, 300}, {{0, 1, 2}, {0}, {1}, {2}}), (std::vector<double>{30, 90, 30, 270}));
}

TEST(FairShare, ARateCapFreesTheRest) {
    // Flow 0 stops at 100; (1000 − 100) / 2 = 450 for the others.
    const double none = std::numeric_limits<double>::infinity();
    EXPECT_EQ(share({1000}, {{0}, {0}, {0}}, {}, {100, none, none}), (std::vector<double>{100, 450, 450}));
}

TEST(FairShare, AWeightCountsAsSoManyFlows) {
    // 1000 over 3 + 1 + 1 shares is 200 a share.
    EXPECT_EQ(share({1000}, {{0}, {0}, {0}}, {3, 1, 1}), (std::vector<double>{600, 200, 200}));
}

TEST(FairShare, ALinkUsedTwiceCountsTwice) {
    // The flow crosses the link out and in: 2·rate ≤ 1000.
    EXPECT_EQ(share({1000}, {{0, 0}}), (std::vector<double>{500}));
}

TEST(FairShare, RatesAreWholeBytesPerSecondRoundedDown) {
    EXPECT_EQ(share({1000}, {{0}, {0}, {0}}), (std::vector<double>{333, 333, 333}));
}

TEST(FairShare, AShareBelowOneBytePerSecondIsNotRoundedToNothing) {
    EXPECT_EQ(share({1}, {{0}, {0}}), (std::vector<double>{0.5, 0.5}));
}

TEST(FairShare, AFlowWithoutLinksIsLimitedByItsCapAlone) {
    EXPECT_EQ(share({10}, {{}, {0}}, {}, {70, 70}), (std::vector<double>{70, 10}));
    EXPECT_EQ(share({10}, {{}})[0], std::numeric_limits<double>::infinity());
}

TEST(FairShare, NoFlowsIsNoWork) { EXPECT_TRUE(maxMinFairShare(std::vector<double>{10}, FlowPaths{}).empty()); }

}  // namespace
}  // namespace ringside
