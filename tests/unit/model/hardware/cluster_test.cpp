#include "model/hardware/cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

namespace ringside {
namespace {

using ::testing::HasSubstr;

NodeKind node(std::int64_t devices, const std::string& name = "box", double nicGbit = 200) {
    NodeKind kind;
    kind.name = name;
    kind.device.name = "gpu";
    kind.device.nvlinkGbPerS = 300;
    kind.devices = devices;
    kind.nics = {.count = devices, .gbitPerS = nicGbit};
    return kind;
}

Cluster clusterOf(std::vector<NodeGroup> groups) { return {"test", std::move(groups), {}}; }

TEST(Cluster, CountsDevicesAndNodesThroughItsGroups) {
    const Cluster cluster = clusterOf({{node(8), 2}, {node(4), 3}});
    EXPECT_EQ(cluster.deviceCount(), 28);  // 2·8 + 3·4
    EXPECT_EQ(cluster.nodeCount(), 5);
    EXPECT_EQ(cluster.groupOf(15), 0u);
    EXPECT_EQ(cluster.groupOf(16), 1u);
    EXPECT_EQ(cluster.nodeOf(15), 1);
    EXPECT_EQ(cluster.nodeOf(16), 2);
    EXPECT_EQ(cluster.nodeOf(27), 4);
}

TEST(GroupShape, AllRanksOfSixteenThousandDevices) {
    const Cluster cluster = clusterOf({{node(8), 2048}});
    EXPECT_EQ(groupShape(cluster, {0, 1, 16384}), (GroupShape{.ranks = 16384, .nodes = 2048, .ranksPerNode = 8}));
    EXPECT_EQ(groupShape(cluster, {3, 8, 2048}), (GroupShape{.ranks = 2048, .nodes = 2048, .ranksPerNode = 1}));
    EXPECT_EQ(groupShape(cluster, {1, 2, 8192}), (GroupShape{.ranks = 8192, .nodes = 2048, .ranksPerNode = 4}));
    EXPECT_EQ(groupShape(cluster, {8, 1, 8}), (GroupShape{.ranks = 8, .nodes = 1, .ranksPerNode = 8}));
}

TEST(GroupShape, PicksTheKindWithTheSlowestNetworkWhenItSpansNodes) {
    const Cluster cluster = clusterOf({{node(8, "fast", 400), 2}, {node(8, "slow", 100), 2}});
    EXPECT_EQ(groupShape(cluster, {0, 1, 32}).nodeKind, 1u);
    EXPECT_EQ(groupShape(cluster, {0, 1, 16}).nodeKind, 0u);
}

TEST(GroupShape, PicksTheSlowestFabricWhereNetworksAreEqual) {
    NodeKind slow = node(8, "slow");
    slow.device.nvlinkGbPerS = 150;
    EXPECT_EQ(groupShape(clusterOf({{node(8), 1}, {slow, 1}}), {0, 1, 16}).nodeKind, 1u);
}

TEST(GroupShape, OfNodesWithUnequalDevicesCountsThoseOfTheSlowestKind) {
    NodeKind small = node(4);
    small.nics.count = 1;
    const GroupShape shape = groupShape(clusterOf({{node(8), 2}, {small, 3}}), {0, 1, 28});
    EXPECT_EQ(shape.nodes, 5);
    EXPECT_EQ(shape.nodeKind, 1u);
    EXPECT_EQ(shape.ranksPerNode, 4) << "a node of that kind holds no more";
}

TEST(GroupShape, EqualsCountingEveryRank) {
    const bool ok = rc::check("arithmetic and enumeration agree", [] {
        Cluster cluster;
        const int groups = *rc::gen::inRange(1, 4);
        for (int g = 0; g < groups; ++g) cluster.nodes.push_back({node(*rc::gen::inRange(1, 13)), *rc::gen::inRange(1, 9)});
        const std::int64_t devices = cluster.deviceCount();
        const std::int64_t first = *rc::gen::inRange<std::int64_t>(0, devices);
        const std::int64_t stride = *rc::gen::inRange<std::int64_t>(1, 20);
        const std::int64_t count = *rc::gen::inRange<std::int64_t>(1, (devices - 1 - first) / stride + 2);
        std::map<std::int64_t, std::int64_t> perNode;
        for (std::int64_t i = 0; i < count; ++i) ++perNode[cluster.nodeOf(first + stride * i)];
        const GroupShape shape = groupShape(cluster, {first, stride, count});
        std::int64_t most = 0;  // in a node of the kind that sets the pace
        for (std::int64_t i = 0; i < count; ++i)
            if (cluster.groupOf(first + stride * i) == shape.nodeKind) most = std::max(most, perNode[cluster.nodeOf(first + stride * i)]);
        RC_ASSERT(shape.ranks == count);
        RC_ASSERT(shape.nodes == static_cast<std::int64_t>(perNode.size()));
        RC_ASSERT(shape.ranksPerNode == most);
        RC_ASSERT(shape.groupsSharingNics == 1);
    });
    ASSERT_TRUE(ok);
}

TEST(MakeCluster, FillsWholeNodes) {
    const auto cluster = makeCluster(node(8), 16, 0, {});
    ASSERT_TRUE(cluster);
    EXPECT_EQ(cluster->nodeCount(), 2);
    EXPECT_EQ(cluster->nodes[0].kind.nics.count, 8);
}

TEST(MakeCluster, FewerDevicesThanANodeHoldsMakeOnePartlyFilledNode) {
    const auto cluster = makeCluster(node(8), 3, 0, {});
    ASSERT_TRUE(cluster);
    EXPECT_EQ(cluster->nodeCount(), 1);
    EXPECT_EQ(cluster->deviceCount(), 3);
}

TEST(MakeCluster, PartlyFilledNodesKeepNicsInProportionAndAtLeastOne) {
    EXPECT_EQ(makeCluster(node(8), 8, 4, {})->nodes[0].kind.nics.count, 4);  // 8 NICs · 4 / 8
    NodeKind oneNic = node(8);
    oneNic.nics.count = 1;
    EXPECT_EQ(makeCluster(oneNic, 8, 4, {})->nodes[0].kind.nics.count, 1);
}

TEST(MakeCluster, SaysWhichTotalsAndWhichNodesWouldWork) {
    const auto cluster = makeCluster(node(8), 12, 0, {});
    ASSERT_FALSE(cluster);
    EXPECT_THAT(cluster.error().message, HasSubstr("12 devices do not fill nodes of 8; use 8 or 16 devices"));
    EXPECT_THAT(cluster.error().message, HasSubstr("--devices-per-node 6, 4, 3, 2"));
}

TEST(MakeCluster, RefusesMoreDevicesThanABoardHoldsButExtendsABoxOfSlots) {
    EXPECT_THAT(makeCluster(node(8), 16, 16, {}).error().message, HasSubstr("a box node holds 8 devices, not 16"));
    NodeKind slots = node(8);
    slots.fabric = IntraNodeFabric::PcieHost;
    EXPECT_EQ(makeCluster(slots, 16, 16, {})->nodeCount(), 1);
}

TEST(MakeCluster, RefusesCountsOutOfRange) {
    EXPECT_THAT(makeCluster(node(8), 0, 0, {}).error().message, HasSubstr("expected 1 to"));
    EXPECT_THAT(makeCluster(node(8), 8, -1, {}).error().message, HasSubstr("devices per node; expected 1 to 1024"));
    EXPECT_THAT(makeCluster(node(1), 2'000'000, 0, {}).error().message, HasSubstr("expected at most 1048576"));
}

TEST(ApplyNetwork, ReplacesEveryNodesNicsAndTheSwitches) {
    Cluster cluster = clusterOf({{node(8), 2}, {node(4), 3}});
    const NamedNetwork network{.spec = {.name = "slow", .railOptimised = false}, .nics = {.count = 1, .gbitPerS = 10}};
    applyNetwork(cluster, network);
    EXPECT_EQ(cluster.network, network.spec);
    for (const NodeGroup& group : cluster.nodes) EXPECT_EQ(group.kind.nics, network.nics);
}

HardwareLookups lookups() {
    return {[](std::string_view name) -> Result<Device> {
                if (name != "gpu") return badInput({}, "unknown device");
                Device device;
                device.name = "gpu";
                return device;
            },
            [](std::string_view name) -> Result<NodeKind> {
                if (name != "box") return badInput({}, "unknown node kind");
                return node(8);
            },
            [](std::string_view name) -> Result<NamedNetwork> {
                if (name != "lan") return badInput({}, "unknown network");
                return NamedNetwork{.spec = {.name = "lan"}, .nics = {.count = 1, .gbitPerS = 25}};
            }};
}

Result<Cluster> parse(const std::string& text) {
    const auto json = parseJson(text, "c.json");
    if (!json) return tl::unexpected<Error>(json.error());
    return clusterFromJson(JsonCursor(*json, "c.json"), lookups());
}

std::string file(const std::string& nodes, const std::string& network = "{}") {
    return R"({"format": "ringside-cluster", "version": 1, "name": "mine", "nodes": )" + nodes + R"(, "network": )" + network + "}";
}

TEST(ClusterJson, ReadsNamedAndInlineNodes) {
    const auto cluster = parse(file(R"([{"kind": "box", "count": 2},
        {"kind": {"device": "gpu", "devices": 4, "fabric": "pcie-host", "cpu": "intel", "nics": {"count": 2, "gbit_per_s": 100, "latency_us": 3, "gpu_direct": false}}}])",
                                    R"({"rail_optimised": false, "oversubscription": 2, "nodes_per_leaf": 16, "switch_latency_us": 0.5})"));
    ASSERT_TRUE(cluster) << cluster.error().toString();
    EXPECT_EQ(cluster->deviceCount(), 20);
    EXPECT_EQ(cluster->nodes[0].kind, node(8));
    EXPECT_EQ(cluster->nodes[1].kind.fabric, IntraNodeFabric::PcieHost);
    EXPECT_EQ(cluster->nodes[1].kind.cpu, CpuVendor::Intel);
    EXPECT_EQ(cluster->nodes[1].kind.nics, (Nics{.count = 2, .gbitPerS = 100, .latencyUs = 3, .gpuDirect = false}));
    EXPECT_EQ(cluster->network,
              (NetworkSpec{.name = "custom", .railOptimised = false, .oversubscription = 2, .nodesPerLeaf = 16, .switchLatencyUs = 0.5}));
}

