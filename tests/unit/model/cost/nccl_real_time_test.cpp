#include "model/cost/nccl_real_time.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "model/cost/nccl_cost.h"
#include "model/cost/published_collectives.h"
#include "nccl_test_clusters.h"

namespace ringside {
namespace {

using namespace ringside::testing;
using enum CollectiveOp;

/// Round figures, so that a reader can follow.
NcclAchieved roundFigures() {
    NcclAchieved a;
    a.callUs = 20;
    a.hopFactor = {2, 1.5, 1.25};
    a.linkEfficiency = 0.8;
    a.networkEfficiency = 0.5;
    a.idleStep = 0.4;
    a.rampUs = 3;
    a.nvlsStepUs = 5;
    a.nvlsEfficiency = 0.8;
    a.peerEfficiency = 0.5;
    a.smallPartShare = 0.25;
    a.unevenShare = 0.5;
    return a;
}

NcclModel model(const Device& device, const GroupShape& group, const std::optional<NcclAchieved>& achieved, std::optional<CollectiveAlgorithm> algorithm = {},
                std::optional<CollectiveProtocol> protocol = {}, IntraNodeFabric fabric = IntraNodeFabric::NvSwitch) {
    NcclOptions options;
    options.achieved = achieved;
    options.algorithm = algorithm;
    options.protocol = protocol;
    const std::int64_t perNode = fabric == IntraNodeFabric::NvLinkMesh ? 8 : std::max<std::int64_t>(group.ranksPerNode, 8);
    return NcclModel::create(clusterOf(device, group.nodes, perNode, 8, 200, CpuVendor::Amd, fabric), group, options).value();
}
double us(const NcclModel& m, CollectiveOp op, Bytes bytes) { return m.cost(op, bytes).seconds * 1e6; }
constexpr double mib(double n) { return n * 1048576; }

// Ring LL, 8 A100, 64 KiB: 20 + 2·14·0.6 = 36.8; the tuner's 65536 / (87.7·8/14 · 1000) = 1.308 over 0.8.
TEST(NcclRealTime, ReplacesTheTunersBaseByTheCallAndScalesItsHops) {
    const auto cost = model(a100(), wholeNodes(1, 8), roundFigures()).cost(AllReduce, 64 * kKiB);
    EXPECT_EQ(cost.protocol, CollectiveProtocol::LL);
    EXPECT_NEAR(cost.latencySeconds * 1e6, 36.8, 1e-6);
    EXPECT_NEAR(cost.transferSeconds * 1e6, 65536 / (1000 * 87.7 * 8 / 14) / 0.8, 1e-6);
}

// Ring Simple, 2 A100, 1 GiB: 20 + 1.25·2·3.4 = 28.5; 2³⁰ / 240,000 · (1 + 0.4/2) / 0.8; ramp 3·√1024 = 96.
TEST(NcclRealTime, FewRanksBehindASwitchLoseAnIdleStepAndLargeBuffersRampUp) {
    const double expected = 28.5 + mib(1024) / 240e3 * 1.2 / 0.8 + 96;
    EXPECT_NEAR(us(model(a100(), wholeNodes(1, 2), roundFigures()), AllReduce, kGiB), expected, 1e-3);
}

// 8 V100 as a cube mesh: 6 rings of 20 GB/s. No idle step, no ramp: 20 + 1.25·14·3.4 + 2³⁰·14/8 / 120,000 / 0.8.
TEST(NcclRealTime, MeshesHaveNeitherIdleStepNorRamp) {
    const auto m = model(v100(), wholeNodes(1, 8), roundFigures(), CollectiveAlgorithm::Ring, CollectiveProtocol::Simple, IntraNodeFabric::NvLinkMesh);
    EXPECT_NEAR(us(m, AllReduce, kGiB), 20 + 59.5 + mib(1024) * 14 / 8 / 120e3 / 0.8, 1e-3);
}

// NVLS, 8 H100, 1 GiB: 20 + 3·5; every device sends 9/8 of the buffer at 0.8 of 370.8 GB/s; ramp 3·3·√1024.
TEST(NcclRealTime, InSwitchReductionSendsTheBufferAndItsShareOfTheSum) {
    const auto m = model(h100(), wholeNodes(1, 8), roundFigures());
    EXPECT_EQ(m.cost(AllReduce, kGiB).algorithm, CollectiveAlgorithm::Nvls);
    EXPECT_NEAR(us(m, AllReduce, kGiB), 35 + mib(1024) * 1.125 / (1000 * 370.8 * 0.8) + 288, 1e-3);
}

// Across nodes only the network's efficiency counts: half the bandwidth is twice the tuner's transfer.
TEST(NcclRealTime, AcrossNodesTheNetworkSetsTheRate) {
    const auto tuner = model(a100(), wholeNodes(4, 8), std::nullopt).cost(AllReduce, kGiB);
    const auto real = model(a100(), wholeNodes(4, 8), roundFigures()).cost(AllReduce, kGiB);
    EXPECT_EQ(real.algorithm, tuner.algorithm);
    EXPECT_NEAR(real.transferSeconds, 2 * tuner.transferSeconds, 1e-9 * tuner.transferSeconds);
    EXPECT_NEAR(real.latencySeconds * 1e6, 20 + 1.25 * (tuner.latencySeconds * 1e6 - 8.4), 1e-6);
}

// 8 A100, 240·0.8·0.5 = 96 GB/s, 7/8 of the buffer leaves: below 8 MiB a quarter of that; above, 1 + 0.4/7 and the ramp.
TEST(NcclRealTime, AnAllToAllOfSmallPartsUsesFewChannels) {
    const auto m = model(a100(), wholeNodes(1, 8), roundFigures());
    const double call = 20 + 1.25 * 3.4;
    EXPECT_NEAR(us(m, AllToAll, 4 * kMiB), call + mib(4) * 7 / 8 / 96e3 * 4, 1e-3);
    EXPECT_NEAR(us(m, AllToAll, 64 * kMiB), call + mib(64) * 7 / 8 / 96e3 * (1 + 0.4 / 7) + 3 * 8, 1e-3);
}

// 6 ranks: half the channels idle for the first 32 MiB per peer, so that 192 MiB cost once more what they take.
TEST(NcclRealTime, AnAllToAllOfUnevenRanksLosesABoundedTime) {
    const auto m = model(a100(), wholeNodes(1, 6), roundFigures());
    const double perMib = mib(1) * 5 / 6 / 96e3;
    const double even = 20 + 1.25 * 3.4 + 1024 * perMib * (1 + 0.4 / 5) + 3 * 32;
    EXPECT_NEAR(us(m, AllToAll, kGiB), even + 192 * perMib, 1e-3);
}

TEST(NcclRealTime, WithTheTunersOwnFiguresOnlyTheCallDiffers) {
    const NcclAchieved neutral;  // no call, factors of one
    for (const Bytes bytes : {64 * kKiB, 25 * kMiB, 1 * kGiB}) {
        const auto tuner = model(a100(), wholeNodes(1, 8), std::nullopt).cost(AllReduce, bytes);
        const auto real = model(a100(), wholeNodes(1, 8), neutral).cost(AllReduce, bytes);
        EXPECT_NEAR(real.transferSeconds, tuner.transferSeconds, 1e-12);
        EXPECT_LT(real.latencySeconds, tuner.latencySeconds);
    }
}

TEST(NcclRealTime, NeverChangesWhatNcclChooses) {
    rc::check("same pair with and without", [] {
        const auto device = *rc::gen::element(v100(), a100(), h100(), b200());
        const auto nodes = *rc::gen::element<std::int64_t>(1, 2, 4);
        const auto ranks = *rc::gen::inRange<std::int64_t>(1, 9);
        RC_PRE(nodes * ranks > 1);
        const auto op = *rc::gen::element(AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast);
        const auto bytes = static_cast<Bytes>(std::exp2(*rc::gen::inRange(10, 33)));
        const auto tuner = model(device, wholeNodes(nodes, ranks), std::nullopt).cost(op, bytes);
        const auto real = model(device, wholeNodes(nodes, ranks), ncclAchieved(datasheetProfile(device))).cost(op, bytes);
        RC_ASSERT(real.algorithm == tuner.algorithm && real.protocol == tuner.protocol && real.channels == tuner.channels);
        RC_ASSERT(std::isfinite(real.seconds) && real.seconds > 0);
    });
}

TEST(CollectiveFigures, OfEveryCatalogueConstantIsFiniteAndHasASpread) {
    for (const CollectiveConstantInfo& constant : collectiveConstants()) {
        EXPECT_GT(constant.value, 0) << constant.key;
        EXPECT_GT(constant.relativeSpread, 0) << constant.key;
        EXPECT_GT(constant.neutral, 0) << constant.key;
    }
}

TEST(CollectiveFigures, AreThoseOfTheDevicesGeneration) {
    Device device = a100();
    device.interconnect = "nvlink";
    const auto constant = [](CollectiveConstant c) { return collectiveConstants()[static_cast<std::size_t>(c)].value; };
    EXPECT_EQ(ncclAchieved(datasheetProfile(device)).linkEfficiency, constant(CollectiveConstant::LinkAmpere));
    device.interconnect = "pcie";
    EXPECT_EQ(ncclAchieved(datasheetProfile(device)).linkEfficiency, 1);
    device.arch = GpuArch::Cdna3;
    EXPECT_EQ(ncclAchieved(datasheetProfile(device)).callUs, constant(CollectiveConstant::RcclCallUs));
}

}  // namespace
}  // namespace ringside
