#include "model/cost/nccl_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "nccl_test_clusters.h"

namespace ringside {
namespace {

using namespace ringside::testing;
using enum CollectiveOp;

NcclModel model(const Cluster& cluster, const GroupShape& group, const NcclOptions& options = {}) {
    auto made = NcclModel::create(cluster, group, options);
    if (!made) ADD_FAILURE() << made.error().toString();
    return std::move(*made);
}
NcclModel oneNode(const Device& device, std::int64_t n, NcclVersion version = NcclVersion::V2_30) {
    NcclOptions options;
    options.version = version;
    return model(clusterOf(device, 1, 8), wholeNodes(1, n), options);
}
double us(const NcclModel& m, CollectiveOp op, Bytes bytes) { return m.cost(op, bytes).seconds * 1e6; }

struct Reference {
    Bytes bytes;
    double microseconds;
};

void expectTimes(const NcclModel& m, CollectiveOp op, const std::vector<Reference>& references, double tolerance) {
    for (const auto& r : references) {
        EXPECT_NEAR(us(m, op, r.bytes), r.microseconds, r.microseconds * tolerance) << formatBytes(r.bytes);
    }
}

// 64 KiB, ring LL: 6.6 + 14·0.6 + 65536 / (1000 · 87.7·8/14) = 15.0 + 1.31.
// 1 GiB, ring Simple: 8.4 + 14·3.4 + 2³⁰ / (1000 · 240·8/14) = 56 + 7829.
TEST(NcclAllReduce, EightA100TakeTheTimesOfTheTuner) {
    expectTimes(oneNode(a100(), 8), AllReduce,
                {{64 * kKiB, 16.3}, {kMiB, 35.9}, {4 * kMiB, 73.8}, {25 * kMiB, 247}, {100 * kMiB, 821}, {kGiB, 7885}}, 0.01);
}

// 4 MiB, NVLS: 25 + 4194304 / (1000 · 8·40·0.85·7/8·2 · 8/14) = 25 + 15.4.
TEST(NcclAllReduce, EightH100TakeTheTimesOfTheTuner) {
    expectTimes(oneNode(h100(), 8), AllReduce,
                {{64 * kKiB, 15.8}, {kMiB, 28.0}, {4 * kMiB, 40.4}, {25 * kMiB, 121}, {100 * kMiB, 411}, {kGiB, 3973}}, 0.01);
}

TEST(NcclAllGather, AndReduceScatterTakeTheTimesOfTheTunerOnOneNode) {
    for (const auto op : {AllGather, ReduceScatter}) {
        expectTimes(oneNode(a100(), 8), op, {{kMiB, 21.3}, {25 * kMiB, 128}}, 0.01);
        expectTimes(oneNode(h100(), 8), op, {{kMiB, 17.3}, {25 * kMiB, 95.9}}, 0.01);
    }
}

TEST(NcclAllReduce, FourNodesOfEightA100TakeTheTimesOfTheTuner) {
    const auto m = model(clusterOf(a100(), 4, 8, 8, 100), wholeNodes(4, 8));
    // 32 KiB, tree LL: 6.8 + 2(7·0.6 + 2·5) + 32768 / (1000 · 19/2·0.7) = 35.2 + 4.9.
    // 1 GiB, ring Simple: 1.4 · (8.4 + 56·6 + 6·14) + 2³⁰ / (1000 · 96·32/62) = 600 + 21 671.
    expectTimes(m, AllReduce,
                {{32 * kKiB, 40}, {256 * kKiB, 76}, {kMiB, 108}, {4 * kMiB, 192}, {8 * kMiB, 291}, {16 * kMiB, 516}, {32 * kMiB, 886},
                 {64 * kMiB, 1622}, {256 * kMiB, 6017}, {kGiB, 22270}},
                0.02);
}

double busAt16GiB(const NcclModel& m, CollectiveOp op, std::int64_t n) {
    const Bytes bytes = 16 * kGiB;
    return static_cast<double>(bytes) / m.cost(op, bytes).seconds * 1e-9 * busBandwidthFactor(op, n);
}

// H100: ring 12·30 = 360; NVLS 8·40·5/6·14/8 = 466.7 (2.27), 8·59.5 = 476 (2.30). B200: ring 16·45 = 720; NVLS 8·80·5/6·14/8 =
// 933 (2.27), 8·min(103.6, 90) = 720 (2.30). A100: ring 12·20 = 240.
TEST(NcclAllReduce, LargeBuffersApproachTheBusBandwidthOfTheSearchedGraph) {
    EXPECT_NEAR(busAt16GiB(oneNode(h100(), 8, NcclVersion::V2_27), AllReduce, 8), 466.7, 4.7);
    EXPECT_NEAR(busAt16GiB(oneNode(h100(), 8), AllReduce, 8), 476, 4.8);
    EXPECT_NEAR(busAt16GiB(oneNode(h100(), 8), AllGather, 8), 360, 3.6);
    EXPECT_NEAR(busAt16GiB(oneNode(b200(), 8, NcclVersion::V2_27), AllReduce, 8), 933, 9.3);
    EXPECT_NEAR(busAt16GiB(oneNode(b200(), 8), AllReduce, 8), 720, 7.2);
    EXPECT_NEAR(busAt16GiB(oneNode(a100(), 8), AllReduce, 8), 238, 2.4);

    NcclOptions ring;
    ring.algorithm = CollectiveAlgorithm::Ring;
    EXPECT_NEAR(busAt16GiB(model(clusterOf(h100(), 1, 8), wholeNodes(1, 8), ring), AllReduce, 8), 360, 3.6);
    EXPECT_NEAR(busAt16GiB(model(clusterOf(b200(), 1, 8), wholeNodes(1, 8), ring), AllReduce, 8), 720, 7.2);
}

// At 1 MiB: ring LL 28.0 µs against NVLS 28.9; at 2 MiB: 41.0 against 32.7.
TEST(NcclChoice, EightH100SwitchFromRingToNvlsAboveOneMebibyte) {
    const auto m = oneNode(h100(), 8);
    for (Bytes bytes = kKiB; bytes <= kMiB; bytes *= 2) {
        EXPECT_EQ(m.cost(AllReduce, bytes).algorithm, CollectiveAlgorithm::Ring) << bytes;
        EXPECT_EQ(m.cost(AllReduce, bytes).protocol, CollectiveProtocol::LL) << bytes;
    }
    for (Bytes bytes = 2 * kMiB; bytes <= 16 * kGiB; bytes *= 2) {
        EXPECT_EQ(m.cost(AllReduce, bytes).algorithm, CollectiveAlgorithm::Nvls) << bytes;
        EXPECT_EQ(m.cost(AllReduce, bytes).protocol, CollectiveProtocol::Simple) << bytes;
    }
}

// The fewest devices from which on NVLS carries a large all-reduce.
std::int64_t nvlsFrom(const Device& device, NcclVersion version) {
    for (std::int64_t n = 2; n <= 8; ++n) {
        if (oneNode(device, n, version).cost(AllReduce, 8 * kGiB).algorithm == CollectiveAlgorithm::Nvls) return n;
    }
    return 0;
}

TEST(NcclChoice, NvlsStartsAtTheDeviceCountOfTheRelease) {
    EXPECT_EQ(nvlsFrom(h100(), NcclVersion::V2_27), 5);
    EXPECT_EQ(nvlsFrom(b200(), NcclVersion::V2_27), 6);
    EXPECT_EQ(nvlsFrom(h100(), NcclVersion::V2_30), 6);
    EXPECT_EQ(nvlsFrom(b200(), NcclVersion::V2_30), 8);
    EXPECT_EQ(nvlsFrom(a100(), NcclVersion::V2_30), 0);
}

TEST(NcclChoice, BroadcastAndReduceAreRingsOnly) {
    for (const auto op : {Broadcast, Reduce}) {
        for (const auto& c : oneNode(h100(), 8).candidates(op, kMiB)) EXPECT_EQ(c.algorithm, CollectiveAlgorithm::Ring);
    }
    // Broadcast on one node, all channels on one ring: 8.4 + 3.4 + 100 MiB / 240 GB/s = 11.8 + 436.9.
    EXPECT_NEAR(us(oneNode(a100(), 8), Broadcast, 100 * kMiB), 448.7, 0.5);
}

TEST(NcclChoice, PatNeedsOneDevicePerNode) {
    const auto hasPat = [](const NcclModel& m) {
        for (const auto& c : m.candidates(AllGather, kMiB)) {
            if (c.algorithm == CollectiveAlgorithm::Pat) return true;
        }
        return false;
    };
    EXPECT_TRUE(hasPat(model(clusterOf(h100(), 4, 8), wholeNodes(4, 1))));
    EXPECT_FALSE(hasPat(model(clusterOf(h100(), 4, 8), wholeNodes(4, 8))));
    // 8 + log2(4) · 14/3.5 + 4 · 2.8 = 27.2 µs before any byte.
    for (const auto& c : model(clusterOf(h100(), 4, 8), wholeNodes(4, 1)).candidates(AllGather, kMiB)) {
        if (c.algorithm != CollectiveAlgorithm::Pat) continue;
        EXPECT_NEAR(c.latencySeconds * 1e6, 27.2, 1e-6);
    }
}

TEST(NcclChoice, Ll128NeedsNvlinkAndNicsThatReadDeviceMemory) {
    const auto hasLl128 = [](const Cluster& cluster, const GroupShape& group) {
        for (const auto& c : model(cluster, group).candidates(AllReduce, kMiB)) {
            if (c.protocol == CollectiveProtocol::LL128) return true;
        }
        return false;
    };
    EXPECT_TRUE(hasLl128(clusterOf(a100(), 2, 8), wholeNodes(2, 8)));
    auto noGpuDirect = clusterOf(a100(), 2, 8);
    noGpuDirect.nodes[0].kind.nics.gpuDirect = false;
    EXPECT_FALSE(hasLl128(noGpuDirect, wholeNodes(2, 8)));
    EXPECT_FALSE(hasLl128(clusterOf(a100(), 1, 8, 0, 0, CpuVendor::Amd, IntraNodeFabric::PcieHost), wholeNodes(1, 8)));
}

TEST(NcclForced, APairThatCannotDoTheOpIsAnErrorAndLeavesNoCandidates) {
    NcclOptions options;
    options.algorithm = CollectiveAlgorithm::Tree;
    const auto m = model(clusterOf(a100(), 1, 8), wholeNodes(1, 8), options);
    EXPECT_EQ(m.cost(AllReduce, kMiB).algorithm, CollectiveAlgorithm::Tree);
    EXPECT_TRUE(m.checkedCost(AllReduce, kMiB).has_value());
    const auto refused = m.checkedCost(AllGather, kMiB);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("all_gather cannot run with algorithm tree"), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("ring/Simple"), std::string::npos) << refused.error().message;
    EXPECT_TRUE(m.candidates(AllGather, kMiB).empty());
    EXPECT_EQ(m.cost(AllGather, kMiB).algorithm, CollectiveAlgorithm::Ring);
}

TEST(NcclScales, TheyChangeTheCostAndNotTheChoice) {
    NcclOptions scaled;
    scaled.latencyScale = 10;
    scaled.bandwidthScale = 0.5;
    const auto plain = oneNode(h100(), 8);
    const auto other = model(clusterOf(h100(), 1, 8), wholeNodes(1, 8), scaled);
    for (Bytes bytes = kKiB; bytes <= kGiB; bytes *= 4) {
        const auto a = plain.cost(AllReduce, bytes);
        const auto b = other.cost(AllReduce, bytes);
        EXPECT_EQ(a.algorithm, b.algorithm);
        EXPECT_DOUBLE_EQ(b.latencySeconds, 10 * a.latencySeconds);
        EXPECT_DOUBLE_EQ(b.transferSeconds, 2 * a.transferSeconds);
    }
    scaled.bandwidthScale = 0;
    EXPECT_FALSE(NcclModel::create(clusterOf(h100(), 1, 8), wholeNodes(1, 8), scaled).has_value());
}

// Ring LL on 8 ranks drops a channel per 512·8·8 = 32 KiB, Simple one per 512·64 = 32 KiB.
TEST(NcclChannels, SmallMessagesUseFewer) {
    const auto m = oneNode(a100(), 8);
    EXPECT_EQ(m.cost(AllReduce, 64 * kKiB).channels, 2);
    EXPECT_EQ(m.cost(AllReduce, 1).channels, 1);
    EXPECT_EQ(m.cost(AllReduce, kGiB).channels, 24);
    EXPECT_EQ(oneNode(h100(), 8).cost(AllReduce, kGiB).channels, 16);
    EXPECT_EQ(oneNode(b200(), 8).cost(AllReduce, kGiB).channels, 24);
    EXPECT_EQ(oneNode(b200(), 8).cost(AllGather, kGiB).channels, 32);
}

TEST(NcclCost, OneRankOrNoBytesCostNothing) {
    EXPECT_EQ(oneNode(a100(), 1).cost(AllReduce, kGiB).seconds, 0);
    EXPECT_EQ(oneNode(a100(), 8).cost(AllReduce, 0).seconds, 0);
    EXPECT_TRUE(oneNode(a100(), 1).candidates(AllReduce, kGiB).empty());
}

// Eight groups of one rank per node have a NIC each; on a single NIC they share it by eight.
TEST(NcclNics, GroupsThatShareThemDivideTheirBandwidth) {
    auto group = wholeNodes(4, 1);
    group.groupsSharingNics = 8;
    const auto own = model(clusterOf(a100(), 4, 8, 8, 200), group).cost(AllReduce, kGiB);
    const auto shared = model(clusterOf(a100(), 4, 8, 1, 200), group).cost(AllReduce, kGiB);
    EXPECT_EQ(own.algorithm, shared.algorithm);
    EXPECT_NEAR(shared.transferSeconds / own.transferSeconds, 8, 1e-9);
}

TEST(NcclCreate, NamesWhatIsMissing) {
    auto cluster = clusterOf(a100(), 2, 8, 0, 0);
    const auto noNics = NcclModel::create(cluster, wholeNodes(2, 8));
    ASSERT_FALSE(noNics.has_value());
    EXPECT_NE(noNics.error().message.find("no network"), std::string::npos) << noNics.error().message;

    cluster.nodes[0].kind.device.nvlinkNcclGbPerS.reset();
    const auto noNvlink = NcclModel::create(cluster, wholeNodes(1, 8));
    ASSERT_FALSE(noNvlink.has_value());
    EXPECT_NE(noNvlink.error().toString().find("nvlink"), std::string::npos) << noNvlink.error().toString();

    const auto tooMany = NcclModel::create(clusterOf(a100(), 1, 4), wholeNodes(1, 8));
    ASSERT_FALSE(tooMany.has_value());
    EXPECT_NE(tooMany.error().message.find("8 ranks on a node of 4"), std::string::npos) << tooMany.error().message;

    const auto cpu = NcclModel::create(clusterOf(a100(), 1, 8, 0, 0, CpuVendor::Amd, IntraNodeFabric::Loopback), wholeNodes(1, 8));
    ASSERT_FALSE(cpu.has_value());
    EXPECT_NE(cpu.error().message.find("gloo"), std::string::npos);
}

// Links of 64 GB/s per pair, 448 in all; 72 % of them: 46.1 with two devices, 322.6 with eight (measured 47.7 and 312.9).
TEST(NcclXgmi, FewerDevicesOfAFullMeshAreSlowerPerByte) {
    Device mi300x;
    mi300x.name = "mi300x";
    mi300x.arch = GpuArch::Cdna3;
    mi300x.nvlinkGbPerS = 448;
    const auto cluster = clusterOf(mi300x, 1, 8, 0, 0, CpuVendor::Amd, IntraNodeFabric::XgmiMesh);
    EXPECT_NEAR(busAt16GiB(model(cluster, wholeNodes(1, 2)), AllReduce, 2), 47.7, 47.7 * 0.05);
    EXPECT_NEAR(busAt16GiB(model(cluster, wholeNodes(1, 8)), AllReduce, 8), 312.9, 312.9 * 0.05);
}

// 8.4 + 3.4 + 2 · 512 KiB / 240 GB/s: the first chunk is not overlapped.
TEST(NcclPointToPoint, SendReceivePaysOneChunkOfPipelineFill) {
    EXPECT_NEAR(us(oneNode(a100(), 2), SendRecv, 512 * kKiB), 11.8 + 2 * 2.1845, 0.01);
    // 1 GiB: 11.8 + (1 GiB + 512 KiB) / 240 GB/s = 11.8 + 4476.1.
    EXPECT_NEAR(us(oneNode(a100(), 2), SendRecv, kGiB), 4487.9, 1);
}

// Across 4 nodes of 8 with 8 NICs of 25 GB/s (24 behind PCIe): 24/32 of the buffer leaves at 24 GB/s.
TEST(NcclPointToPoint, TheRootOfAGatherCarriesWhatEachRankOfAnAllToAllDoes) {
    // (n − 1)/n of the buffer goes through the root's port, in or out.
    for (const auto op : {Gather, Scatter})
        for (const Bytes bytes : {kMiB, kGiB}) EXPECT_DOUBLE_EQ(us(oneNode(a100(), 8), op, bytes), us(oneNode(a100(), 8), AllToAll, bytes));
}

TEST(NcclPointToPoint, AllToAllAcrossNodesIsBoundByTheNics) {
    const auto cost = model(clusterOf(a100(), 4, 8, 8, 200), wholeNodes(4, 8)).cost(AllToAll, kGiB);
    EXPECT_NEAR(cost.transferSeconds, 1.0737 * 0.75 / 24, 0.0002);
}

TEST(NcclProperties, CandidatesAreInOrderAndCostIsTheirFirst) {
    ASSERT_TRUE(rc::check("cost is the first candidate", [] {
        const auto n = *rc::gen::inRange<std::int64_t>(2, 9);
        const auto nodes = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 16);
        const auto bytes = *rc::gen::inRange<Bytes>(1, 4 * kGiB);
        const auto device = *rc::gen::element(0, 1, 2);
        const auto made = NcclModel::create(clusterOf(device == 0 ? a100() : device == 1 ? h100() : b200(), nodes, 8), wholeNodes(nodes, n));
        RC_ASSERT(made.has_value());
        const auto op = static_cast<CollectiveOp>(*rc::gen::inRange<int>(0, static_cast<int>(kCollectiveOps)));
        const auto all = made->candidates(op, bytes);
        RC_ASSERT(!all.empty());
        RC_ASSERT(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; }));
        const auto cost = made->cost(op, bytes);
        RC_ASSERT(cost.seconds == all.front().seconds);
        RC_ASSERT(cost.seconds == cost.latencySeconds + cost.transferSeconds);
        RC_ASSERT(cost.channels >= 1 && cost.channels <= 64);
    }));
}

TEST(NcclProperties, AFasterNetworkOfTheSameGridNeverSlowsALargeAllReduce) {
    ASSERT_TRUE(rc::check("monotone in NIC rate", [] {
        const auto slow = *rc::gen::inRange(1, 400);
        const auto fast = slow + *rc::gen::inRange(0, 400);
        const auto nodes = *rc::gen::inRange<std::int64_t>(2, 64);
        NcclOptions ring;
        ring.algorithm = CollectiveAlgorithm::Ring;
        ring.protocol = CollectiveProtocol::Simple;
        const auto at = [&](int gbit) {
            return NcclModel::create(clusterOf(h100(), nodes, 8, 8, gbit), wholeNodes(nodes, 8), ring)->cost(AllReduce, kGiB).transferSeconds;
        };
        RC_ASSERT(at(fast) <= at(slow) * (1 + 1e-12));
    }));
}

}  // namespace
}  // namespace ringside