TEST(ClusterJson, ANetworkByNameSetsTheNicsThatTheFileLeavesOut) {
    const auto cluster =
        parse(file(R"([{"kind": "box"}, {"kind": {"device": "gpu", "devices": 4, "fabric": "nvswitch", "nics": {"count": 4, "gbit_per_s": 100}}},
        {"kind": {"device": "gpu", "devices": 4, "fabric": "nvswitch"}}])",
                   "\"lan\""));
    ASSERT_TRUE(cluster) << cluster.error().toString();
    EXPECT_EQ(cluster->nodes[0].kind.nics.gbitPerS, 25);
    EXPECT_EQ(cluster->nodes[1].kind.nics.gbitPerS, 100);
    EXPECT_EQ(cluster->nodes[2].kind.nics.gbitPerS, 25);
}

TEST(ClusterJson, WritingThenReadingIsTheIdentity) {
    const bool ok = rc::check("clusterFromJson(toJson(c)) == c", [] {
        Cluster cluster{"x", {}, {}};
        const int groups = *rc::gen::inRange(1, 4);
        for (int g = 0; g < groups; ++g) {
            NodeKind kind = node(*rc::gen::inRange(1, 100), fmt::format("kind{}", g), *rc::gen::inRange(1, 800));
            kind.fabric = *rc::gen::element(IntraNodeFabric::NvSwitch, IntraNodeFabric::NvLinkMesh, IntraNodeFabric::XgmiMesh,
                                            IntraNodeFabric::PcieSwitch, IntraNodeFabric::PcieHost, IntraNodeFabric::Loopback);
            kind.cpu = *rc::gen::element(CpuVendor::Intel, CpuVendor::Amd, CpuVendor::Arm);
            kind.device.fullName = "a device";
            kind.device.peakDenseTflops[DType::Bf16] = *rc::gen::inRange(1, 5000) / 7.0;
            kind.device.otherPeakDenseTflops["fp4"] = 9000;
            if (*rc::gen::arbitrary<bool>()) kind.device.sms = *rc::gen::inRange(1, 200);
            if (*rc::gen::arbitrary<bool>()) kind.device.memoryBytes = *rc::gen::inRange<Bytes>(1, kGiB * 100);
            kind.device.sources = {"a", "b"};
            kind.nics.latencyUs = *rc::gen::inRange(0, 100) / 3.0;
            cluster.nodes.push_back({kind, *rc::gen::inRange(1, 1000)});
        }
        cluster.network = {"net", *rc::gen::arbitrary<bool>(), *rc::gen::inRange(1, 8) * 1.25, *rc::gen::inRange(1, 64), 0.7};
        const auto parsed = parseJson(toJson(cluster).dump(), "again");
        RC_ASSERT(parsed.has_value());
        const auto again = clusterFromJson(JsonCursor(*parsed, "again"), lookups());
        RC_ASSERT(again.has_value());
        RC_ASSERT(*again == cluster);
    });
    ASSERT_TRUE(ok);
}

