#include "model/hardware/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/graph/breadth_first_search.hpp>
#include <set>

#include "model/catalog/hardware_catalog.h"

namespace ringside {
namespace {

using ::testing::HasSubstr;

const HardwareCatalog& catalog() {
    static const Result<HardwareCatalog> built = HardwareCatalog::builtin();
    if (!built) throw std::runtime_error(built.error().toString());
    return *built;
}

Cluster clusterOf(const std::string& nodeKind, std::int64_t devices, const std::string& network = {}) {
    return catalog().makeCluster({.device = {}, .devices = devices, .devicesPerNode = 0, .nodeKind = nodeKind, .network = network}).value();
}

Topology topologyOf(const std::string& nodeKind, std::int64_t devices, const std::string& network = {}) {
    return buildTopology(clusterOf(nodeKind, devices, network)).value();
}

/// The kinds of the vertices on the way, the ends included.
std::vector<VertexKind> kindsOn(const Topology& topology, std::int64_t a, std::int64_t b) {
    std::vector<VertexKind> out = {topology.graph()[topology.deviceVertex(a)].kind};
    for (const LinkId id : route(topology, a, b).links) out.push_back(topology.graph()[topology.to(id)].kind);
    return out;
}

using enum VertexKind;
using Kinds = std::vector<VertexKind>;

TEST(Route, NvSwitchIsTwoHopsAtTheRateNcclCounts) {
    const Topology topology = topologyOf("dgx-a100-80gb", 8);
    EXPECT_EQ(kindsOn(topology, 0, 7), (Kinds{Device, NvSwitch, Device}));
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 0, 7)), 240e9);
    EXPECT_TRUE(route(topology, 3, 3).links.empty());
}

TEST(Route, CubeMeshHasTheLinkCountsOfADgx1) {
    const Topology topology = topologyOf("dgx-1v", 8);
    // 20 GB/s per link: GPU0–GPU3 two links, GPU0–GPU1 one, GPU0–GPU5 none: through GPU1 (1 and 2 links) or GPU4 (2 and 1).
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 0, 3)), 40e9);
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 0, 1)), 20e9);
    EXPECT_EQ(kindsOn(topology, 0, 5), (Kinds{Device, Device, Device}));
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 0, 5)), 20e9);
    for (std::int64_t d = 0; d < 8; ++d) {
        double total = 0;  // six links of 20 GB/s leave every device
        for (LinkId id = 0; id < topology.linkCount(); ++id)
            if (topology.from(id) == topology.deviceVertex(d) && topology.link(id).kind == LinkKind::NvLink) total += topology.link(id).bytesPerS;
        EXPECT_DOUBLE_EQ(total, 120e9) << d;
    }
}

TEST(Route, XgmiPairsKeepTheirOneLinkHoweverFewDevicesAreUsed) {
    // MI300X: 448 GB/s over 7 links = 64 GB/s per pair, with 8 devices and with 2
    EXPECT_DOUBLE_EQ(bottleneck(topologyOf("mi300x-node", 8), route(topologyOf("mi300x-node", 8), 0, 7)), 64e9);
    EXPECT_DOUBLE_EQ(bottleneck(topologyOf("mi300x-node", 2), route(topologyOf("mi300x-node", 2), 0, 1)), 64e9);
}

TEST(Route, PcieBoxesGoThroughTheCpuAndBetweenSockets) {
    const Topology topology = topologyOf("pcie-box", 8);
    EXPECT_EQ(kindsOn(topology, 0, 3), (Kinds{Device, Cpu, Device}));
    EXPECT_EQ(kindsOn(topology, 0, 4), (Kinds{Device, Cpu, Cpu, Device}));
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 0, 3)), 24e9);
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 0, 4)), 16e9);  // AMD sockets
}

TEST(Route, PcieSwitchesKeepNeighboursOffTheCpu) {
    const Topology topology = topologyOf("pcie-switch-box", 8);
    EXPECT_EQ(kindsOn(topology, 0, 3), (Kinds{Device, PcieSwitch, Device}));
    EXPECT_EQ(kindsOn(topology, 0, 4), (Kinds{Device, PcieSwitch, Cpu, Cpu, PcieSwitch, Device}));
}

TEST(Route, SameRailCrossesOneLeafWithTheNicsLatency) {
    Cluster cluster = clusterOf("dgx-a100-80gb", 16);
    cluster.nodes[0].kind.nics.latencyUs = 4;
    const Topology topology = buildTopology(cluster).value();
    EXPECT_EQ(kindsOn(topology, 3, 11), (Kinds{Device, PcieSwitch, Nic, LeafSwitch, Nic, PcieSwitch, Device}));
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 3, 11)), 24e9);  // PCIe 4 as NCCL counts it, below the NIC's 25
    EXPECT_DOUBLE_EQ(route(topology, 3, 11).latencyS, 4e-6);
}

TEST(Route, OtherRailsAreReachedInsideTheNodeNotThroughTheSpine) {
    const Topology topology = topologyOf("dgx-a100-80gb", 16);
    // The neighbours of a ring across nodes: device 7 of one node and device 0 of the next.
    EXPECT_EQ(kindsOn(topology, 7, 8), (Kinds{Device, NvSwitch, Device, PcieSwitch, Nic, LeafSwitch, Nic, PcieSwitch, Device}));
}

