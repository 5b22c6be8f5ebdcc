#include "traces/analysis/breakdown.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "small_trace.h"
#include "traces/analysis/collectives.h"
#include "traces/analysis/lanes.h"

namespace ringside {
namespace {

/// One rank with a host, a compute, a communication and a copy track.
class Rank {
public:
    Rank() {
        for (const TrackKind kind : {TrackKind::Host, TrackKind::Compute, TrackKind::Communication, TrackKind::Copy})
            builder_.addTrack(0, static_cast<int>(kind), kind, "");
    }
    Rank& add(TrackKind kind, SliceCategory category, double begin, double end) {
        builder_.addSlice(static_cast<std::uint32_t>(kind), us(begin), us(end - begin), category, builder_.internName("x"));
        return *this;
    }
    Breakdown breakdown(double step) { return breakdownOf(builder_.build(), 0, us(step)); }
    TraceBuilder& builder() { return builder_; }

private:
    TraceBuilder builder_;
};

TEST(Breakdown, OfTheSmallTraceAddsUpByHand) {
    const Breakdown b = breakdownOf(smallTrace(), 0, us(90));
    EXPECT_EQ(b.compute, us(60));               // [2,22) and [22,62)
    EXPECT_EQ(b.optimizer, us(10));             // [72,82)
    EXPECT_EQ(b.communicationHidden, us(20));   // [42,62) under backward
    EXPECT_EQ(b.communicationExposed, us(10));  // [62,72)
    EXPECT_EQ(b.host, us(2));                   // [0,2): launching before the first kernel
    EXPECT_EQ(b.idle, us(8));                   // [82,90)
    EXPECT_EQ(b.compute + b.optimizer + b.communicationExposed + b.host + b.idle, b.step);
    // 20 of 30 µs are hidden.
    EXPECT_DOUBLE_EQ(b.overlapPercent(), 100.0 * 20 / 30);
}

TEST(Breakdown, OverlappingSlicesOnAStreamCountOnce) {
    const Breakdown b = Rank().add(TrackKind::Compute, SliceCategory::Compute, 0, 10).add(TrackKind::Compute, SliceCategory::Compute, 5, 12).breakdown(20);
    EXPECT_EQ(b.compute, us(12));
    EXPECT_EQ(b.idle, us(8));
}

TEST(Breakdown, TimeUnderTheOptimizerIsNotAlsoCompute) {
    const Breakdown b = Rank().add(TrackKind::Compute, SliceCategory::Compute, 0, 10).add(TrackKind::Compute, SliceCategory::Optimizer, 6, 14).breakdown(14);
    EXPECT_EQ(b.optimizer, us(8));
    EXPECT_EQ(b.compute, us(6));
}

TEST(Breakdown, ACopyKernelOnAComputeStreamIsComputeAndOneOnACopyStreamIsNot) {
    const Breakdown b = Rank().add(TrackKind::Compute, SliceCategory::Copy, 0, 3).add(TrackKind::Copy, SliceCategory::Copy, 2, 7).breakdown(10);
    EXPECT_EQ(b.compute, us(3));
    EXPECT_EQ(b.copyExposed, us(4));  // [3,7)
    EXPECT_EQ(b.idle, us(7));         // [3,10), with the copy
}

TEST(Breakdown, HostTimeUnderAnyDeviceWorkIsNotHostBound) {
    const Breakdown b = Rank()
                            .add(TrackKind::Host, SliceCategory::Host, 0, 30)
                            .add(TrackKind::Compute, SliceCategory::Compute, 5, 10)
                            .add(TrackKind::Communication, SliceCategory::Communication, 10, 15)
                            .add(TrackKind::Copy, SliceCategory::Copy, 15, 20)
                            .breakdown(30);
    EXPECT_EQ(b.host, us(15));  // [0,5) and [20,30)
    EXPECT_EQ(b.idle, us(5));   // [15,20): only the copy
}

TEST(Breakdown, WaitsAndMarkersAreIdleTime) {
    const Breakdown b = Rank().add(TrackKind::Host, SliceCategory::Wait, 0, 9).add(TrackKind::Compute, SliceCategory::Marker, 0, 9).breakdown(9);
    EXPECT_EQ(b.idle, us(9));
}

TEST(Breakdown, CutsSlicesAtTheBordersOfTheStep) {
    const Breakdown b = breakdownOf(smallTrace(), 0, us(12), us(52));
    EXPECT_EQ(b.step, us(40));
    EXPECT_EQ(b.compute, us(40));
    EXPECT_EQ(b.communicationHidden, us(10));  // [42,52)
}

TEST(Breakdown, WithoutCommunicationEverythingIsHidden) { EXPECT_DOUBLE_EQ(Rank().breakdown(1).overlapPercent(), 100); }

TEST(Breakdown, IgnoresOtherRanks) { EXPECT_EQ(breakdownOf(smallTrace(), 5, us(90)).idle, us(90)); }

TEST(Breakdown, PartsAlwaysAddUpToTheStep) {
    ASSERT_TRUE(rc::check([] {
        Rank rank;
        const auto slices = *rc::gen::container<std::vector<std::tuple<int, int, int, int>>>(
            rc::gen::tuple(rc::gen::inRange(0, 4), rc::gen::inRange(0, 7), rc::gen::inRange(0, 100), rc::gen::inRange(0, 30)));
        for (const auto& [track, category, begin, length] : slices)
            rank.add(static_cast<TrackKind>(track), static_cast<SliceCategory>(category), begin, begin + length);
        const Breakdown b = rank.breakdown(100);
        RC_ASSERT(b.compute + b.optimizer + b.communicationExposed + b.host + b.idle == b.step);
        for (const Time t : {b.compute, b.optimizer, b.communicationExposed, b.communicationHidden, b.host, b.idle, b.copyExposed}) RC_ASSERT(t >= Time{});
        RC_ASSERT(b.communicationHidden <= b.compute + b.optimizer);
        RC_ASSERT(b.copyExposed <= b.idle);
    }));
}

TEST(Collectives, BandwidthsCountFromTheLastArrival) {
    const auto rows = collectivesOf(smallTrace(), 0);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].duration, us(30));
    // Rank 1 arrives 2 µs later: 28 µs of transfer. 4,000 B / 28 µs = 142.857 MB/s; × 2·(2 − 1)/2 = 1 for two ranks.
    EXPECT_EQ(rows[0].transfer, us(28));
    EXPECT_NEAR(rows[0].algbw, 4000 / 28e-6, 1);
    EXPECT_NEAR(rows[0].busbw, 4000 / 28e-6, 1);
}

