#include "model/cost/gloo_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "nccl_test_clusters.h"

namespace ringside {
namespace {

using namespace ringside::testing;
using enum CollectiveOp;

GlooOptions roundFigures() {
    GlooOptions o;
    o.loopbackAlphaUs = 10;
    o.loopbackGbPerS = 2;
    o.tcpAlphaUs = 50;
    o.reduceGbPerS = 4;
    return o;
}
GlooModel gloo(std::int64_t nodes, std::int64_t perNode, GlooOptions options = roundFigures(), std::int64_t groups = 1) {
    const auto cluster = clusterOf(Device{}, nodes, perNode, 1, 10, CpuVendor::Amd, IntraNodeFabric::Loopback);
    auto group = wholeNodes(nodes, perNode);
    group.groupsSharingNics = groups;
    auto made = GlooModel::create(cluster, group, options);
    if (!made) ADD_FAILURE() << made.error().toString();
    return *made;
}
double us(const CollectiveCost& c) { return c.seconds * 1e6; }

TEST(GlooSegments, AreAtLeastTwoPerRankAndAtMostOneMebibyte) {
    EXPECT_EQ(glooSegments(4096, 4).count, 8);           // max(1, 2·4)
    EXPECT_EQ(glooSegments(4096, 4).bytes, 512);
    EXPECT_EQ(glooSegments(25 * kMiB, 4).count, 28);     // 25 rounded up to a multiple of 4
    EXPECT_EQ(glooSegments(kGiB, 3).count, 1026);        // 1024 rounded up to a multiple of 3
    ASSERT_TRUE(rc::check("segments cover the buffer", [] {
        const auto bytes = *rc::gen::inRange<Bytes>(1, 8 * kGiB);
        const auto ranks = *rc::gen::inRange<std::int64_t>(1, 300);
        const auto s = glooSegments(bytes, ranks);
        RC_ASSERT(s.count % ranks == 0 && s.count >= 2 * ranks);
        RC_ASSERT(s.bytes <= kMiB && s.count * s.bytes >= bytes);
    }));
}

// Two ranks, 4 MiB: 4 segments of 1 MiB, 2 iterations per phase. A segment is 524.3 µs on the wire and 262.1 to add;
// scatter: max(524.3, (10 + 786.4)/2) = 524.3; gather: 524.3. In all 4 · 524.3.
TEST(GlooRing, LargeBuffersAreBoundByTheLink) { EXPECT_NEAR(us(gloo(1, 2).cost(AllReduce, 4 * kMiB)), 2097.2, 0.1); }

// Four ranks, 64 bytes: 2·(4−1) steps of one message each, two of which are in flight: 6 iterations per phase · 10/2 µs.
TEST(GlooRing, SmallBuffersCostTwoTimesNMinusOneMessages) { EXPECT_NEAR(us(gloo(1, 4).cost(AllReduce, 64)), 60, 0.2); }

TEST(GlooReduceScatter, IsAnAllReduceUnlessAskedOtherwise) {
    auto options = roundFigures();
    EXPECT_EQ(us(gloo(1, 4, options).cost(ReduceScatter, kMiB)), us(gloo(1, 4, options).cost(AllReduce, kMiB)));
    options.reduceScatterIsAllReduce = false;
    EXPECT_LT(us(gloo(1, 4, options).cost(ReduceScatter, kMiB)), us(gloo(1, 4, options).cost(AllReduce, kMiB)));
}

// Four ranks, 4 MB: halves of 2 MB and 1 MB, there and back: 4 messages · 10 µs + 3 MB · (2/2 GB/s + 1/4 GB/s) = 40 + 3750.
TEST(GlooHalvingDoubling, MovesHalvesThereAndBack) {
    auto options = roundFigures();
    options.algorithm = CollectiveAlgorithm::HalvingDoubling;
    EXPECT_NEAR(us(gloo(1, 4, options).cost(AllReduce, 4'000'000)), 3790, 0.01);
    options.algorithm = CollectiveAlgorithm::Bcube;
    EXPECT_NEAR(us(gloo(1, 4, options).cost(AllReduce, 4'000'000)), 3790, 0.01);
}

TEST(GlooHalvingDoubling, CountsThatAreNoPowersOfTwoAreSlower) {
    auto options = roundFigures();
    options.algorithm = CollectiveAlgorithm::HalvingDoubling;
    EXPECT_GT(us(gloo(1, 5, options).cost(AllReduce, kMiB)), us(gloo(1, 8, options).cost(AllReduce, kMiB)));
}

// Three ranks: 2 peers each way: 4 messages · 10 µs + 2/3 · 3 MB · (2/2 + 1/4 per GB/s) = 40 + 2500.
TEST(GlooBcube, OddCountsExchangeDirectly) {
    auto options = roundFigures();
    options.algorithm = CollectiveAlgorithm::Bcube;
    EXPECT_NEAR(us(gloo(1, 3, options).cost(AllReduce, 3'000'000)), 2540, 0.01);
}

// Five ranks: the root sends to 1, 2 and 4 at once, then 1 to 3: 10 + 3 · 1 MB / 2 GB/s, and 10 + 500.
TEST(GlooBroadcast, SendsTheWholeBufferToAllChildrenOfARankAtOnce) {
    const auto cost = gloo(1, 5).cost(Broadcast, 1'000'000);
    EXPECT_NEAR(us(cost), 2 * 10 + 4 * 500, 0.01);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::Binomial);
    EXPECT_EQ(cost.channels, 0);
}

// Two nodes of one rank at 10 Gb/s: 16 MiB each way is 13.42 ms; two groups on the NIC take twice as long.
TEST(GlooNics, GroupsThatShareThemDivideTheirBandwidth) {
    EXPECT_NEAR(us(gloo(2, 1).cost(AllReduce, 16 * kMiB)), 13421.8, 1);
    EXPECT_NEAR(us(gloo(2, 1, roundFigures(), 2).cost(AllReduce, 16 * kMiB)), 2 * 13421.8, 2);
}

// 1 GB through a link of 10 GB/s at 90 %, down and up: 2 · (8 µs + 111.1 ms) more.
TEST(GlooDeviceTensors, AreStagedThroughTheHostBothWays) {
    auto cluster = clusterOf(Device{}, 1, 2, 0, 0, CpuVendor::Amd, IntraNodeFabric::Loopback);
    cluster.nodes[0].kind.device.pcieGbPerS = 10;
    auto options = roundFigures();
    const double host = GlooModel::create(cluster, wholeNodes(1, 2), options)->cost(AllReduce, 1'000'000'000).seconds;
    options.deviceTensors = true;
    const double device = GlooModel::create(cluster, wholeNodes(1, 2), options)->cost(AllReduce, 1'000'000'000).seconds;
    EXPECT_NEAR(device - host, 2 * (8e-6 + 1.0 / 9), 1e-9);
}

TEST(GlooCreate, RefusesWhatGlooDoesNotHave) {
    auto options = roundFigures();
    options.algorithm = CollectiveAlgorithm::Nvls;
    const auto made = GlooModel::create(clusterOf(Device{}, 1, 2), wholeNodes(1, 2), options);
    ASSERT_FALSE(made.has_value());
    EXPECT_NE(made.error().message.find("no nvls all-reduce"), std::string::npos) << made.error().message;
    EXPECT_FALSE(GlooModel::create(clusterOf(Device{}, 2, 2, 0, 0), wholeNodes(2, 2)).has_value());
}

TEST(GlooProperties, MoreBytesNeverTakeLess) {
    ASSERT_TRUE(rc::check("monotone in bytes", [] {
        const auto n = *rc::gen::inRange<std::int64_t>(2, 20);
        const auto nodes = *rc::gen::inRange<std::int64_t>(1, 5);
        const auto op = *rc::gen::element(AllGather, Broadcast, AllToAll, SendRecv);
        const auto a = *rc::gen::inRange<Bytes>(1, kGiB);
        const auto b = a + *rc::gen::inRange<Bytes>(0, kGiB);
        const auto m = gloo(nodes, n);
        const auto first = m.cost(op, a);
        RC_ASSERT(first.seconds <= m.cost(op, b).seconds);
        RC_ASSERT(first.seconds > 0 && first.latencySeconds >= 0 && first.transferSeconds >= 0);
    }));
}

}  // namespace
}  // namespace ringside
