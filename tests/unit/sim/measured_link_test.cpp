// What a profile that was measured over a slow link says of hosts that share it: docs/models/cpu-interference.md, docs/models/parameter-server.md.
#include <gtest/gtest.h>

#include "model/cost/measured_collectives.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

/// Of `seconds` per 10 MB, with no fixed part; half of the time is a core's.
CollectiveCurve curve(CollectiveOp op, const std::string& link, double seconds) {
    CollectiveCurve c;
    c.op = op;
    c.ranks = 4;
    c.link = link;
    c.points = {{1'000'000, seconds / 10, 0.01}, {10'000'000, seconds, 0.01}};
    c.cpuSecondsPerByte = seconds / 20e6;
    c.slowdownByCompute = 1;
    return c;
}

/// Four hosts behind links of 200 Mbit/s, of which 192 are data: 0.4167 s per 10 MB.
Scenario hosts(const std::string& strategy, std::vector<CollectiveCurve> curves) {
    const Json document = {{"model", {{"model_type", "mlp"}, {"widths", {512, 512, 512, 8}}}},
                           {"cluster",
                            {{"format", "ringside-cluster"}, {"version", 1}, {"name", "hosts"},
                             {"nodes", Json::array({{{"count", 4}, {"kind", {{"name", "host"}, {"device", "cpu"}, {"devices", 1}, {"fabric", "loopback"}, {"nics", {{"count", 1}, {"gbit_per_s", 0.2}, {"latency_us", 0}, {"gpu_direct", false}}}}}}})},
                             {"network", {{"name", "bridge"}, {"rail_optimised", false}, {"nodes_per_leaf", 1024}}}}},
                           {"strategy", strategy}, {"training", {{"micro_batch", 4}, {"precision", "fp32"}}}};
    Scenario scenario = scenarioOfJson(document);
    Profile profile = scenario.profiles.front();
    profile.gemmEfficiency = {{DType::Fp32, {1, 0, Provenance::Measured, "test"}}};
    profile.deviceFigures = {{"memory_bandwidth_gb_per_s", 10}, {"peak_dense_tflops.fp32", 0.1}, {"memory_bytes", 1e10}, {"pcie_gb_per_s", 10}, {"loopback_gb_per_s", 2}};
    profile.collectives = std::move(curves);
    Device& device = scenario.cluster.nodes.front().kind.device;
    device = withMeasuredFigures(device, profile).value();
    scenario.profiles.front() = profile;
    return scenario;
}

Prediction predicted(const Scenario& scenario) {
    auto prediction = predict(scenario);
    if (!prediction) throw std::runtime_error(prediction.error().toString());
    return *prediction;
}

TEST(MeasuredLink, AServersPortIsSlowerByWhatTrafficBothWaysWasMeasuredToLose) {
    const CollectiveCurve oneWay = curve(CollectiveOp::SendRecv, "200mbit", 0.4), bothWays = curve(CollectiveOp::SendRecv, bothWaysOf("200mbit"), 0.5);
    EXPECT_NEAR(predicted(hosts("ps-device0", {oneWay, bothWays})).prices.servers.remote.bothWaysSlowdown, 1.25, 1e-9);
    EXPECT_EQ(predicted(hosts("ps-device0", {oneWay})).prices.servers.remote.bothWaysSlowdown, 1);
    EXPECT_GT(predicted(hosts("ps-device0", {oneWay, bothWays})).stepSeconds, predicted(hosts("ps-device0", {oneWay})).stepSeconds);
}

TEST(MeasuredLink, PacedKernelsLeaveTheCoreToCollectivesWhichStillShareTheWire) {
    Scenario scenario = hosts("ps-sharded", {curve(CollectiveOp::AllToAll, "200mbit", 0.4), curve(CollectiveOp::AllGather, "200mbit", 0.4)});
    scenario.pricing.cpuInterference = false;
    const Prediction prediction = predicted(scenario);
    for (const CollectivePrice& price : prediction.prices.collectives) {
        EXPECT_NEAR(price.busyShare, 1, 1e-6);
        EXPECT_EQ(price.slowdownByCompute, 1);
        EXPECT_EQ(prediction.prices.nodes.front().slowdown[price.interference].front(), 1);
    }
}

TEST(MeasuredLink, ABroadcastComesWithTheHopsOfItsTree) {
    // 10 MB in 1.2 s over a tree of four, three transfers deep: 0.4 s each.
    const Prediction prediction = predicted(hosts("zero-redundancy-optimizer", {curve(CollectiveOp::Broadcast, "200mbit", 1.2)}));
    std::size_t broadcasts = 0;
    for (std::size_t w = 0; w < prediction.schedule->collectives.size(); ++w) {
        const CollectivePrice& price = prediction.prices.collectives[w];
        const bool isBroadcast = prediction.schedule->collectives[w].op == CollectiveOp::Broadcast;
        EXPECT_EQ(price.tree.has_value(), isBroadcast);
        if (!isBroadcast) continue;
        ++broadcasts;
        EXPECT_NEAR(price.tree->transfer, static_cast<double>(prediction.schedule->collectives[w].bytes()) * 0.04e-6, 1e-9);
    }
    EXPECT_GT(broadcasts, 0U);
}

}  // namespace
}  // namespace ringside::testing
