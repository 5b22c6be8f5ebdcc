#include "model/cost/measured_collectives.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/cost/collective_cost.h"

namespace ringside {
namespace {

CollectiveCurve curve(std::vector<CollectivePoint> points, std::int64_t ranks = 2, const std::string& link = "loopback") {
    CollectiveCurve c;
    c.ranks = ranks;
    c.link = link;
    c.points = std::move(points);
    return c;
}

Cluster host(std::int64_t devices) {
    Cluster cluster;
    cluster.name = "host";
    NodeGroup group;
    group.kind.name = "host";
    group.kind.devices = devices;
    group.kind.fabric = IntraNodeFabric::Loopback;
    group.count = 1;
    cluster.nodes.push_back(group);
    return cluster;
}
GroupShape inOneNode(std::int64_t ranks) {
    GroupShape shape;
    shape.ranks = shape.ranksPerNode = ranks;
    return shape;
}
CollectiveOptions measuredOptions(std::vector<CollectiveCurve> curves) {
    CollectiveOptions options;
    options.measured = std::make_shared<const std::vector<CollectiveCurve>>(std::move(curves));
    return options;
}
CollectiveModel model(std::int64_t ranks, const CollectiveOptions& options = {}) {
    return CollectiveModel::create(host(8), inOneNode(ranks), CollectiveBackend::Gloo, options).value();
}

TEST(MeasuredTime, IsAffineBetweenPointsAndGoesOnWithTheOuterSlopes) {
    // 100 µs fixed and 1 µs per KB up to 10 KB; 2 µs per KB beyond.
    const CollectiveCurve c = curve({{1000, 101e-6, 0.1}, {10000, 110e-6, 0.2}, {20000, 130e-6, 0.3}});
    EXPECT_NEAR(measuredTime(c, 5500).seconds, 105.5e-6, 1e-12);
    EXPECT_NEAR(measuredTime(c, 0).seconds, 100e-6, 1e-12);
    EXPECT_NEAR(measuredTime(c, 15000).seconds, 120e-6, 1e-12);
    EXPECT_NEAR(measuredTime(c, 40000).seconds, 170e-6, 1e-12);
    EXPECT_NEAR(measuredTime(c, 40000).fixedSeconds, 100e-6, 1e-12);
    EXPECT_DOUBLE_EQ(measuredTime(c, 5500).relativeSpread, 0.2);
}

TEST(MeasuredTime, ASinglePointIsAFixedTimeBelowAndARateAbove) {
    const CollectiveCurve c = curve({{1000, 1e-3, 0}});
    EXPECT_DOUBLE_EQ(measuredTime(c, 10).seconds, 1e-3);
    EXPECT_DOUBLE_EQ(measuredTime(c, 3000).seconds, 3e-3);
}

TEST(CollectiveModel, TakesTheMeasuredTimeOfItsOpAndRankCount) {
    const CollectiveModel m = model(2, measuredOptions({curve({{1 << 10, 1e-3, 0}, {1 << 20, 5e-3, 0}})}));
    EXPECT_NEAR(m.cost(CollectiveOp::AllReduce, 1 << 20).seconds, 5e-3, 1e-12);
    EXPECT_NEAR(m.checkedCost(CollectiveOp::AllReduce, 1 << 20).value().seconds, 5e-3, 1e-12);
    EXPECT_NEAR(m.candidates(CollectiveOp::AllReduce, 1 << 20).front().seconds, 5e-3, 1e-12);
    // Another operation keeps the closed form; no bytes and one rank stay free.
    EXPECT_DOUBLE_EQ(m.cost(CollectiveOp::Broadcast, 1 << 20).seconds, model(2).cost(CollectiveOp::Broadcast, 1 << 20).seconds);
    EXPECT_EQ(m.cost(CollectiveOp::AllReduce, 0).seconds, 0);
}

TEST(CollectiveModel, AnotherRankCountScalesTheClosedFormByTheRatioAtTheNearest) {
    const Bytes size = 1 << 20;
    const double closed2 = model(2).cost(CollectiveOp::AllReduce, size).seconds, closed4 = model(4).cost(CollectiveOp::AllReduce, size).seconds;
    const CollectiveModel m = model(4, measuredOptions({curve({{1 << 10, 1e-3, 0}, {size, 3 * closed2, 0}})}));
    EXPECT_NEAR(m.cost(CollectiveOp::AllReduce, size).seconds, 3 * closed4, 1e-9);
}

TEST(CollectiveModel, ACurveOfAnotherLinkOrBackendDoesNotCountAndOneWithoutALinkDoes) {
    const Bytes size = 1 << 20;
    const double closed = model(2).cost(CollectiveOp::AllReduce, size).seconds;
    EXPECT_DOUBLE_EQ(model(2, measuredOptions({curve({{size, 1, 0}}, 2, "1gbit")})).cost(CollectiveOp::AllReduce, size).seconds, closed);
    CollectiveCurve nccl = curve({{size, 1, 0}});
    nccl.backend = CollectiveBackend::Nccl;
    EXPECT_DOUBLE_EQ(model(2, measuredOptions({nccl})).cost(CollectiveOp::AllReduce, size).seconds, closed);
    EXPECT_DOUBLE_EQ(model(2, measuredOptions({curve({{size, 1, 0}}, 2, "")})).cost(CollectiveOp::AllReduce, size).seconds, 1);
    // The link's own curve goes before one for any link, also with another rank count.
    EXPECT_DOUBLE_EQ(model(2, measuredOptions({curve({{size, 1, 0}}, 2, ""), curve({{size, 2, 0}})})).cost(CollectiveOp::AllReduce, size).seconds, 2);
}

TEST(CollectiveModel, AForcedAlgorithmIsNotAnsweredByAMeasurement) {
    CollectiveOptions options = measuredOptions({curve({{1 << 20, 1, 0}})});
    options.gloo.algorithm = CollectiveAlgorithm::Bcube;
    EXPECT_LT(model(2, options).cost(CollectiveOp::AllReduce, 1 << 20).seconds, 0.5);
}

TEST(CollectiveModel, AFasterNetworkShortensTheMeasuredTransferAndNotTheFixedPart) {
    CollectiveOptions options = measuredOptions({curve({{1000, 101e-6, 0}, {10000, 110e-6, 0}})});
    options.networkScale = 2;
    EXPECT_NEAR(model(2, options).cost(CollectiveOp::AllReduce, 10000).seconds, 105e-6, 1e-12);
}

TEST(CollectiveModel, CpuTimeComesWithTheMeasurement) {
    CollectiveCurve c = curve({{1000, 1e-3, 0}, {2000, 2e-3, 0}});
    c.cpuSecondsPerCall = 1e-4;
    c.cpuSecondsPerByte = 1e-7;
    EXPECT_NEAR(model(2, measuredOptions({c})).cost(CollectiveOp::AllReduce, 2000).cpuSeconds, 3e-4, 1e-12);
    EXPECT_FALSE(model(2).cost(CollectiveOp::AllReduce, 2000).hasCpuFigures());
}

TEST(LinkName, SaysWhatTheRanksTalkOver) {
    Cluster cluster = host(2);
    EXPECT_EQ(linkNameOf(cluster, inOneNode(2)), "loopback");
    cluster.nodes.front().kind.nics.gbitPerS = 0.2;
    GroupShape two = inOneNode(2);
    two.nodes = 2;
    two.ranksPerNode = 1;
    EXPECT_EQ(linkNameOf(cluster, two), "200mbit");
    cluster.nodes.front().kind.nics.gbitPerS = 25;
    EXPECT_EQ(linkNameOf(cluster, two), "25gbit");
    cluster.nodes.front().kind.fabric = IntraNodeFabric::PcieHost;
    EXPECT_EQ(linkNameOf(cluster, inOneNode(2)), "node");
}

}  // namespace
}  // namespace ringside
