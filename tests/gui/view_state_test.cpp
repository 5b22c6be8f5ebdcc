// One view state: named ranges that every panel listens to.
#include <QSignalSpy>

#include <gtest/gtest.h>

#include "gui/core/view_state.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }
const TimeRange kTrace = {us(0), us(1000)};

TEST(ViewState, ANewTraceIsShownWholeAndNothingIsSelected) {
    ViewState view;
    view.reset(kTrace);
    EXPECT_EQ(view.trace(), kTrace);
    EXPECT_LE(view.window().begin, us(0));
    EXPECT_GE(view.window().end, us(1000));
    EXPECT_FALSE(view.selection());
    EXPECT_EQ(view.focus(), kTrace) << "without a selection panels talk about everything";
}

TEST(ViewState, ZoomingNeverFilters) {
    ViewState view;
    view.reset(kTrace);
    view.select({us(100), us(200)});
    QSignalSpy selection(&view, &ViewState::selectionChanged);
    view.setWindow({us(400), us(500)});
    EXPECT_EQ(view.focus(), (TimeRange{us(100), us(200)}));
    EXPECT_EQ(selection.count(), 0);
}

TEST(ViewState, BackAndForwardGoThroughJumpsAndTakeAMovementAsOne) {
    ViewState view;
    view.reset(kTrace);
    const TimeRange whole = view.window();
    view.setWindow({us(100), us(200)});
    for (int i = 1; i <= 20; ++i) view.setWindow({us(100 + i), us(200 + i)}, ViewState::Move::Continuous);
    view.goBack();
    EXPECT_EQ(view.window(), (TimeRange{us(100), us(200)}));
    view.goBack();
    EXPECT_EQ(view.window(), whole);
    EXPECT_FALSE(view.canGoBack());
    view.goForward();
    view.goForward();
    EXPECT_EQ(view.window(), (TimeRange{us(120), us(220)}));
}

TEST(ViewState, AnEmptyRangeClearsTheSelectionAndTellsOnce) {
    ViewState view;
    view.reset(kTrace);
    QSignalSpy spy(&view, &ViewState::selectionChanged);
    view.select({us(10), us(20)}, {3, 1});
    view.select({us(10), us(20)}, {1, 3});
    EXPECT_EQ(spy.count(), 1) << "the same range and tracks again";
    EXPECT_EQ(view.tracks(), (std::vector<std::uint32_t>{1, 3}));
    view.select({us(5), us(5)});
    EXPECT_FALSE(view.selection());
    EXPECT_TRUE(view.tracks().empty());
}

TEST(ViewState, ARenewedTraceKeepsAZoomedWindowAndCutsTheSelection) {
    ViewState view;
    view.reset(kTrace);
    view.setWindow({us(100), us(200)});
    view.select({us(700), us(900)});
    view.selectSlice(5);
    view.renew({us(0), us(800)});
    EXPECT_EQ(view.window(), (TimeRange{us(100), us(200)}));
    EXPECT_EQ(view.selection(), (TimeRange{us(700), us(800)}));
    EXPECT_FALSE(view.slice()) << "its number means nothing in another trace";

    ViewState whole;
    whole.reset(kTrace);
    whole.renew({us(0), us(500)});
    EXPECT_EQ(whole.window(), wholeTrace({us(0), us(500)})) << "who saw everything sees everything";
}

}  // namespace
}  // namespace ringside::gui
