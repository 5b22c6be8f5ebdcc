#include "model/cost/nccl_topology.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/cost/nccl_constants.h"
#include "nccl_test_clusters.h"

namespace ringside::nccl {
namespace {

using namespace ringside::testing;

Topology topology(const Cluster& cluster, const GroupShape& group, NcclVersion version = NcclVersion::V2_30) {
    auto t = describeTopology(cluster, group, version, false);
    if (!t) ADD_FAILURE() << t.error().toString();
    return *t;
}

void expectGraph(const Graph& g, int channels, double bandwidth) {
    EXPECT_EQ(g.channels, channels);
    EXPECT_DOUBLE_EQ(g.bwInter, bandwidth);
}

// A100: 240/40 = 6 rings, doubled at half speed. H100: 370.8/60 = 6, doubled. B200: 721.8/90 = 8, doubled.
TEST(NcclRingSearch, NvswitchNodesHaveTheKnownChannels) {
    expectGraph(topology(clusterOf(a100(), 1, 8), wholeNodes(1, 8)).ring, 12, 20);
    expectGraph(topology(clusterOf(h100(), 1, 8), wholeNodes(1, 8)).ring, 12, 30);
    expectGraph(topology(clusterOf(b200(), 1, 8), wholeNodes(1, 8)).ring, 16, 45);
    expectGraph(topology(clusterOf(b200(), 1, 8), wholeNodes(1, 8), NcclVersion::V2_27).ring, 16, 45);
}

// 8×100 Gb/s: 12.5 → 12 on the grid. 8×200 behind Gen4: 24. H100 8×400: 8 channels of 48 would need 384 > 370.8 of NVLink, so 45,
// and more than four channels below 50 GB/s are not doubled above compute capability 8.0.
TEST(NcclRingSearch, AcrossNodesEachNicCarriesAChannelAtAListedSpeed) {
    expectGraph(topology(clusterOf(a100(), 4, 8, 8, 100), wholeNodes(4, 8)).ring, 8, 12);
    expectGraph(topology(clusterOf(a100(), 4, 8, 8, 200), wholeNodes(4, 8)).ring, 8, 24);
    expectGraph(topology(clusterOf(h100(), 4, 8, 8, 400), wholeNodes(4, 8)).ring, 8, 45);
    expectGraph(topology(clusterOf(a100(), 4, 8, 1, 10), wholeNodes(4, 8)).ring, 1, 1.2);
}

// Rings in the links of the first n GPUs of the cube mesh: 1, 2, 4, none, 2, 4, 6 (n = 2…8), 20 GB/s each; five go over PCIe.
TEST(NcclRingSearch, TheCubeMeshHasAsManyRingsAsItsLinksAllow) {
    const auto cluster = clusterOf(v100(), 1, 8, 0, 0, CpuVendor::Intel, IntraNodeFabric::NvLinkMesh);
    const std::vector<std::pair<std::int64_t, int>> rings{{2, 1}, {3, 2}, {4, 4}, {6, 2}, {7, 4}, {8, 6}};
    for (const auto& [n, count] : rings) {
        SCOPED_TRACE(n);
        expectGraph(topology(cluster, wholeNodes(1, n)).ring, count, 20);
    }
    const auto five = topology(cluster, wholeNodes(1, 5));
    EXPECT_FALSE(five.nvlink);
    expectGraph(five.ring, 1, 10);
}

// Gen4, two sockets: the link between sockets carries 16 on AMD (on the grid 15), 10 on Intel. On one socket the PCIe rate itself:
// 24 on AMD, as two channels of 12; 24 · 5/6 = 20 behind an Intel root complex.
TEST(NcclRingSearch, PcieBoxesAreBoundByTheLinkBetweenSockets) {
    const auto box = [](CpuVendor cpu) {
        return clusterOf(gpu("l40s", GpuArch::Ada, 8.9, 0, 0, 24), 1, 8, 0, 0, cpu, IntraNodeFabric::PcieHost);
    };
    expectGraph(topology(box(CpuVendor::Amd), wholeNodes(1, 8)).ring, 1, 15);
    expectGraph(topology(box(CpuVendor::Intel), wholeNodes(1, 8)).ring, 1, 10);
    expectGraph(topology(box(CpuVendor::Amd), wholeNodes(1, 4)).ring, 2, 12);
    expectGraph(topology(box(CpuVendor::Intel), wholeNodes(1, 4)).ring, 1, 20);
}

// n = 8: 370.8/9 = 41.2 → 40, raised to 60 outside. 721.8/9 = 80.2 → 80, raised to 90 (the fastest listed).
TEST(NcclNvlsSearch, EveryHeadIsChargedOnceMoreThanThereAreHeads) {
    const auto h = topology(clusterOf(h100(), 1, 8), wholeNodes(1, 8)).nvls;
    EXPECT_EQ(h.channels, 8);
    EXPECT_DOUBLE_EQ(h.bwIntra, 40);
    EXPECT_DOUBLE_EQ(h.bwInter, 60);
    const auto b = topology(clusterOf(b200(), 1, 8), wholeNodes(1, 8)).nvls;
    EXPECT_DOUBLE_EQ(b.bwIntra, 80);
    EXPECT_DOUBLE_EQ(b.bwInter, 90);
    EXPECT_EQ(topology(clusterOf(a100(), 1, 8), wholeNodes(1, 8)).nvls.channels, 0);
}

TEST(NcclNvlsSearch, AcrossNodesHeadsNeedANicEach) {
    const auto g = topology(clusterOf(h100(), 4, 8, 8, 400), wholeNodes(4, 8)).nvls;
    EXPECT_EQ(g.channels, 8);
    EXPECT_DOUBLE_EQ(g.bwIntra, 40);
    EXPECT_DOUBLE_EQ(g.bwInter, 48);
    EXPECT_EQ(topology(clusterOf(h100(), 4, 8, 4, 400), wholeNodes(4, 8)).nvls.channels, 8);  // two heads of 24 per NIC
}

// Eight channels of 12 between two nodes, up to twice that within: 24 · 8 = 192 ≤ 240.
TEST(NcclTreeSearch, TwoNodesRunFasterWithinANodeThanBetween) {
    const auto t = topology(clusterOf(a100(), 2, 8, 8, 100), wholeNodes(2, 8));
    EXPECT_DOUBLE_EQ(t.tree.bwInter, 12);
    EXPECT_DOUBLE_EQ(t.tree.bwIntra, 24);
    EXPECT_DOUBLE_EQ(topology(clusterOf(a100(), 3, 8, 8, 100), wholeNodes(3, 8)).tree.bwIntra, 12);
}

TEST(NcclTreeCorrection, IsIndexedByTheLogarithmOfTheSize) {
    EXPECT_DOUBLE_EQ(treeCorrection(CollectiveProtocol::LL, 63), 1);
    EXPECT_DOUBLE_EQ(treeCorrection(CollectiveProtocol::Simple, 64), 0.9);
    EXPECT_DOUBLE_EQ(treeCorrection(CollectiveProtocol::LL, 32 * kKiB), 0.7);      // log2(512) = 9
    EXPECT_DOUBLE_EQ(treeCorrection(CollectiveProtocol::LL128, kMiB), 0.6);        // log2(16384) = 14
    EXPECT_DOUBLE_EQ(treeCorrection(CollectiveProtocol::Simple, 512 * kMiB), 1);   // past the table
    EXPECT_DOUBLE_EQ(nvlsTreeCorrection(512 * kMiB), 0.9);
}

TEST(NcclRingSearch, NeverTakesMoreThanTheCapacities) {
    ASSERT_TRUE(rc::check("capacity holds", [] {
        const double intra = *rc::gen::inRange(1, 10000) / 10.0;
        const double nic = *rc::gen::inRange(1, 1000) / 10.0;
        const auto nics = *rc::gen::inRange<std::int64_t>(0, 9);
        const auto generation = static_cast<Generation>(*rc::gen::inRange(0, 4));
        const auto speeds = nics > 0 ? interSpeeds(NcclVersion::V2_30, generation) : intraSpeeds(NcclVersion::V2_30, generation);
        const auto g = searchRing(speeds, intra, intra, nics, nic);
        const double total = g.channels * g.bwInter;
        RC_ASSERT(g.channels >= 1 && g.channels <= kMaxRingChannels);
        if (g.bwInter > 0.1) {
            RC_ASSERT(total <= intra * 1.000001);
            if (nics > 0) RC_ASSERT(total <= static_cast<double>(nics) * nic * 1.000001);
        }
        const auto d = duplicateChannels(g, 8.0);
        RC_ASSERT(std::abs(d.channels * d.bwInter - total) <= total * 1e-9 || d.channels == kMaxRingChannels);
    }));
}

}  // namespace
}  // namespace ringside::nccl
