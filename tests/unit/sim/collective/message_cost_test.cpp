// The two levels of one collective: they agree where nothing contends and part where links are shared.
#include "sim/collective/message_cost.h"

#include <gtest/gtest.h>

#include "model/catalog/hardware_catalog.h"
#include "model/cost/published_collectives.h"

namespace ringside {
namespace {

Cluster clusterOf(const std::string& device, std::int64_t devices) {
    const auto catalog = HardwareCatalog::builtin();
    HardwareCatalog::ClusterRequest request;
    request.device = device;
    request.devices = devices;
    return *catalog->makeCluster(request);
}

CollectiveModel modelOf(const Cluster& cluster, const GroupShape& shape, const CollectiveOptions& options = {}) {
    return *CollectiveModel::create(cluster, shape, CollectiveBackend::Nccl, options);
}

TEST(MessageCost, AgreesWithTheClosedFormWithinOnePercentWhereNothingContends) {
    for (const auto& [device, devices] : std::vector<std::pair<std::string, std::int64_t>>{
             {"a100-80gb-sxm", 2}, {"a100-80gb-sxm", 8}, {"a100-80gb-sxm", 32}, {"h100-sxm", 64}, {"v100-sxm", 16}, {"rtx-4090", 4}, {"mi300x", 8}}) {
        const Cluster cluster = clusterOf(device, devices);
        const GroupShape shape = groupShape(cluster, {0, 1, devices});
        CollectiveOptions achieved;
        achieved.nccl.achieved = ncclAchieved(datasheetProfile(cluster.nodes[0].kind.device));
        for (const CollectiveModel& model : {modelOf(cluster, shape), modelOf(cluster, shape, achieved)})
            for (const CollectiveOp op : {CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter, CollectiveOp::Broadcast, CollectiveOp::Reduce})
                for (const Bytes bytes : {64 * kKiB, 1 * kMiB, 25 * kMiB, 1 * kGiB}) {
                    const double closed = model.cost(op, bytes).seconds;
                    const auto message = messageLevelCost(cluster, shape, model, op, bytes);
                    ASSERT_TRUE(message) << message.error().toString();
                    EXPECT_NEAR(message->cost.seconds, closed, 0.01 * closed) << device << " × " << devices << ", " << nameOf(op) << " of " << bytes;
                }
    }
}

TEST(MessageCost, SharedNicsMakeItSlowerThanTheFormulaOfAnUnsharedGroupSays) {
    // Told that eight groups use the NICs at once, the messages get an eighth of what there is.
    const Cluster cluster = clusterOf("a100-80gb-sxm", 16);
    GroupShape shape = groupShape(cluster, {0, 1, 16});
    const CollectiveModel alone = modelOf(cluster, shape);
    shape.groupsSharingNics = 8;
    const auto shared = messageLevelCost(cluster, shape, alone, CollectiveOp::AllGather, 1 * kGiB);
    ASSERT_TRUE(shared);
    // 8 NICs × 25 GB/s / 8 groups = 25 GB/s; every NIC carries 15/16 of the buffer once: at least 1 GiB·15/16 / 25 GB/s = 40 ms.
    const double atLeast = 15.0 / 16 * static_cast<double>(kGiB) / 25e9;
    EXPECT_GE(shared->cost.seconds, atLeast);
    EXPECT_GT(shared->cost.seconds, 4 * alone.cost(CollectiveOp::AllGather, 1 * kGiB).seconds);
}

TEST(MessageCost, CountsTheMessagesOfARing) {
    const Cluster cluster = clusterOf("a100-80gb-sxm", 8);
    const GroupShape shape = groupShape(cluster, {0, 1, 8});
    CollectiveOptions options;
    options.nccl.algorithm = CollectiveAlgorithm::Ring;
    const auto message = messageLevelCost(cluster, shape, modelOf(cluster, shape, options), CollectiveOp::AllReduce, 25 * kMiB);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->messages, 8U * 2 * 7);  // each of 8 ranks sends 2(n − 1) messages
}

TEST(MessageCost, AnInSwitchReductionIsTheSameInBothLevels) {
    const Cluster cluster = clusterOf("h100-sxm", 8);
    const GroupShape shape = groupShape(cluster, {0, 1, 8});
    const CollectiveModel model = modelOf(cluster, shape);
    const auto message = messageLevelCost(cluster, shape, model, CollectiveOp::AllReduce, 1 * kGiB);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->cost.algorithm, CollectiveAlgorithm::Nvls);
    EXPECT_EQ(message->messages, 0U);
    EXPECT_DOUBLE_EQ(message->cost.seconds, model.cost(CollectiveOp::AllReduce, 1 * kGiB).seconds);
}

}  // namespace
}  // namespace ringside