TEST(Collectives, BusbwFactorsAreThoseOfNcclTests) {
    EXPECT_DOUBLE_EQ(busbwFactor("allreduce", 8), 2.0 * 7 / 8);
    EXPECT_DOUBLE_EQ(busbwFactor("_allgather_base", 8), 7.0 / 8);
    EXPECT_DOUBLE_EQ(busbwFactor("_reduce_scatter_base", 8), 7.0 / 8);
    EXPECT_DOUBLE_EQ(busbwFactor("broadcast", 8), 1);
    EXPECT_DOUBLE_EQ(busbwFactor("reduce", 8), 1);
    EXPECT_DOUBLE_EQ(busbwFactor("allreduce", 1), 0);
}

TEST(Lanes, OverlappingSlicesGoToTheNextLaneAndNestedOnesStay) {
    Rank rank;
    rank.add(TrackKind::Compute, SliceCategory::Compute, 0, 10)   // lane 0
        .add(TrackKind::Compute, SliceCategory::Compute, 2, 5)    // inside it: lane 0
        .add(TrackKind::Compute, SliceCategory::Compute, 4, 6)    // overlaps [2,5): lane 1
        .add(TrackKind::Compute, SliceCategory::Compute, 10, 12); // touches: lane 0
    EXPECT_EQ(nestingLanes(rank.builder().build(), static_cast<std::size_t>(TrackKind::Compute)), (std::vector<std::uint32_t>{0, 0, 1, 0}));
}

}  // namespace
}  // namespace ringside