TEST(Route, WithoutNvlinkOtherRailsAreReachedThroughTheSpine) {
    Cluster cluster = clusterOf("pcie-switch-box", 16);
    cluster.nodes[0].kind.nics = {.count = 8, .gbitPerS = 100};
    cluster.network.railOptimised = true;
    cluster.network.switchLatencyUs = 0.5;
    const Topology topology = buildTopology(cluster).value();
    EXPECT_EQ(kindsOn(topology, 7, 8), (Kinds{Device, PcieSwitch, Nic, LeafSwitch, SpineSwitch, LeafSwitch, Nic, PcieSwitch, Device}));
    EXPECT_DOUBLE_EQ(route(topology, 7, 8).latencyS, 1e-6);  // two switches beyond the first, 0.5 µs each
}

TEST(Route, WithoutGpuDirectTheNicIsReachedThroughTheCpu) {
    const Topology topology = topologyOf("g5", 16);
    EXPECT_EQ(kindsOn(topology, 0, 8), (Kinds{Device, Cpu, Nic, LeafSwitch, Nic, Cpu, Device}));
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 0, 8)), 12.5e9);  // 100 Gb/s
}

TEST(Topology, SeveralNicsPerDeviceAreOneVertexOfTheirJointRate) {
    const Topology topology = topologyOf("p5", 16);
    double nicRate = 0;
    for (LinkId id = 0; id < topology.linkCount(); ++id)
        if (topology.link(id).kind == LinkKind::Network) nicRate = std::max(nicRate, topology.link(id).bytesPerS);
    EXPECT_DOUBLE_EQ(nicRate, 50e9);  // 4 of the 32 NICs of 100 Gb/s
}

double uplinkRate(const Cluster& cluster) {
    const Topology topology = buildTopology(cluster).value();
    for (LinkId id = 0; id < topology.linkCount(); ++id)
        if (topology.link(id).kind == LinkKind::Uplink) return topology.link(id).bytesPerS;
    return 0;
}

TEST(Topology, OversubscriptionDividesTheUplinks) {
    Cluster cluster = clusterOf("dgx-a100-80gb", 320);
    cluster.network.nodesPerLeaf = 20;
    EXPECT_DOUBLE_EQ(uplinkRate(cluster), 500e9);  // rail: 20 nodes × one NIC of 25 GB/s
    cluster.network.oversubscription = 4;
    EXPECT_DOUBLE_EQ(uplinkRate(cluster), 125e9);
    cluster.network.railOptimised = false;
    EXPECT_DOUBLE_EQ(uplinkRate(cluster), 1000e9);  // 20 nodes × 8 NICs × 25 / 4
}

TEST(Topology, SurvivesBeingCopied) {
    const Topology* copy = nullptr;
    auto original = std::make_unique<Topology>(topologyOf("dgx-1v", 16));
    const Topology second = *original;
    const Route before = route(*original, 0, 13);
    original.reset();
    copy = &second;
    EXPECT_EQ(route(*copy, 0, 13), before);
    EXPECT_EQ(copy->graph()[copy->deviceVertex(13)].index, 13);
}

TEST(BuildTopology, SaysWhichRateIsMissing) {
    Cluster cluster = clusterOf("dgx-a100-80gb", 8);
    cluster.nodes[0].kind.device.nvlinkGbPerS.reset();
    cluster.nodes[0].kind.device.nvlinkNcclGbPerS.reset();
    EXPECT_THAT(buildTopology(cluster).error().message, HasSubstr("--set device.nvlink_gb_per_s="));
    cluster.nodes[0].kind.fabric = IntraNodeFabric::PcieHost;
    cluster.nodes[0].kind.device.pcieGbPerS.reset();
    cluster.nodes[0].kind.device.pcieNcclGbPerS.reset();
    EXPECT_THAT(buildTopology(cluster).error().message, HasSubstr("--set device.pcie_gb_per_s="));
    EXPECT_THAT(buildTopology(clusterOf("host", 4)).error().message, HasSubstr("--set device.loopback_gb_per_s="));
}

TEST(BuildTopology, CpuRanksMeetInHostMemory) {
    Cluster cluster = clusterOf("host", 4);
    ASSERT_TRUE(setDeviceFigure(cluster.nodes[0].kind.device, "loopback_gb_per_s", 5));
    const Topology topology = buildTopology(cluster).value();
    EXPECT_EQ(kindsOn(topology, 0, 3), (Kinds{Device, Cpu, Device}));
    EXPECT_DOUBLE_EQ(bottleneck(topology, route(topology, 0, 3)), 5e9);
}

TEST(BuildTopology, RefusesNodesWithoutANetworkNoNodesAndTooManyLinks) {
    EXPECT_THAT(buildTopology(clusterOf("dgx-a100", 16, "none")).error().message, HasSubstr("choose a network with --network"));
    EXPECT_TRUE(buildTopology(clusterOf("dgx-a100", 8, "none")));
    EXPECT_THAT(buildTopology(Cluster{}).error().message, HasSubstr("has no nodes"));
    EXPECT_THAT(buildTopology(clusterOf("dgx-a100", 8'388'608)).error().message, HasSubstr("use the closed forms"));
}

