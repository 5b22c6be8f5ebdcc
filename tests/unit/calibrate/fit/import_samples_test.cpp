#include "calibrate/fit/import_samples.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

TEST(ImportNcclTests, ATableBecomesACurveOfTheProfile) {
    NcclTestsTable table;
    table.op = "all_reduce";
    table.ranks = 8;
    table.rows = {{1024, 256, "float", "sum", -1, NcclTestsTiming{20, 0.05, 0.09, 0}, {}}, {2048, 512, "float", "sum", -1, {}, NcclTestsTiming{30, 0.07, 0.12, {}}},
                  {4096, 1024, "float", "sum", -1, NcclTestsTiming{40, 0.1, 0.18, 3}, {}}};
    Profile profile;
    const auto report = importNcclTests(profile, table, {"node", 3});
    ASSERT_TRUE(report) << report.error().toString();
    EXPECT_EQ(report->collectivePoints, 2);
    ASSERT_EQ(report->notes.size(), 1U) << "the row with wrong values is told";
    ASSERT_EQ(profile.collectives.size(), 1U);
    EXPECT_EQ(profile.collectives[0].backend, CollectiveBackend::Nccl);
    EXPECT_EQ(profile.collectives[0].ranks, 8);
    EXPECT_EQ(profile.collectives[0].link, "node");
    EXPECT_DOUBLE_EQ(profile.collectives[0].points[1].seconds, 30e-6);
}

TEST(ImportNcclTests, WithoutOperationOrRanksItIsRefused) {
    NcclTestsTable table;
    table.rows = {{1024, 256, "float", "sum", -1, NcclTestsTiming{20, 0.05, 0.09, 0}, {}}};
    Profile profile;
    EXPECT_FALSE(importNcclTests(profile, table));
    table.op = "all_reduce";
    EXPECT_FALSE(importNcclTests(profile, table));
    table.ranks = 2;
    EXPECT_TRUE(importNcclTests(profile, table));
}

TEST(ImportTorchProfile, ProductsAndCollectivesGoToTheirTables) {
    ProfiledKernels kernels;
    for (const double us : {10.0, 11.0, 12.0}) kernels.gemms.push_back({"aten::mm", "bf16", 1, 64, 128, 256, us * 1e-6});
    kernels.gemms.push_back({"aten::mm", "bf16", 1, 1, 1, 1, 1e-6});  // once: too little to go by
    // The slow ones waited for their peers.
    for (const double us : {900.0, 100.0, 101.0, 102.0, 5000.0}) kernels.collectives.push_back({"all_reduce", "nccl", "fp32", 4096, 4, us * 1e-6});
    kernels.collectives.push_back({"all_reduce", "gloo", "fp32", 4096, 0, 1e-3});
    Profile profile;
    const auto report = importTorchProfile(profile, kernels);
    ASSERT_TRUE(report) << report.error().toString();
    EXPECT_EQ(report->gemmShapes, 1);
    EXPECT_EQ(report->notes.size(), 2U);
    ASSERT_EQ(profile.gemmTable.at(DType::Bf16).size(), 1U);
    EXPECT_NEAR(profile.gemmTable.at(DType::Bf16)[0].tflops, 2.0 * 64 * 128 * 256 / 11e-6 / 1e12, 1e-9);
    ASSERT_EQ(profile.collectives.size(), 1U);
    EXPECT_NEAR(profile.collectives[0].points[0].seconds, 101e-6, 1e-12);
    EXPECT_FALSE(importTorchProfile(profile, ProfiledKernels{}));
}

}  // namespace
}  // namespace ringside
