#include "calibrate/published/collective_rows.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

Json record(const std::string& gpu, std::int64_t ranks) {
    Json r;
    r["gpu"] = gpu;
    r["fabric"] = "NVLink";
    r["op"] = "all_reduce";
    r["n_ranks"] = ranks;
    return r;
}

TEST(CollectiveCase, TakesSomeDevicesOfAWholeNode) {
    const auto one = collectiveCase(record("V100", 3));
    ASSERT_TRUE(one.has_value()) << one.error().message;
    EXPECT_EQ(one->device, "v100-sxm");
    EXPECT_EQ(one->cluster.deviceCount(), 8) << "a cube mesh of three devices is not a node of three";
    EXPECT_EQ(one->shape.ranks, 3);
}

TEST(CollectiveCase, PutsARackOfNvl72InOneNode) {
    Json r = record("GB200", 16);
    r["fabric"] = "NVL72: device lists of 64 or 72 GPUs in one NVLink5 domain";
    r["concurrent_groups"] = 4;
    const auto one = collectiveCase(r);
    ASSERT_TRUE(one.has_value()) << one.error().message;
    EXPECT_EQ(one->shape.nodes, 1);
    EXPECT_EQ(one->shape.ranks, 16);
}

TEST(CollectiveCase, TakesNodesAndNicsFromTheRecord) {
    Json r = record("A100-SXM4-40GB", 32);
    r["fabric"] = "NVLink3/NVSwitch intra-node; 8x200Gb/s HDR InfiniBand per node";
    r["nodes"] = 4;
    r["gpus_per_node"] = 8;
    const auto one = collectiveCase(r);
    ASSERT_TRUE(one.has_value()) << one.error().message;
    EXPECT_EQ(one->shape.nodes, 4);
    EXPECT_EQ(one->cluster.nodes[0].kind.nics.count, 8);
    EXPECT_EQ(one->cluster.nodes[0].kind.nics.gbitPerS, 200);
}

TEST(CollectiveCase, ForcesOnlyTheAlgorithmThatWasAskedFor) {
    Json r = record("H200", 8);
    const auto algorithmWith = [&](const char* notes) {
        r["notes"] = notes;
        return collectiveCase(r)->options.nccl.algorithm;
    };
    EXPECT_EQ(algorithmWith("single payload; algo NVLS off (Ring)"), CollectiveAlgorithm::Ring);
    EXPECT_EQ(algorithmWith("single payload 16 GiB, algo NVLS; time derived"), CollectiveAlgorithm::Nvls);
    EXPECT_EQ(algorithmWith("single payload; algo default(NVLS)"), std::nullopt);
    EXPECT_EQ(algorithmWith("time_us derived from algbw"), std::nullopt);
}

TEST(CollectiveCase, SaysWhyARecordCannotBePredicted) {
    EXPECT_EQ(collectiveCase(record("A100", 1)).error().message, "1 rank: a copy, not a collective");
    EXPECT_EQ(collectiveCase(record("not named (4 nodes x 8)", 32)).error().message, "the device is not stated");
}

// 16 GiB all-reduce on eight H200 by NVLS: 480 GB/s of bus bandwidth were measured (stas00/ml-engineering), which is 62.6 ms.
TEST(PredictCollective, IsNearAMeasuredRow) {
    const auto one = collectiveCase(record("H200", 8));
    ASSERT_TRUE(one.has_value());
    EXPECT_NEAR(predictCollectiveSeconds(*one, 16 * kGiB), 62.6e-3, 0.05 * 62.6e-3);
}

}  // namespace
}  // namespace ringside
