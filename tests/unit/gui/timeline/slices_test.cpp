// Rows of slices, and the rectangles of a row at a zoom.
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "gui/timeline/visible_slices.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }

struct Piece {
    double start, duration;
    SliceCategory category = SliceCategory::Compute;
};

Trace traceOf(const std::vector<Piece>& pieces) {
    TraceBuilder builder;
    const std::uint32_t track = builder.addTrack(0, 0, TrackKind::Compute, "compute");
    for (const Piece& piece : pieces) builder.addSlice(track, us(piece.start), us(piece.duration), piece.category, builder.internName("kernel"));
    return builder.build();
}

TEST(SliceIndex, NestedSlicesStandInRowsBelowEachOther) {
    const Trace trace = traceOf({{0, 100}, {10, 30}, {12, 5}, {50, 20}, {200, 10}});
    const SliceIndex index(trace);
    ASSERT_EQ(index.rowCount(0), 3U);
    EXPECT_EQ(index.rows(0)[0].size(), 2U);  // [0, 100) and [200, 210)
    EXPECT_EQ(index.rows(0)[1].size(), 2U);  // [10, 40) and [50, 70)
    EXPECT_EQ(index.rows(0)[2].size(), 1U);  // [12, 17)
    EXPECT_EQ(index.rowOf(trace, 2), 2U);
}

TEST(SliceIndex, OverlappingSlicesThatDoNotNestGetARowOfTheirOwn) {
    const Trace trace = traceOf({{0, 100}, {50, 100}});
    const SliceIndex index(trace);
    ASSERT_EQ(index.rowCount(0), 2U);
    EXPECT_EQ(index.rows(0)[0].slice(0), 0U);
    EXPECT_EQ(index.rows(0)[1].slice(0), 1U);
}

TEST(SliceIndex, ATrackWithoutSlicesHasAnEmptyRow) {
    TraceBuilder builder;
    builder.addTrack(0, 0, TrackKind::Compute, "idle");
    const Trace trace = builder.build();
    const SliceIndex index(trace);
    ASSERT_EQ(index.rowCount(0), 1U);
    EXPECT_EQ(index.rows(0)[0].size(), 0U);
}

TEST(VisibleSlices, WideSlicesAreCutAtTheWindow) {
    const Trace trace = traceOf({{0, 150}, {180, 10}, {290, 100}});
    const SliceIndex index(trace);
    std::vector<SliceRect> rects;
    visibleSlices(trace, index.rows(0)[0], TimeAxis({us(100), us(300)}, 200), rects);  // a pixel is a microsecond
    ASSERT_EQ(rects.size(), 3U);
    EXPECT_FLOAT_EQ(rects[0].x0, 0);
    EXPECT_FLOAT_EQ(rects[0].x1, 50);
    EXPECT_FLOAT_EQ(rects[1].x0, 80);
    EXPECT_FLOAT_EQ(rects[1].x1, 90);
    EXPECT_FLOAT_EQ(rects[2].x1, 200);
    EXPECT_EQ(rects[1].slice, 1U);
}

TEST(VisibleSlices, SliversOfOnePixelBecomeOneRectangleWithTheirCoverage) {
    // A pixel is 10 µs. In the second one two slices of 2 µs: 4 of 10 are covered.
    const Trace trace = traceOf({{11, 2}, {15, 2}});
    const SliceIndex index(trace);
    std::vector<SliceRect> rects;
    visibleSlices(trace, index.rows(0)[0], TimeAxis({us(0), us(1000)}, 100), rects);
    ASSERT_EQ(rects.size(), 1U);
    EXPECT_FLOAT_EQ(rects[0].x0, 1);
    EXPECT_FLOAT_EQ(rects[0].x1, 2);
    EXPECT_EQ(rects[0].slice, kNoSlice);
    EXPECT_NEAR(rects[0].coverage / 255.0, 0.4, 0.04);
}

TEST(VisibleSlices, ALoneSliverKeepsItsNameAndCanBeSeen) {
    const Trace trace = traceOf({{500, 0.001}});
    const SliceIndex index(trace);
    std::vector<SliceRect> rects;
    visibleSlices(trace, index.rows(0)[0], TimeAxis({us(0), us(1000)}, 100), rects);
    ASSERT_EQ(rects.size(), 1U);
    EXPECT_EQ(rects[0].slice, 0U);
    EXPECT_GT(rects[0].coverage, 60);
}

