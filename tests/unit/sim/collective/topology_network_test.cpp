// The message level over a real topology.
#include <gtest/gtest.h>

#include <numeric>

#include "model/catalog/hardware_catalog.h"
#include "model/hardware/topology.h"
#include "sim/collective/message_level.h"

namespace ringside {
namespace {

TEST(NetworkOfTopology, ARingOverTwoNodesRunsAtThePaceOfItsNetworkHop) {
    const auto catalog = HardwareCatalog::builtin();
    ASSERT_TRUE(catalog) << catalog.error().toString();
    const auto cluster = catalog->makeCluster({.device = {}, .devices = 16, .devicesPerNode = 0, .nodeKind = "dgx-a100-80gb", .network = {}});
    ASSERT_TRUE(cluster) << cluster.error().toString();
    const auto topology = buildTopology(*cluster);
    ASSERT_TRUE(topology) << topology.error().toString();
    std::vector<std::int64_t> ranks(16);
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto network = networkOf(*topology, ranks);
    EXPECT_EQ(network.ranksPerNode, 8);

    const Bytes bytes = 16 * 16 * kMiB;
    const auto result = playCollective(network, CollectiveOp::AllReduce, CollectiveAlgorithm::Ring, bytes);
    ASSERT_TRUE(result) << result.error().toString();
    // 30 messages of 16 MiB over the hop 7 → 8; the other hops are faster and hide behind it, so that only the way of the
    // first and the last message around them is added.
    const double slowest = bottleneck(*topology, route(*topology, 7, 8));
    ASSERT_LT(slowest, bottleneck(*topology, route(*topology, 0, 1)));
    const double expected = 30 * static_cast<double>(16 * kMiB) / slowest;
    EXPECT_GE(result->duration.seconds(), expected * (1 - 1e-9));
    EXPECT_LE(result->duration.seconds(), expected * 1.05);
    // Every link of every hop carries its rank's 30 messages.
    for (std::size_t l = 0; l < result->linkIds.size(); ++l) {
        EXPECT_LT(result->linkIds[l], topology->linkCount());
        EXPECT_EQ(result->bytesPerLink[l], 30.0 * 16 * kMiB);
    }
}

}  // namespace
}  // namespace ringside
