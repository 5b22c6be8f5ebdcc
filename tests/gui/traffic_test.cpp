// What collectives put on the links of a cluster, and where its parts stand in a drawing.
#include "gui/topology/traffic.h"

#include <numeric>

#include <gtest/gtest.h>

#include "gui/topology/topology_layout.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

const Catalogs& catalogs() {
    static const Catalogs built = Catalogs::builtin().value();
    return built;
}

Scenario scenarioOf(const char* text) { return resolveScenario(Json::parse(text), "test", catalogs()).value(); }

Topology nodes(std::int64_t devices, const char* kind = "dgx-a100-80gb") {
    return buildTopology(catalogs().hardware.makeCluster({.device = {}, .devices = devices, .devicesPerNode = 0, .nodeKind = kind, .network = {}}).value()).value();
}

GroupTraffic ringOf(std::int64_t ranks, double bytes) {
    GroupTraffic group{TrafficPattern::Ring, {}, bytes};
    for (std::int64_t r = 0; r < ranks; ++r) group.ranks.push_back(r);
    return group;
}

TEST(Traffic, ARingPutsEachRanksBytesOnItsOwnLinks) {
    const Topology topology = nodes(8);
    const std::vector<GroupTraffic> traffic = {ringOf(8, 1e9)};
    const std::vector<double> bytes = bytesOnLinks(topology, traffic);
    // Each device sends 1 GB up to the NVSwitch and receives 1 GB from it; nothing else carries anything.
    for (LinkId id = 0; id < topology.linkCount(); ++id) EXPECT_DOUBLE_EQ(bytes[id], topology.link(id).kind == LinkKind::NvLink ? 1e9 : 0) << id;
}

TEST(Traffic, BetweenNodesAllNicsShareTheRingEvenly) {
    const Topology topology = nodes(16);
    const std::vector<GroupTraffic> traffic = {ringOf(16, 8e9)};
    const std::vector<double> bytes = bytesOnLinks(topology, traffic);
    // Eight rings of 1 GB each, one per NIC: every NIC sends 1 GB and receives 1 GB.
    int nics = 0;
    for (LinkId id = 0; id < topology.linkCount(); ++id)
        if (topology.link(id).kind == LinkKind::Network) {
            ++nics;
            EXPECT_DOUBLE_EQ(bytes[id], 1e9) << id;
        }
    EXPECT_EQ(nics, 2 * 16);
}

TEST(Traffic, EveryRingPassesEveryRankOnce) {
    const Topology topology = nodes(32);
    std::vector<std::int64_t> ranks(32);
    std::iota(ranks.begin(), ranks.end(), 0);
    for (std::vector<std::int64_t> order : ringOrders(topology.cluster(), ranks)) {
        std::sort(order.begin(), order.end());
        EXPECT_EQ(order, ranks);
    }
}

TEST(Traffic, OfAPredictedStepIsWhatItsCollectivesSend) {
    const Scenario scenario = scenarioOf(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "strategy": "ddp"})");
    const Prediction prediction = predict(scenario).value();
    const Traffic traffic = trafficOf(prediction, Time(), prediction.timeline.stepTime + Time::fromMicroseconds(1));
    // DDP all-reduces the parameters once: each of 8 ranks sends 2·7/8 of them.
    double sent = 0;
    for (const GroupTraffic& group : traffic.groups) {
        EXPECT_EQ(group.ranks.size(), 8U);
        sent += group.bytesPerRank;
    }
    EXPECT_NEAR(sent, static_cast<double>(prediction.bytesSentPerRank), 0.01 * sent);
    EXPECT_NEAR(sent, 1.75 * 4 * static_cast<double>(prediction.parameters), 0.02 * sent);
}

TEST(Traffic, HalvesOfAStepSumToTheWhole) {
    const Scenario scenario = scenarioOf(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "strategy": "fsdp2"})");
    const Prediction prediction = predict(scenario).value();
    const auto sum = [&](Time begin, Time end) {
        double bytes = 0;
        for (const GroupTraffic& group : trafficOf(prediction, begin, end).groups) bytes += group.bytesPerRank;
        return bytes;
    };
    const Time end = prediction.timeline.stepTime + Time::fromMicroseconds(1), middle = Time::fromPicoseconds(end.picoseconds() / 2);
    EXPECT_GT(sum(Time(), middle), 0);
    EXPECT_NEAR(sum(Time(), middle) + sum(middle, end), sum(Time(), end), 1e-6 * sum(Time(), end));
}