TEST(VisibleSlices, TheCategoryThatCoversMostGivesThePixelItsColour) {
    const Trace trace = traceOf({{10, 1}, {12, 5, SliceCategory::Communication}, {18, 1}});
    const SliceIndex index(trace);
    std::vector<SliceRect> rects;
    visibleSlices(trace, index.rows(0)[0], TimeAxis({us(0), us(1000)}, 100), rects);
    ASSERT_EQ(rects.size(), 1U);
    EXPECT_EQ(rects[0].category, SliceCategory::Communication);
}

TEST(VisibleSlices, ThousandsOfSlicesPerPixelCostOneRectanglePerLook) {
    // 100,000 slices of 0.5 µs every microsecond over 100 pixels: every pixel is half covered and looks the same.
    std::vector<Piece> pieces;
    for (int i = 0; i < 100'000; ++i) pieces.push_back({static_cast<double>(i), 0.5});
    const Trace trace = traceOf(pieces);
    const SliceIndex index(trace);
    std::vector<SliceRect> rects;
    visibleSlices(trace, index.rows(0)[0], TimeAxis({us(0), us(100'000)}, 100), rects);
    EXPECT_LE(rects.size(), 20U);
    EXPECT_FLOAT_EQ(rects.front().x0, 0);
    EXPECT_NEAR(rects.back().x1, 100, 1);
    for (const SliceRect& rect : rects) EXPECT_NEAR(rect.coverage / 255.0, 0.5, 0.06);
}

TEST(VisibleSlices, AreInOrderInsideTheWindowAndShowEverySliceAtAnyZoom) {
    const bool holds = rc::check([] {
        const auto gaps = *rc::gen::container<std::vector<std::pair<int, int>>>(rc::gen::pair(rc::gen::inRange(0, 50), rc::gen::inRange(0, 50)));
        std::vector<Piece> pieces;
        double at = 0;
        for (const auto& [gap, length] : gaps) {
            at += gap;
            pieces.push_back({at, static_cast<double>(length)});
            at += length;
        }
        if (pieces.empty()) return;
        const Trace trace = traceOf(pieces);
        const SliceIndex index(trace);
        const int width = *rc::gen::inRange(1, 300);
        const double begin = *rc::gen::inRange(0, 2000), length = *rc::gen::inRange(1, 3000);
        const TimeAxis axis({us(begin), us(begin + length)}, width);
        for (const SliceRow& row : index.rows(0)) {
            std::vector<SliceRect> rects;
            visibleSlices(trace, row, axis, rects);
            float last = 0;
            for (const SliceRect& rect : rects) {
                RC_ASSERT(rect.x0 >= last);
                RC_ASSERT(rect.x1 > rect.x0);
                RC_ASSERT(rect.x1 <= static_cast<float>(width) + 1);
                last = rect.x1;
            }
            // The middle of every slice that is in sight is painted, give or take a pixel.
            for (std::size_t i = 0; i < row.size(); ++i) {
                const std::uint32_t s = row.slice(i);
                const double x = axis.toX(trace.start[s]) + axis.widthOf(trace.duration[s]) / 2;
                if (x < 0 || x >= width) continue;
                const bool painted = std::any_of(rects.begin(), rects.end(), [&](const SliceRect& rect) { return rect.x0 - 1 <= x && x <= rect.x1 + 1; });
                RC_ASSERT(painted);
            }
        }
    });
    EXPECT_TRUE(holds);
}

TEST(SliceAt, TakesTheNearestSliceWithinReach) {
    const Trace trace = traceOf({{100, 10}, {500, 0.01}});
    const SliceIndex index(trace);
    const TimeAxis axis({us(0), us(1000)}, 1000);
    EXPECT_EQ(sliceAt(trace, index.rows(0)[0], axis, 105), 0U);
    EXPECT_EQ(sliceAt(trace, index.rows(0)[0], axis, 111.5), 0U);
    EXPECT_EQ(sliceAt(trace, index.rows(0)[0], axis, 501), 1U) << "a sliver is hit beside it";
    EXPECT_EQ(sliceAt(trace, index.rows(0)[0], axis, 300), std::nullopt);
}

}  // namespace
}  // namespace ringside::gui