/// Laws of one route: connected, ends at its ranks, no vertex twice, positive capacity, as long as its way back.
void checkRoute(const Topology& topology, std::int64_t a, std::int64_t b) {
    const Route there = route(topology, a, b);
    std::size_t at = topology.deviceVertex(a);
    std::set<std::size_t> seen = {at};
    for (const LinkId id : there.links) {
        ASSERT_EQ(topology.from(id), at);
        ASSERT_GT(topology.link(id).bytesPerS, 0);
        at = topology.to(id);
        ASSERT_TRUE(seen.insert(at).second) << "visited twice";
    }
    ASSERT_EQ(at, topology.deviceVertex(b));
    const Route back = route(topology, b, a);
    ASSERT_EQ(back.links.size(), there.links.size()) << a << " to " << b;
    ASSERT_NEAR(back.latencyS, there.latencyS, 1e-15);
}

TEST(RouteLaws, HoldOnEveryClusterOfTheCatalogue) {
    for (const Cluster& cluster : catalog().clusters()) {
        const auto topology = buildTopology(cluster);
        ASSERT_TRUE(topology) << cluster.name << ": " << topology.error().toString();
        const std::int64_t n = cluster.deviceCount();
        for (const std::int64_t step : {std::int64_t{1}, std::int64_t{5}, n / 2, n - 1})
            for (std::int64_t a = 0; a < std::min<std::int64_t>(n, 80); ++a)
                ASSERT_NO_FATAL_FAILURE(checkRoute(*topology, a, (a + step) % n)) << cluster.name;
    }
}

Cluster randomCluster() {
    Cluster cluster{"random", {}, {}};
    const int groups = *rc::gen::inRange(1, 4);
    for (int g = 0; g < groups; ++g) {
        NodeKind kind;
        kind.device = *catalog().findDevice(*rc::gen::element<std::string>("v100-sxm", "a100-80gb-sxm", "h100-sxm"));
        kind.devices = *rc::gen::inRange(1, 13);
        kind.fabric = *rc::gen::element(IntraNodeFabric::NvSwitch, IntraNodeFabric::NvLinkMesh, IntraNodeFabric::XgmiMesh,
                                        IntraNodeFabric::PcieSwitch, IntraNodeFabric::PcieHost);
        kind.cpuSockets = *rc::gen::inRange(1, 4);
        kind.devicesPerPcieSwitch = *rc::gen::inRange(1, 5);
        kind.nics = {.count = *rc::gen::inRange(1, 17), .gbitPerS = 100, .latencyUs = 1, .gpuDirect = *rc::gen::arbitrary<bool>()};
        cluster.nodes.push_back({kind, *rc::gen::inRange(1, 6)});
    }
    cluster.network = {"net", *rc::gen::arbitrary<bool>(), 2, *rc::gen::inRange(1, 5), 0.3};
    return cluster;
}

TEST(RouteLaws, HoldOnRandomClusters) {
    const bool ok = rc::check("routes are connected, simple and symmetric", [] {
        const Cluster cluster = randomCluster();
        const Topology topology = buildTopology(cluster).value();
        const std::int64_t a = *rc::gen::inRange<std::int64_t>(0, cluster.deviceCount()),
                           b = *rc::gen::inRange<std::int64_t>(0, cluster.deviceCount());
        checkRoute(topology, a, b);
        RC_ASSERT(!::testing::Test::HasFatalFailure());
    });
    ASSERT_TRUE(ok);
}

/// Hops from one rank to every vertex, by breadth-first search.
std::vector<int> distancesFrom(const Topology& topology, std::int64_t rank) {
    std::vector<int> distance(boost::num_vertices(topology.graph()), 0);
    const auto visitor = boost::make_bfs_visitor(boost::record_distances(
        boost::make_iterator_property_map(distance.begin(), boost::get(boost::vertex_index, topology.graph())), boost::on_tree_edge()));
    boost::breadth_first_search(topology.graph(), topology.deviceVertex(rank), boost::visitor(visitor));
    return distance;
}

TEST(RouteLaws, NoSearchFindsFewerHopsOnTheCatalogueNodes) {
    for (const CatalogNodeKind& entry : catalog().nodeKinds()) {
        if (entry.kind.fabric == IntraNodeFabric::Loopback) continue;
        const Topology topology = topologyOf(entry.kind.name, entry.kind.devices * 3);
        const std::int64_t n = topology.deviceCount();
        for (const std::int64_t a : {std::int64_t{0}, n / 3 - 1, n / 2}) {
            const std::vector<int> distance = distancesFrom(topology, a);
            for (std::int64_t b = 0; b < n; ++b)
                ASSERT_EQ(static_cast<int>(route(topology, a, b).links.size()), distance[topology.deviceVertex(b)])
                    << entry.kind.name << " " << a << " " << b;
        }
    }
}

}  // namespace
}  // namespace ringside