TEST(Traffic, EveryGroupOfAMeshIsThereAlsoOfRanksThatAreNotDrawn) {
    const Scenario scenario = scenarioOf(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "strategy": {"name": "ddp", "tp": 2}})");
    const Prediction prediction = predict(scenario).value();
    std::set<std::vector<std::int64_t>> groups;
    for (const GroupTraffic& group : trafficOf(prediction, Time(), prediction.timeline.stepTime + Time::fromMicroseconds(1)).groups) groups.insert(group.ranks);
    // Four tensor-parallel pairs, and two data-parallel groups of four.
    EXPECT_TRUE(groups.contains({0, 1}));
    EXPECT_TRUE(groups.contains({6, 7}));
    EXPECT_TRUE(groups.contains({0, 2, 4, 6}));
    EXPECT_TRUE(groups.contains({1, 3, 5, 7}));
    EXPECT_EQ(groups.size(), 6U);
}

TEST(Traffic, OfATraceCountsACollectiveOnceAndSaysWhatHasNoPlace) {
    TraceBuilder builder;
    builder.setWorldSize(2);
    const std::uint32_t name = builder.internName("ncclKernel");
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        const std::uint32_t track = builder.addTrack(rank, 1, TrackKind::Communication, "comm");
        CollectiveDetails details;
        details.op = "allreduce";
        details.bytes = 1000;
        details.groupSize = 2;
        builder.addSlice(track, Time(), Time::fromMicroseconds(10), SliceCategory::Communication, name, -1, builder.addCollective(details));
        builder.addSlice(track, Time::fromMicroseconds(20), Time::fromMicroseconds(10), SliceCategory::Communication, name);
    }
    const Trace trace = builder.build();
    const Traffic traffic = trafficOf(trace, Time(), Time::fromMicroseconds(100));
    ASSERT_EQ(traffic.groups.size(), 1U);
    EXPECT_DOUBLE_EQ(traffic.groups[0].bytesPerRank, 1000);  // 2·(2−1)/2 of 1,000
    EXPECT_EQ(traffic.unplaced, 2U);
    // Half of it lies in the first 5 µs.
    EXPECT_DOUBLE_EQ(trafficOf(trace, Time(), Time::fromMicroseconds(5)).groups[0].bytesPerRank, 500);
}

TEST(LinkLoad, IsTheShareOfWhatTheLinkCouldCarry) {
    TopologyLink link;
    link.bytesPerS = 100e9;
    EXPECT_DOUBLE_EQ(loadOf(50e6, link, Time::fromMicroseconds(1000)), 0.5);  // 100 MB possible in a millisecond
    EXPECT_EQ(loadOf(1, link, Time()), 0);
}

TEST(TopologyLayout, NothingOverlapsAndEverythingIsInsideItsNode) {
    for (const auto& [devices, kind] : {std::pair{8, "dgx-a100-80gb"}, std::pair{32, "dgx-a100-80gb"}, std::pair{8, "dgx-1v"}}) {
        const TopologyLayout layout = layOut(nodes(devices, kind));
        for (std::size_t a = 0; a < layout.parts.size(); ++a) {
            const Box& box = layout.parts[a].box;
            EXPECT_GT(box.width, 0) << layout.parts[a].label;
            for (std::size_t b = a + 1; b < layout.parts.size(); ++b) {
                const Box& other = layout.parts[b].box;
                const bool apart = box.right() <= other.x || other.right() <= box.x || box.bottom() <= other.y || other.bottom() <= box.y;
                EXPECT_TRUE(apart) << kind << ": " << layout.parts[a].label << " and " << layout.parts[b].label;
            }
            if (layout.parts[a].node < 0) continue;
            const Box& frame = layout.nodes[static_cast<std::size_t>(layout.parts[a].node)].box;
            EXPECT_GE(box.x, frame.x);
            EXPECT_LE(box.right(), frame.right());
            EXPECT_LE(box.bottom(), frame.bottom());
        }
    }
}

TEST(TopologyLayout, ACableIsBothDirectionsAndIsFoundUnderThePointer) {
    const Topology topology = nodes(16);
    const TopologyLayout layout = layOut(topology);
    EXPECT_EQ(layout.cables.size() * 2, topology.linkCount());
    const auto [x1, y1, x2, y2] = lineOf(layout, layout.cables.front());
    EXPECT_EQ(cableAt(layout, (x1 + x2) / 2, (y1 + y2) / 2, 3), 0);
    EXPECT_EQ(partAt(layout, layout.parts[3].box.middleX(), layout.parts[3].box.middleY()), 3);
    EXPECT_NE(describe(layout, topology, layout.cables.front()).find("GB/s"), std::string::npos);
}

TEST(TopologyLayout, DrawsTheFirstNodesOfManyAndSaysHowManyAreLeft) {
    const TopologyLayout layout = layOut(nodes(256), 8);
    EXPECT_EQ(layout.nodes.size(), 8U);
    EXPECT_EQ(layout.nodesLeftOut, 24);
}

}  // namespace
}  // namespace ringside::gui
