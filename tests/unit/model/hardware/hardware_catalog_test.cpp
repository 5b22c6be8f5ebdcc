#include "model/catalog/hardware_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringside {
namespace {

using ::testing::HasSubstr;

const HardwareCatalog& catalog() {
    static const Result<HardwareCatalog> built = HardwareCatalog::builtin();
    if (!built) throw std::runtime_error(built.error().toString());
    return *built;
}

TEST(HardwareCatalog, HoldsEveryDeviceThatIsPromised) {
    for (const char* name : {"v100-sxm",       "v100-sxm-16gb",
                             "v100-pcie",      "a100-40gb-sxm",
                             "a100-80gb-sxm",  "a100-40gb-pcie",
                             "a100-80gb-pcie", "h100-sxm",
                             "h100-pcie",      "h100-nvl",
                             "h200",           "b200",
                             "gb200",          "a10",
                             "a10g",           "l4",
                             "l40s",           "rtx-3090",
                             "rtx-4090",       "mi250x",
                             "mi300x",         "cpu"})
        EXPECT_TRUE(catalog().findDevice(name)) << name;
    for (const char* name : {"pcie-box", "dgx-1v", "dgx-a100", "dgx-a100-80gb", "hgx-h100", "dgx-h100", "hgx-h200", "hgx-b200", "gb200-nvl72", "g5",
                             "g6", "mi300x-node"})
        EXPECT_TRUE(catalog().findNodeKind(name)) << name;
    for (const char* name :
         {"ib-hdr", "ib-ndr", "ib-edr", "roce-1600", "efa-400", "efa-3200", "ethernet-10g", "ethernet-25g", "ethernet-100g", "none"})
        EXPECT_TRUE(catalog().findNetwork(name)) << name;
}

TEST(HardwareCatalog, FindsAliasesInAnyCase) {
    EXPECT_EQ(catalog().findDevice("a100")->name, "a100-80gb-sxm");
    EXPECT_EQ(catalog().findDevice("H100")->name, "h100-sxm");
    EXPECT_EQ(catalog().findNodeKind("DGX-H100")->kind.name, "hgx-h100");
}

TEST(HardwareCatalog, UnknownNamesSuggestTheNearest) {
    EXPECT_THAT(catalog().findDevice("h100-sxn").error().message, HasSubstr("did you mean 'h100-sxm'"));
    EXPECT_THAT(catalog().findDevice("h100-sxn").error().message, HasSubstr("ringside catalog devices"));
    EXPECT_THAT(catalog().findNodeKind("dgx-a10").error().message, HasSubstr("did you mean 'dgx-a100'"));
    EXPECT_THAT(catalog().findNetwork("ib-hdrr").error().message, HasSubstr("did you mean 'ib-hdr'"));
    EXPECT_THAT(catalog().findCluster("g5-5").error().message, HasSubstr("did you mean 'g5-4'"));
}

TEST(HardwareCatalog, EveryDeviceSurvivesARoundTrip) {
    for (const Device& device : catalog().devices()) {
        const auto json = parseJson(toJson(device).dump(), device.name);
        ASSERT_TRUE(json);
        EXPECT_EQ(deviceFromJson(JsonCursor(*json, device.name)).value(), device) << device.name;
    }
}

TEST(HardwareCatalog, EveryDeviceButTheHostHasSources) {
    for (const Device& device : catalog().devices()) {
        EXPECT_EQ(device.sources.empty(), device.name == "cpu") << device.name;
    }
    for (const CatalogNodeKind& kind : catalog().nodeKinds()) EXPECT_FALSE(kind.source.empty()) << kind.kind.name;
    for (const NamedNetwork& network : catalog().networks()) EXPECT_FALSE(network.source.empty()) << network.spec.name;
}

TEST(HardwareCatalog, NodeKindsCarryTheNicsOfTheirUsualNetwork) {
    for (const CatalogNodeKind& kind : catalog().nodeKinds()) EXPECT_EQ(kind.kind.nics, catalog().findNetwork(kind.network)->nics) << kind.kind.name;
}

TEST(HardwareCatalog, NvlinkRatesAreLinksTimesNcclsRatePerLink) {
    // NCCL 2.30 topo.h, GB/s per link: V100 20, A100 20, H100 20.6, B200 40.1
    const std::map<std::string, double> perLink = {{"v100-sxm", 20}, {"a100-80gb-sxm", 20}, {"h100-sxm", 20.6},
                                                   {"h200", 20.6},   {"b200", 40.1},        {"gb200", 40.1}};
    for (const auto& [name, rate] : perLink) {
        const Device device = *catalog().findDevice(name);
        EXPECT_NEAR(*device.nvlinkNcclGbPerS, static_cast<double>(*device.nvlinks) * rate, 1e-9) << name;
    }
}

TEST(HardwareCatalog, WhatNobodyPublishedStaysUnknown) {
    EXPECT_FALSE(peakFlops(*catalog().findDevice("a10g"), DType::Bf16));
    EXPECT_FALSE(peakFlops(*catalog().findDevice("v100-sxm"), DType::Bf16));
    EXPECT_FALSE(multiprocessors(*catalog().findDevice("l4")));
    EXPECT_FALSE(memoryCapacity(*catalog().findDevice("cpu")));
}

TEST(MakeClusterByName, SixteenA100sAreTwoDgxNodesOnHdr) {
    const auto cluster = catalog().makeCluster({.device = "a100-80gb-sxm", .devices = 16});
    ASSERT_TRUE(cluster) << cluster.error().toString();
    EXPECT_EQ(cluster->nodeCount(), 2);
    EXPECT_EQ(cluster->nodes[0].kind.name, "dgx-a100-80gb");
    EXPECT_EQ(cluster->nodes[0].kind.nics, (Nics{.count = 8, .gbitPerS = 200}));
    EXPECT_EQ(cluster->network.name, "ib-hdr");
}

TEST(MakeClusterByName, EveryDeviceWithAUsualNodeMakesACluster) {
    for (const Device& device : catalog().devices()) {
        const auto cluster = catalog().makeCluster({.device = device.name, .devices = 4});
        if (device.defaultNodeKind.empty()) {
            EXPECT_THAT(cluster.error().message, HasSubstr("has no usual node kind"));
        } else {
            ASSERT_TRUE(cluster) << cluster.error().toString();
            EXPECT_EQ(cluster->nodes[0].kind.device, device);
        }
    }
}

TEST(MakeClusterByName, ANamedNetworkReplacesTheNics) {
    const auto cluster = catalog().makeCluster({.device = "h100", .devices = 16, .network = "ethernet-25g"});
    ASSERT_TRUE(cluster);
    EXPECT_EQ(cluster->nodes[0].kind.nics.count, 1);
    EXPECT_EQ(cluster->nodes[0].kind.nics.gbitPerS, 25);
    EXPECT_EQ(cluster->network.name, "ethernet-25g");
}

TEST(MakeClusterByName, AnyDeviceGoesIntoAPcieBoxButNotIntoABoard) {
    EXPECT_EQ(catalog().makeCluster({.device = "l40s", .devices = 4, .nodeKind = "pcie-switch-box"})->nodes[0].kind.device.name, "l40s");
    const auto wrong = catalog().makeCluster({.device = "l40s", .devices = 4, .nodeKind = "dgx-a100"});
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message, HasSubstr("a dgx-a100 node holds a100-40gb-sxm, not l40s"));
}

