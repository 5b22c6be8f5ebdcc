#include "traces/trace_builder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "small_trace.h"

namespace ringside {
namespace {

TEST(TraceBuilder, SortsSlicesByTrackAndStart) {
    TraceBuilder builder;
    const auto a = builder.addTrack(0, 0, TrackKind::Compute, "a"), b = builder.addTrack(0, 1, TrackKind::Compute, "b");
    const auto name = builder.internName("x");
    builder.addSlice(b, us(1), us(1), SliceCategory::Compute, name, 10);
    builder.addSlice(a, us(5), us(1), SliceCategory::Compute, name, 11);
    builder.addSlice(a, us(2), us(1), SliceCategory::Compute, name, 12);
    const Trace trace = builder.build();
    EXPECT_EQ(trace.task, (std::vector<std::int64_t>{12, 11, 10}));
    EXPECT_EQ(trace.track, (std::vector<std::uint32_t>{a, a, b}));
    EXPECT_EQ(trace.firstSlice(0), 0U);
    EXPECT_EQ(trace.firstSlice(1), 2U);
    EXPECT_EQ(trace.firstSlice(2), 3U);
}

TEST(TraceBuilder, PutsAParentBeforeAChildThatStartsWithIt) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 0, TrackKind::Compute, "a");
    builder.addSlice(track, us(1), us(1), SliceCategory::Compute, builder.internName("child"));
    builder.addSlice(track, us(1), us(5), SliceCategory::Marker, builder.internName("parent"));
    const Trace trace = builder.build();
    EXPECT_EQ(trace.names[trace.name[0]], "parent");
}

TEST(TraceBuilder, GivesANameOneId) {
    TraceBuilder builder;
    EXPECT_EQ(builder.internName("forward"), builder.internName(std::string("for") + "ward"));
    EXPECT_NE(builder.internName("forward"), builder.internName("backward"));
}

TEST(TraceBuilder, IsAsNewAfterBuild) {
    TraceBuilder builder;
    builder.addSlice(builder.addTrack(0, 0, TrackKind::Compute, "a"), us(1), us(1), SliceCategory::Compute, builder.internName("x"));
    EXPECT_EQ(builder.build().size(), 1U);
    const Trace empty = builder.build();
    EXPECT_EQ(empty.size() + empty.tracks.size() + empty.names.size(), 0U);
    EXPECT_EQ(empty.end(), Time{});
    EXPECT_EQ(builder.internName("y"), 0U);
}

TEST(TraceBuilder, EndIsThatOfTheSliceThatEndsLastNotStartsLast) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 0, TrackKind::Compute, "a");
    builder.addSlice(track, us(1), us(50), SliceCategory::Compute, builder.internName("long"));
    builder.addSlice(track, us(10), us(5), SliceCategory::Compute, builder.internName("short"));
    EXPECT_EQ(builder.build().end(), us(51));
}

TEST(TraceBuilder, FlowsFollowTheirSlicesThroughTheSort) {
    ASSERT_TRUE(rc::check([] {
        TraceBuilder builder;
        const auto tracks = *rc::gen::inRange<std::uint32_t>(1, 5);
        for (std::uint32_t t = 0; t < tracks; ++t) builder.addTrack(0, t, TrackKind::Compute, "t");
        const auto name = builder.internName("x");
        const auto starts = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100)));
        for (std::size_t i = 0; i < starts.size(); ++i) {
            builder.addSlice(*rc::gen::inRange<std::uint32_t>(0, tracks), us(starts[i]), us(1), SliceCategory::Compute, name, static_cast<std::int64_t>(i));
            if (i > 0) builder.addFlow(static_cast<std::uint32_t>(i - 1), static_cast<std::uint32_t>(i));
        }
        const Trace trace = builder.build();
        for (std::size_t i = 1; i < trace.size(); ++i)
            RC_ASSERT(std::pair(trace.track[i - 1], trace.start[i - 1]) <= std::pair(trace.track[i], trace.start[i]));
        RC_ASSERT(trace.flows.size() == starts.size() - 1);
        // The task is the number of the addSlice call, which the flows were made from.
        for (std::size_t f = 0; f < trace.flows.size(); ++f) {
            RC_ASSERT(trace.task[trace.flows[f].from] == static_cast<std::int64_t>(f));
            RC_ASSERT(trace.task[trace.flows[f].to] == static_cast<std::int64_t>(f + 1));
        }
    }));
}

TEST(Trace, CategoriesAndTrackKindsHaveNames) {
    EXPECT_EQ(nameOf(SliceCategory::Communication), "communication");
    EXPECT_EQ(nameOf(TrackKind::Host), "host");
}

}  // namespace
}  // namespace ringside
