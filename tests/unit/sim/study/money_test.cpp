// Prices and rent: the catalogue's, a file's and a flag's.
#include "sim/study/money.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using ::testing::HasSubstr;

PriceCatalog builtinPrices() {
    Result<PriceCatalog> prices = PriceCatalog::builtin();
    if (!prices) throw std::runtime_error(prices.error().toString());
    return *prices;
}

Cluster clusterOf(const std::string& device, std::int64_t devices) {
    return testing::scenarioOf("{'model': 'gpt2', 'device': '" + device + "', 'devices': " + std::to_string(devices) + "}").cluster;
}

TEST(Prices, AreForDevicesOfTheCatalogueEachWithItsSourceAndDate) {
    const PriceCatalog prices = builtinPrices();
    EXPECT_GE(prices.prices().size(), 15U);
    for (const DevicePrice& price : prices.prices()) {
        const auto device = testing::catalogs().hardware.findDevice(price.device);
        ASSERT_TRUE(device) << price.device;
        EXPECT_EQ(device->name, price.device) << "prices go by the device's own name";
        EXPECT_GT(price.onDemandUsd, 0) << price.device;
        EXPECT_FALSE(price.source.empty()) << price.device;
        EXPECT_FALSE(price.date.empty()) << price.device;
        EXPECT_TRUE(price.provenance == "published" || price.provenance == "assumed") << price.device;
    }
}

TEST(Money, IsDevicesTimesPriceTimesHours) {
    PriceCatalog prices = builtinPrices();
    prices.set("h100-sxm", 2.5, "test");
    // 16 devices at 2.50 are 40 USD an hour; a step of 1.8 s is 1.8/3600 h: 0.02 USD.
    const Result<double> perHour = clusterUsdPerHour(clusterOf("h100-sxm", 16), prices, Commitment::OnDemand);
    ASSERT_TRUE(perHour);
    EXPECT_DOUBLE_EQ(*perHour, 40);
    EXPECT_DOUBLE_EQ(usdFor(*perHour, 1.8), 0.02);
}

TEST(Money, OfAMixedClusterIsTheSumOfItsKinds) {
    PriceCatalog prices = builtinPrices();
    prices.set("a100-80gb-sxm", 2, "test");
    prices.set("h100-sxm", 3, "test");
    const Cluster cluster = testing::scenarioOf("{'model': 'gpt2', 'cluster': 'mixed-a100-h100'}").cluster;
    double expected = 0;
    for (const NodeGroup& group : cluster.nodes) expected += static_cast<double>(group.count * group.kind.devices) * (group.kind.device.name == "h100-sxm" ? 3 : 2);
    EXPECT_GT(cluster.nodes.size(), 1U);
    EXPECT_DOUBLE_EQ(*clusterUsdPerHour(cluster, prices, Commitment::OnDemand), expected);
}

TEST(Money, ReservedIsTheUsualShareOfOnDemandUnlessAPriceSaysMore) {
    PriceCatalog prices = builtinPrices();
    const Json file = testing::jsonOf("{'prices': [{'device': 'h100-sxm', 'on_demand_usd_per_hour': 4}, {'device': 'h200', 'on_demand_usd_per_hour': 5, 'reserved_usd_per_hour': 3.5}]}");
    ASSERT_TRUE(prices.overlay(JsonCursor(file, "mine.json")));
    // 62.5 % of 4 is 2.5.
    EXPECT_DOUBLE_EQ(prices.usdPerHour(*prices.find("h100-sxm"), Commitment::Reserved), 2.5);
    EXPECT_DOUBLE_EQ(prices.usdPerHour(*prices.find("h200"), Commitment::Reserved), 3.5);
    EXPECT_DOUBLE_EQ(prices.usdPerHour(*prices.find("h200"), Commitment::OnDemand), 5);
    EXPECT_EQ(prices.find("h200")->provenance, "given");
}

TEST(Prices, MayBeAPlainListOfNumbers) {
    PriceCatalog prices = builtinPrices();
    const Json file = testing::jsonOf("{'h100-sxm': 2.25, 'my-own-device': 0.5}");
    ASSERT_TRUE(prices.overlay(JsonCursor(file, "mine.json")));
    EXPECT_DOUBLE_EQ(prices.find("h100-sxm")->onDemandUsd, 2.25);
    EXPECT_DOUBLE_EQ(prices.find("my-own-device")->onDemandUsd, 0.5);
}

TEST(Prices, RefuseWhatTheyCannotRead) {
    PriceCatalog prices = builtinPrices();
    const auto refusal = [&](const std::string& text) {
        const Json json = testing::jsonOf(text);
        const Result<void> result = prices.overlay(JsonCursor(json, "mine.json"));
        return result ? std::string("accepted") : result.error().toString();
    };
    EXPECT_THAT(refusal("{'h100-sxm': -1}"), HasSubstr("mine.json: h100-sxm"));
    EXPECT_THAT(refusal("{'h100-sxm': 'cheap'}"), HasSubstr("mine.json: h100-sxm"));
    EXPECT_THAT(refusal("[1]"), HasSubstr("expected an object"));
    EXPECT_THAT(refusal("{'format': 'ringside-result', 'prices': []}"), HasSubstr("ringside-prices"));
    EXPECT_THAT(refusal("{'prices': [], 'currency': 'EUR'}"), HasSubstr("convert"));
    EXPECT_THAT(refusal("{'prices': [{'device': 'h100-sxm', 'usd': 3}]}"), HasSubstr("usd"));
}

TEST(Money, ADeviceWithoutAPriceNamesTheFlagThatGivesOne) {
    const Result<double> usd = clusterUsdPerHour(clusterOf("mi250x", 8), builtinPrices(), Commitment::OnDemand);
    ASSERT_FALSE(usd);
    EXPECT_EQ(usd.error().code, ErrorCode::BadInput);
    EXPECT_THAT(usd.error().toString(), HasSubstr("--price mi250x=USD"));
}

}  // namespace
}  // namespace ringside
