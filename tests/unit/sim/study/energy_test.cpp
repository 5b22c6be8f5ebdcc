// Power between idle and TDP, the node around the devices, the facility around the node.
#include "sim/study/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scenarios.h"

namespace ringside {
namespace {

TEST(Energy, ActivityIsTheBreakdownsShares) {
    Breakdown b;
    b.step = Time::fromSeconds(10);
    b.compute = Time::fromSeconds(6);
    b.optimizer = Time::fromSeconds(1);
    b.communicationExposed = Time::fromSeconds(2);
    b.communicationHidden = Time::fromSeconds(3);  // beside compute: already counted there
    const Activity activity = activityOf(b);
    EXPECT_DOUBLE_EQ(activity.compute, 0.7);
    EXPECT_DOUBLE_EQ(activity.communication, 0.2);
}

TEST(Energy, ADeviceDrawsIdlePowerPlusItsShareOfTheRest) {
    const EnergyModel model;
    // TDP 700 W, idle 70 W. Computing 80 %, communicating 10 % at 40 %: 70 + 630 · (0.8 + 0.04) = 599.2 W.
    EXPECT_DOUBLE_EQ(devicePowerW(700, {0.8, 0.1}, model), 599.2);
    EXPECT_DOUBLE_EQ(devicePowerW(700, {0, 0}, model), 70);
    EXPECT_DOUBLE_EQ(devicePowerW(700, {1, 0}, model), 700);
}

TEST(Energy, AFullyBusyNodeOfEightH100DrawsWhatWasMeasured) {
    // Latif et al. 2025 measured at most about 8.4 kW: 8 · (700 + 0.5 · 700) W.
    EnergyModel model;
    model.pue = 1;
    const Cluster node = testing::scenarioOf("{'model': 'gpt2', 'device': 'h100-sxm', 'devices': 8}").cluster;
    EXPECT_NEAR(*clusterPowerW(node, {1, 0}, model), 8400, 1e-9);
    // A facility with PUE 1.2 draws a fifth more.
    model.pue = 1.2;
    EXPECT_NEAR(*clusterPowerW(node, {1, 0}, model), 10080, 1e-9);
}

TEST(Energy, IsPowerTimesTime) {
    // 10,080 W for half an hour: 5.04 kWh.
    EXPECT_DOUBLE_EQ(kilowattHours(10080, 1800), 5.04);
}

TEST(Energy, OfADeviceWhosePowerIsNotKnownIsAnErrorThatSaysHowToGiveIt) {
    const Cluster cluster = testing::scenarioOf("{'model': 'mlp', 'device': 'cpu', 'devices': 2, 'training': {'precision': 'fp32'}}").cluster;
    const Result<double> power = clusterPowerW(cluster, {1, 0}, {});
    ASSERT_FALSE(power);
    EXPECT_THAT(power.error().toString(), ::testing::HasSubstr("tdp_w"));
}

}  // namespace
}  // namespace ringside
