#include "model/memory/allocator.h"

#include <limits>

#include <gtest/gtest.h>

namespace ringside {
namespace {

TEST(CachingAllocator, RoundsEveryRequestUpTo512Bytes) {
    CachingAllocator allocator;
    allocator.allocate(1, 0);
    EXPECT_EQ(allocator.allocated(), 512);
    allocator.allocate(513, 0);
    EXPECT_EQ(allocator.allocated(), 512 + 1024);
}

TEST(CachingAllocator, AnEmptyTensorTakesNothing) {
    CachingAllocator allocator;
    const auto block = allocator.allocate(0, 0);
    EXPECT_EQ(block, CachingAllocator::kNoBlock);
    allocator.free(block);
    EXPECT_EQ(allocator.allocated(), 0);
    EXPECT_EQ(allocator.reserved(), 0);
}

TEST(CachingAllocator, RequestsUpToOneMebibyteShareTwoMebibyteSegments) {
    CachingAllocator allocator;
    allocator.allocate(kMiB, 0);
    allocator.allocate(kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 2 * kMiB);
    EXPECT_EQ(allocator.segments(), 1);
    // The segment is full: 1 + 1 = 2 MiB.
    allocator.allocate(512, 0);
    EXPECT_EQ(allocator.reserved(), 4 * kMiB);
    EXPECT_EQ(allocator.segments(), 2);
}

TEST(CachingAllocator, RequestsBelowTenMebibytesShareTwentyMebibyteSegments) {
    CachingAllocator allocator;
    allocator.allocate(kMiB + 1, 0);
    EXPECT_EQ(allocator.reserved(), 20 * kMiB);
    // 1 MiB + 512 B are taken; 9 MiB and then 9 MiB more fit into the remaining 19 MiB − 512 B.
    allocator.allocate(9 * kMiB, 0);
    allocator.allocate(9 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 20 * kMiB);
    EXPECT_EQ(allocator.segments(), 1);
}

TEST(CachingAllocator, LargeRequestsGetSegmentsRoundedToTwoMebibytes) {
    CachingAllocator allocator;
    allocator.allocate(10 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 10 * kMiB);
    // 11 MiB → a segment of 12 MiB.
    allocator.allocate(11 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 22 * kMiB);
}

TEST(CachingAllocator, ALargeRemainderOfOneMebibyteOrLessStaysWithTheBlock) {
    CachingAllocator allocator;
    // A segment of 12 MiB: the remainder of exactly 1 MiB is not more than 1 MiB, so it is not split off and counts as allocated.
    allocator.allocate(11 * kMiB, 0);
    EXPECT_EQ(allocator.allocated(), 12 * kMiB);
    // A segment of 12 MiB: the remainder of 1 MiB + 512 B is split off.
    allocator.allocate(11 * kMiB - 512, 0);
    EXPECT_EQ(allocator.allocated(), 12 * kMiB + 11 * kMiB - 512);
}

TEST(CachingAllocator, ASmallRemainderOf512BytesIsSplitOff) {
    CachingAllocator allocator;
    allocator.allocate(kMiB, 0);
    allocator.allocate(kMiB - 512, 0);
    EXPECT_EQ(allocator.allocated(), 2 * kMiB - 512);
    allocator.allocate(512, 0);
    EXPECT_EQ(allocator.reserved(), 2 * kMiB);
}

TEST(CachingAllocator, TakesTheSmallestSufficientBlock) {
    CachingAllocator allocator;
    const auto big = allocator.allocate(40 * kMiB, 0);
    const auto small = allocator.allocate(30 * kMiB, 0);
    const Bytes address = allocator.addressOf(small);
    allocator.free(big);
    allocator.free(small);
    EXPECT_EQ(allocator.addressOf(allocator.allocate(29 * kMiB, 0)), address);
}

TEST(CachingAllocator, TakesTheLowestAddressAmongEqualBlocks) {
    CachingAllocator allocator;
    const auto first = allocator.allocate(30 * kMiB, 0);
    const auto second = allocator.allocate(30 * kMiB, 0);
    const Bytes low = allocator.addressOf(first), high = allocator.addressOf(second);
    ASSERT_LT(low, high);
    allocator.free(first);
    allocator.free(second);
    EXPECT_EQ(allocator.addressOf(allocator.allocate(30 * kMiB, 0)), low);
    EXPECT_EQ(allocator.addressOf(allocator.allocate(30 * kMiB, 0)), high);
}

TEST(CachingAllocator, SplitsABlockOfAnySizeAsMaxSplitSizeIsUnlimited) {
    CachingAllocator allocator;
    allocator.free(allocator.allocate(1000 * kMiB, 0));
    // 2 MiB come out of the 1,000 MiB block: no new 20 MiB segment.
    allocator.allocate(2 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 1000 * kMiB);
    EXPECT_EQ(allocator.allocated(), 2 * kMiB);
}

TEST(CachingAllocator, ARequestAboveTenMebibytesMayUseATwentyMebibyteSegment) {
    CachingAllocator allocator;
    allocator.free(allocator.allocate(2 * kMiB, 0));
    allocator.allocate(12 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 20 * kMiB);
}

TEST(CachingAllocator, SmallRequestsNeverUseTheLargePool) {
    CachingAllocator allocator;
    allocator.free(allocator.allocate(2 * kMiB, 0));
    allocator.allocate(512, 0);
    EXPECT_EQ(allocator.reserved(), 22 * kMiB);
}

TEST(CachingAllocator, ReusesABlockOnlyOnItsOwnStream) {
    CachingAllocator allocator;
    allocator.free(allocator.allocate(30 * kMiB, 0));
    const auto other = allocator.allocate(30 * kMiB, 7);
    EXPECT_EQ(allocator.reserved(), 60 * kMiB);
    allocator.free(other);
    allocator.allocate(30 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 60 * kMiB);
}

TEST(CachingAllocator, MergesAFreedBlockWithBothNeighbours) {
    CachingAllocator allocator;
    const auto a = allocator.allocate(6 * kMiB, 0);
    const auto b = allocator.allocate(6 * kMiB, 0);
    const auto c = allocator.allocate(8 * kMiB, 0);
    ASSERT_EQ(allocator.reserved(), 20 * kMiB);
    allocator.free(a);
    allocator.free(c);
    allocator.free(b);
    // 6 + 6 + 8 = 20 MiB in one block again.
    allocator.allocate(20 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 20 * kMiB);
}

TEST(CachingAllocator, DoesNotMergeAcrossSegments) {
    CachingAllocator allocator;
    const auto a = allocator.allocate(10 * kMiB, 0);
    const auto b = allocator.allocate(10 * kMiB, 0);
    allocator.free(a);
    allocator.free(b);
    // 10 + 10 MiB are free, but in two segments.
    allocator.allocate(20 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

TEST(CachingAllocator, ReleasesOnlySegmentsWithoutALiveBlock) {
    CachingAllocator allocator;
    const auto whole = allocator.allocate(30 * kMiB, 0);
    const auto kept = allocator.allocate(2 * kMiB, 0);
    const auto neighbour = allocator.allocate(2 * kMiB, 0);
    allocator.free(whole);
    allocator.free(neighbour);
    EXPECT_EQ(allocator.releaseCached(), 30 * kMiB);
    EXPECT_EQ(allocator.reserved(), 20 * kMiB);
    EXPECT_EQ(allocator.segments(), 1);
    allocator.free(kept);
    EXPECT_EQ(allocator.releaseCached(), 20 * kMiB);
    EXPECT_EQ(allocator.reserved(), 0);
}

TEST(CachingAllocator, NearTheCapacityItGivesBackTheCacheAndTriesAgain) {
    CachingAllocator allocator(false, 100 * kMiB);
    const auto first = allocator.tryAllocate(60 * kMiB, 0);
    ASSERT_TRUE(first);
    allocator.free(*first);
    // 60 MiB cached are too small for 80 MiB, and 60 + 80 > 100: the cache goes back to the driver first.
    EXPECT_TRUE(allocator.tryAllocate(80 * kMiB, 0));
    EXPECT_EQ(allocator.reserved(), 80 * kMiB);
    EXPECT_EQ(allocator.peakReserved(), 80 * kMiB);
    EXPECT_EQ(allocator.retries(), 1);
}

TEST(CachingAllocator, FailsWhenFragmentsCannotBeGivenBack) {
    CachingAllocator allocator(false, 40 * kMiB);
    const auto a = allocator.tryAllocate(9 * kMiB, 0);
    const auto b = allocator.tryAllocate(9 * kMiB, 0);
    const auto c = allocator.tryAllocate(9 * kMiB, 0);
    const auto d = allocator.tryAllocate(9 * kMiB, 0);
    ASSERT_TRUE(a && b && c && d);
    ASSERT_EQ(allocator.reserved(), 40 * kMiB);
    allocator.free(*a);
    allocator.free(*c);
    // 22 MiB are free, at most 11 MiB in one piece, and both segments hold a live block.
    EXPECT_FALSE(allocator.tryAllocate(20 * kMiB, 0));
    EXPECT_EQ(allocator.allocated(), 18 * kMiB);
    EXPECT_TRUE(allocator.tryAllocate(9 * kMiB, 0));
}

TEST(CachingAllocator, PeaksStayWhenMemoryIsFreed) {
    CachingAllocator allocator;
    allocator.free(allocator.allocate(30 * kMiB, 0));
    allocator.releaseCached();
    EXPECT_EQ(allocator.peakAllocated(), 30 * kMiB);
    EXPECT_EQ(allocator.peakReserved(), 30 * kMiB);
    EXPECT_EQ(allocator.reserved(), 0);
}

TEST(CachingAllocator, ResetForgetsEverything) {
    CachingAllocator allocator(false, 64 * kMiB);
    allocator.allocate(30 * kMiB, 0);
    allocator.reset();
    EXPECT_EQ(allocator.allocated() + allocator.reserved() + allocator.peakAllocated() + allocator.peakReserved(), 0);
    EXPECT_EQ(allocator.segments(), 0);
    EXPECT_EQ(allocator.capacity(), 64 * kMiB);
    allocator.allocate(kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 2 * kMiB);
}

TEST(CachingAllocator, AnAbsurdRequestIsRefusedAndDoesNotOverflow) {
    CachingAllocator allocator(false, 80 * kGiB);
    EXPECT_FALSE(allocator.tryAllocate(std::numeric_limits<Bytes>::max(), 0));
    EXPECT_EQ(allocator.reserved(), 0);
    CachingAllocator expandable(true, 80 * kGiB);
    EXPECT_FALSE(expandable.tryAllocate(std::numeric_limits<Bytes>::max(), 0));
    EXPECT_EQ(expandable.reserved(), 0);
}

TEST(ExpandableSegments, MapTwentyMebibytePagesAsALargePoolGrows) {
    CachingAllocator allocator(true);
    allocator.allocate(30 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 40 * kMiB);
    // 10 MiB of the second page are left and hold this exactly.
    allocator.allocate(10 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 40 * kMiB);
    allocator.allocate(11 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 60 * kMiB);
    EXPECT_EQ(allocator.segments(), 1);
}

TEST(ExpandableSegments, MapTwoMebibytePagesForTheSmallPool) {
    CachingAllocator allocator(true);
    allocator.allocate(kMiB, 0);
    allocator.allocate(kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 2 * kMiB);
    allocator.allocate(512, 0);
    EXPECT_EQ(allocator.reserved(), 4 * kMiB);
}

TEST(ExpandableSegments, SplitEveryRemainder) {
    CachingAllocator allocator(true);
    // Without expandable segments this would keep 1 MiB (see ALargeRemainderOfOneMebibyteOrLessStaysWithTheBlock).
    allocator.allocate(19 * kMiB, 0);
    EXPECT_EQ(allocator.allocated(), 19 * kMiB);
}

TEST(ExpandableSegments, GrowAFreeBlockAtTheEndInsteadOfTakingANewSegment) {
    CachingAllocator allocator(true);
    allocator.allocate(10 * kMiB, 0);
    allocator.free(allocator.allocate(50 * kMiB, 0));
    ASSERT_EQ(allocator.reserved(), 60 * kMiB);
    // 50 MiB are free at the end; 90 MiB need 40 MiB more, two pages.
    allocator.allocate(90 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 100 * kMiB);
}

TEST(ExpandableSegments, JoinWhatSegmentsOfFixedSizeCannot) {
    CachingAllocator allocator(true);
    const auto a = allocator.allocate(20 * kMiB, 0);
    const auto b = allocator.allocate(20 * kMiB, 0);
    allocator.free(a);
    allocator.free(b);
    allocator.allocate(40 * kMiB, 0);
    EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

TEST(ExpandableSegments, PreferAHoleToTheBlockThatCanGrow) {
    CachingAllocator allocator(true);
    const auto hole = allocator.allocate(15 * kMiB, 0);
    const Bytes holeAddress = allocator.addressOf(hole);
    allocator.allocate(11 * kMiB, 0);
    ASSERT_EQ(allocator.reserved(), 40 * kMiB);
    allocator.free(hole);
    // The end block has 40 − 26 = 14 MiB and is the smaller one, but counts with all it can grow to.
    EXPECT_EQ(allocator.addressOf(allocator.allocate(12 * kMiB, 0)), holeAddress);
}

TEST(ExpandableSegments, GiveBackThePagesWithoutALiveBlock) {
    CachingAllocator allocator(true);
    const auto a = allocator.allocate(30 * kMiB, 0);
    const auto kept = allocator.allocate(5 * kMiB, 0);
    const auto c = allocator.allocate(45 * kMiB, 0);
    ASSERT_EQ(allocator.reserved(), 80 * kMiB);
    allocator.free(a);
    allocator.free(c);
    // Pages [0, 20) and [40, 80) are free; [20, 40) holds the live block at [30, 35).
    EXPECT_EQ(allocator.releaseCached(), 60 * kMiB);
    EXPECT_EQ(allocator.reserved(), 20 * kMiB);
    // The hole [0, 30) is filled first: its page is mapped again and joins the free [20, 30).
    EXPECT_EQ(allocator.addressOf(allocator.allocate(30 * kMiB, 0)), 0);
    EXPECT_EQ(allocator.reserved(), 40 * kMiB);
    allocator.free(kept);
}

TEST(ExpandableSegments, RespectTheCapacity) {
    CachingAllocator allocator(true, 60 * kMiB);
    const auto a = allocator.tryAllocate(40 * kMiB, 0);
    ASSERT_TRUE(a);
    EXPECT_FALSE(allocator.tryAllocate(40 * kMiB, 0));
    EXPECT_LE(allocator.reserved(), 60 * kMiB);
    allocator.free(*a);
    EXPECT_TRUE(allocator.tryAllocate(60 * kMiB, 0));
    EXPECT_EQ(allocator.reserved(), 60 * kMiB);
}

}  // namespace
}  // namespace ringside
