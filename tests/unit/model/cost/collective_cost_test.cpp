#include "model/cost/collective_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "nccl_test_clusters.h"

namespace ringside {
namespace {

using namespace ringside::testing;
using enum CollectiveOp;

TEST(BytesSentPerRank, RingAllReduceSendsTwoTimesNMinusOneOverNOfTheBuffer) {
    // 2 · 7/8 · 1 GiB.
    EXPECT_EQ(bytesSentPerRank(AllReduce, kGiB, 8), 2 * 7 * (kGiB / 8));
    EXPECT_EQ(bytesSentPerRank(AllGather, kGiB, 8), 7 * (kGiB / 8));
    EXPECT_EQ(bytesSentPerRank(Broadcast, kGiB, 8), 7 * (kGiB / 8)) << "seven of eight ranks hand it on: the mean";
    EXPECT_EQ(bytesSentPerRank(AllReduce, kGiB, 1), 0);
    // 10 bytes over 4 ranks are cut into chunks of 3.
    EXPECT_EQ(bytesSentPerRank(AllReduce, 10, 4), 2 * 3 * 3);
}

TEST(BytesSentPerRank, OverAllRanksAddUpToTwoTimesNMinusOneBuffers) {
    ASSERT_TRUE(rc::check("sum over ranks", [] {
        const auto n = *rc::gen::inRange<std::int64_t>(1, 4096);
        const auto size = n * *rc::gen::inRange<Bytes>(0, 1 << 20);
        RC_ASSERT(n * bytesSentPerRank(AllReduce, size, n) == 2 * (n - 1) * size);
        RC_ASSERT(bytesSentPerRank(AllReduce, size, n) ==
                  bytesSentPerRank(ReduceScatter, size, n) + bytesSentPerRank(AllGather, size, n));
    }));
}

TEST(BusBandwidthFactor, IsThatOfNcclTests) {
    EXPECT_DOUBLE_EQ(busBandwidthFactor(AllReduce, 8), 1.75);
    EXPECT_DOUBLE_EQ(busBandwidthFactor(ReduceScatter, 8), 0.875);
    EXPECT_DOUBLE_EQ(busBandwidthFactor(AllToAll, 4), 0.75);
    EXPECT_DOUBLE_EQ(busBandwidthFactor(SendRecv, 2), 1);
    EXPECT_DOUBLE_EQ(busBandwidthFactor(Gather, 4), 0.75);
    EXPECT_DOUBLE_EQ(busBandwidthFactor(Scatter, 4), 0.75);
    EXPECT_DOUBLE_EQ(busBandwidthFactor(AllReduce, 1), 0);
}

TEST(CollectiveNames, GoBothWays) {
    for (std::size_t i = 0; i < kCollectiveOps; ++i) {
        const auto op = static_cast<CollectiveOp>(i);
        EXPECT_EQ(collectiveOpByName(nameOf(op)).value(), op);
    }
    EXPECT_EQ(collectiveOpByName("alltoall").value(), AllToAll);
    EXPECT_EQ(collectiveAlgorithmByName("NVLSTree").value(), CollectiveAlgorithm::NvlsTree);
    EXPECT_EQ(collectiveProtocolByName("ll128").value(), CollectiveProtocol::LL128);
    EXPECT_EQ(collectiveBackendByName("NCCL").value(), CollectiveBackend::Nccl);
    const auto unknown = collectiveOpByName("all_redcue");
    ASSERT_FALSE(unknown.has_value());
    EXPECT_NE(unknown.error().message.find("all_reduce"), std::string::npos) << unknown.error().message;
}

TEST(CollectiveModel, AsksTheBackendItWasMadeFor) {
    const auto cluster = clusterOf(a100(), 1, 8);
    const auto nccl = CollectiveModel::create(cluster, wholeNodes(1, 8), CollectiveBackend::Nccl);
    const auto gloo = CollectiveModel::create(cluster, wholeNodes(1, 8), CollectiveBackend::Gloo);
    ASSERT_TRUE(nccl.has_value());
    ASSERT_TRUE(gloo.has_value());
    EXPECT_EQ(nccl->backend(), CollectiveBackend::Nccl);
    EXPECT_EQ(gloo->cost(AllReduce, kMiB).protocol, CollectiveProtocol::Tcp);
    EXPECT_EQ(nccl->cost(AllReduce, kMiB).protocol, CollectiveProtocol::LL);
    EXPECT_EQ(nccl->checkedCost(AllReduce, kMiB)->seconds, nccl->cost(AllReduce, kMiB).seconds);
    EXPECT_EQ(gloo->candidates(AllReduce, kMiB).size(), 3U);
    EXPECT_GT(nccl->candidates(AllReduce, kMiB).size(), 3U);

    CollectiveOptions options;
    options.gloo.reduceGbPerS = 0;
    EXPECT_FALSE(CollectiveModel::create(cluster, wholeNodes(1, 8), CollectiveBackend::Gloo, options).has_value());
}

}  // namespace
}  // namespace ringside
