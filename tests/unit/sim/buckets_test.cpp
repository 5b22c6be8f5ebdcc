#include <gtest/gtest.h>

#include "sim/strategy/buckets.h"

namespace ringside {
namespace {

using Buckets = std::vector<GradientBucket>;

GradientSize fp32(std::int64_t elements) { return {elements, DType::Fp32, false}; }
GradientSize bf16(std::int64_t elements) { return {elements, DType::Bf16, false}; }

TEST(DdpBuckets, CloseAfterTheGradientThatReachesTheLimitSoTheyOvershoot) {
    // Limit 100 B. 15 + 9 elements = 96 B stay open; the next 200 elements close the bucket at 896 B.
    const std::vector<GradientSize> gradients = {fp32(15), fp32(9), fp32(200), fp32(1)};
    const std::vector<Bytes> limits = {100};
    EXPECT_EQ(fillDdpBuckets(gradients, limits), (Buckets{{0, 1, 2}, {3}}));
}

TEST(DdpBuckets, ABucketThatReachesItsLimitExactlyIsFull) {
    // 25 elements are 100 B.
    const std::vector<GradientSize> gradients = {fp32(25), fp32(25)};
    const std::vector<Bytes> limits = {100};
    EXPECT_EQ(fillDdpBuckets(gradients, limits), (Buckets{{0}, {1}}));
}

TEST(DdpBuckets, TheFirstLimitHoldsForTheFirstBucketAndTheLastForAllThatFollow) {
    // 10 elements are 40 B: the first bucket closes at 40 ≥ 40, the others at 120 ≥ 100.
    const std::vector<GradientSize> gradients(8, fp32(10));
    const std::vector<Bytes> limits = {40, 100};
    EXPECT_EQ(fillDdpBuckets(gradients, limits), (Buckets{{0}, {1, 2, 3}, {4, 5, 6}, {7}}));
}

TEST(DdpBuckets, TypesAreKeptApartAndEachHasItsOwnFirstLimit) {
    // fp32: 40 B closes at the first limit. bf16: 10 elements are 20 B, so two of them reach 40 B.
    const std::vector<GradientSize> gradients = {fp32(10), bf16(10), fp32(10), bf16(10), bf16(10)};
    const std::vector<Bytes> limits = {40, 1000};
    EXPECT_EQ(fillDdpBuckets(gradients, limits), (Buckets{{0}, {1, 3}, {2}, {4}}));
}

TEST(DdpBuckets, ASparseGradientTravelsAlone) {
    std::vector<GradientSize> gradients(3, fp32(1));
    gradients[1].sparse = true;
    const std::vector<Bytes> limits = {1000};
    EXPECT_EQ(fillDdpBuckets(gradients, limits), (Buckets{{0, 2}, {1}}));
}

TEST(DdpBuckets, AreOrderedByTheirSmallestIndex) {
    // The bf16 bucket closes first (at gradient 1), but gradient 0 comes first.
    const std::vector<GradientSize> gradients = {fp32(1), bf16(100), fp32(1)};
    const std::vector<Bytes> limits = {100};
    EXPECT_EQ(fillDdpBuckets(gradients, limits), (Buckets{{0, 2}, {1}}));
}

TEST(DdpBuckets, NoGradientsMakeNoBuckets) {
    const std::vector<Bytes> limits = {100};
    EXPECT_TRUE(fillDdpBuckets({}, limits).empty());
}

TEST(PicotronBuckets, CloseBeforeTheGradientThatWouldExceedTheLimit) {
    // 15 + 9 elements = 96 B; 2 more would make 104 > 100.
    const std::vector<GradientSize> gradients = {fp32(15), fp32(9), fp32(2), fp32(23)};
    EXPECT_EQ(fillPicotronBuckets(gradients, 100), (Buckets{{0, 1}, {2, 3}}));
}

TEST(PicotronBuckets, OnlyASingleGradientExceedsTheLimit) {
    const std::vector<GradientSize> gradients = {fp32(1), fp32(200), fp32(1)};
    EXPECT_EQ(fillPicotronBuckets(gradients, 100), (Buckets{{0}, {1}, {2}}));
}

}  // namespace
}  // namespace ringside
