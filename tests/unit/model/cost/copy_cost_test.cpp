#include "model/cost/copy_cost.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

Device withPcie(double gbPerS) {
    Device d;
    d.name = "test";
    d.pcieGbPerS = gbPerS;
    return d;
}

// 8 µs + 1 GB / (20 GB/s · 0.9) = 8 µs + 55.6 ms; pageable adds 1 GB / 8 GB/s = 125 ms on the host.
TEST(CopyCost, PageableMemoryIsCopiedOnceMoreOnTheHost) {
    const auto copy = CopyCost::create(withPcie(20));
    ASSERT_TRUE(copy.has_value());
    EXPECT_NEAR(copy->seconds(1'000'000'000), 8e-6 + 1.0 / 18, 1e-9);
    EXPECT_NEAR(copy->seconds(1'000'000'000, HostMemory::Pageable), 8e-6 + 1.0 / 18 + 0.125, 1e-9);
    EXPECT_EQ(copy->seconds(0), 0);
}

TEST(CopyCost, DevicesBelowOneUplinkDivideIt) {
    CopyOptions options;
    options.fixedUs = 0;
    options.devicesSharingLink = 2;
    EXPECT_NEAR(CopyCost::create(withPcie(20), options)->seconds(9'000'000'000), 1.0, 1e-9);
}

TEST(CopyCost, NeedsThePcieRate) {
    Device unknown;
    unknown.name = "mystery";
    const auto copy = CopyCost::create(unknown);
    ASSERT_FALSE(copy.has_value());
    EXPECT_NE(copy.error().toString().find("pcie"), std::string::npos) << copy.error().toString();
    CopyOptions options;
    options.efficiency = 0;
    EXPECT_FALSE(CopyCost::create(withPcie(20), options).has_value());
}

}  // namespace
}  // namespace ringside