TEST(ClusterJson, ErrorsSayFilePlaceAndWhatWasExpected) {
    const auto message = [](const std::string& text) {
        const auto cluster = parse(text);
        return cluster ? std::string("no error") : cluster.error().toString();
    };
    EXPECT_THAT(message(R"({"format": "ringside-profile", "version": 1, "nodes": []})"), HasSubstr("expected \"ringside-cluster\""));
    EXPECT_THAT(message(R"({"format": "ringside-cluster", "version": 2, "nodes": []})"), HasSubstr("version: 2 is out of range"));
    EXPECT_THAT(message(R"({"version": 1, "nodes": []})"), HasSubstr("'format' is missing"));
    EXPECT_THAT(message(file("[]")), HasSubstr("c.json: nodes: a cluster needs at least one entry"));
    EXPECT_THAT(message(file(R"([{"kind": "bix"}])")), HasSubstr("c.json: nodes[0].kind: unknown node kind"));
    EXPECT_THAT(message(file(R"([{"kind": 3}])")), HasSubstr("expected the name of a node kind"));
    EXPECT_THAT(message(file(R"([{"kind": "box", "cuont": 2}])")), HasSubstr("did you mean 'count'"));
    EXPECT_THAT(message(file(R"([{"kind": "box", "count": 0}])")), HasSubstr("nodes[0].count: 0 is out of range; expected 1 to 1048576"));
    EXPECT_THAT(message(file(R"([{"kind": "box", "count": 1048576}, {"kind": "box"}])")), HasSubstr("1048577 nodes so far"));
    EXPECT_THAT(message(file(R"([{"kind": {"device": "gpu", "devices": 1025, "fabric": "nvswitch"}}])")), HasSubstr("expected 1 to 1024"));
    EXPECT_THAT(message(file(R"([{"kind": {"device": "cpu", "devices": 1, "fabric": "nvswitch"}}])")),
                HasSubstr("nodes[0].kind.device: unknown device"));
    EXPECT_THAT(message(file(R"([{"kind": {"device": 7, "devices": 1, "fabric": "nvswitch"}}])")), HasSubstr("expected the name of a device"));
    EXPECT_THAT(message(file(R"([{"kind": {"device": "gpu", "devices": 1, "fabric": "nvswich"}}])")), HasSubstr("did you mean 'nvswitch'"));
    EXPECT_THAT(message(file(R"([{"kind": {"device": "gpu", "devices": 1, "fabric": "nvswitch", "cpu": "sparc"}}])")),
                HasSubstr("unknown CPU vendor 'sparc'"));
    EXPECT_THAT(message(file(R"([{"kind": {"device": "gpu", "devices": 1, "fabric": "nvswitch", "nics": {"count": 2}}}])")),
                HasSubstr("'gbit_per_s' is missing"));
    EXPECT_THAT(message(file(R"([{"kind": "box"}])", "\"wan\"")), HasSubstr("c.json: network: unknown network"));
    EXPECT_THAT(message(file(R"([{"kind": "box"}])", "5")), HasSubstr("expected the name of a network"));
    EXPECT_THAT(message(file(R"([{"kind": "box"}])", R"({"oversubscription": 0.5})")), HasSubstr("network.oversubscription: 0.5 is out of range"));
}

}  // namespace
}  // namespace ringside