TEST(MakeClusterByName, ErrorsNameTheFlag) {
    EXPECT_EQ(catalog().makeCluster({}).error().place, "--device");
    EXPECT_EQ(catalog().makeCluster({.device = "nope"}).error().place, "--device");
    EXPECT_EQ(catalog().makeCluster({.device = "a100", .nodeKind = "nope"}).error().place, "--node");
    EXPECT_EQ(catalog().makeCluster({.device = "a100", .network = "nope"}).error().place, "--network");
}

TEST(ResolveCluster, TakesNamesAndRefusesFilesThatAreNotThere) {
    EXPECT_EQ(resolveCluster(catalog(), "dgx-a100-2")->deviceCount(), 16);
    EXPECT_FALSE(resolveCluster(catalog(), "no-such-file.json"));
}

std::string catalogError(std::string_view path, std::string_view text) {
    const auto built = HardwareCatalog::fromFiles({{path, text}});
    return built ? std::string("no error") : built.error().toString();
}

TEST(HardwareCatalog, RefusesFilesThatDoNotFitTogether) {
    EXPECT_THAT(catalogError("devices/x.json",
                             R"({"format": "ringside-devices", "version": 1, "devices": [{"name": "x"}, {"name": "y", "aliases": ["X"]}]})"),
                HasSubstr("the name 'X' is taken by x"));
    EXPECT_THAT(
        catalogError("devices/x.json", R"({"format": "ringside-devices", "version": 1, "devices": [{"name": "x", "default_node_kind": "box"}]})"),
        HasSubstr("unknown node kind 'box'"));
    EXPECT_THAT(catalogError("devices/x.json", R"({"format": "ringside-sweets", "version": 1})"),
                HasSubstr("not a format of the hardware catalogue"));
    EXPECT_EQ(catalogError("workloads/x.json", "not read at all"), "no error");
}

}  // namespace
}  // namespace ringside
