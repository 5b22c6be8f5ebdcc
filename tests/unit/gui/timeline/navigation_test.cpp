// How a window moves over a trace.
#include <gtest/gtest.h>

#include "gui/timeline/navigation.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }
const TimeRange kTrace = {us(0), us(1000)};

TEST(Navigation, ZoomKeepsTheInstantUnderTheCursorInPlace) {
    // [200, 600) with the cursor at 300, a quarter from the left; half as long is [250, 450), where 300 is a quarter from the left again.
    EXPECT_EQ(zoomAt({us(200), us(600)}, us(300), 0.5, kTrace), (TimeRange{us(250), us(450)}));
    EXPECT_EQ(zoomAt({us(250), us(450)}, us(300), 2, kTrace), (TimeRange{us(200), us(600)}));
}

TEST(Navigation, ZoomStopsAtTheNarrowestWindowAndAtTheWholeTrace) {
    TimeRange window = {us(200), us(600)};
    for (int i = 0; i < 200; ++i) window = zoomAt(window, us(300), 0.5, kTrace);
    EXPECT_EQ(window.length(), kNarrowestWindow);
    EXPECT_TRUE(window.begin <= us(300) && us(300) <= window.end);
    for (int i = 0; i < 200; ++i) window = zoomAt(window, us(300), 2, kTrace);
    // A twentieth of 1000 µs on each side.
    EXPECT_EQ(window, (TimeRange{us(-50), us(1050)}));
}

TEST(Navigation, PanStopsAtTheBordersWithoutChangingTheZoom) {
    EXPECT_EQ(panBy({us(100), us(200)}, 0.5, kTrace), (TimeRange{us(150), us(250)}));
    EXPECT_EQ(panBy({us(100), us(200)}, -50, kTrace), (TimeRange{us(-50), us(50)}));
    EXPECT_EQ(panBy({us(100), us(200)}, 50, kTrace), (TimeRange{us(950), us(1050)}));
}

TEST(Navigation, FCentresFirstAndFitsThen) {
    const TimeRange slice = {us(500), us(520)};
    const TimeRange centred = centreThenFit({us(0), us(100)}, slice, kTrace);
    EXPECT_EQ(centred, (TimeRange{us(460), us(560)}));
    // A tenth of 20 µs on each side.
    EXPECT_EQ(centreThenFit(centred, slice, kTrace), (TimeRange{us(498), us(522)}));
}

TEST(Navigation, ATraceOfOneInstantCanBeShownAndZoomed) {
    const TimeRange instant = {us(5), us(5)};
    const TimeRange window = wholeTrace(instant);
    EXPECT_GE(window.length(), kNarrowestWindow);
    EXPECT_TRUE(window.contains(us(5)));
    EXPECT_TRUE(zoomAt(window, us(5), 0.1, instant).contains(us(5)));
}

TEST(Navigation, TimesNearTheEndOfTheClockDoNotOverflow) {
    const TimeRange late = {Time::fromSeconds(4.0e6), Time::fromSeconds(4.5e6)};
    TimeRange window = wholeTrace(late);
    for (int i = 0; i < 100; ++i) window = zoomAt(window, late.begin, 0.5, late);
    EXPECT_EQ(window.length(), kNarrowestWindow);
    EXPECT_LE(window.begin, late.begin);
    EXPECT_GE(window.end, late.begin);
}

TEST(Navigation, AHeldKeyGetsFourTimesAsFast) {
    EXPECT_DOUBLE_EQ(heldKeySpeed(1.0) / heldKeySpeed(0.0), 4.0);
    EXPECT_DOUBLE_EQ(heldKeySpeed(7.0), heldKeySpeed(1.0));
}

TEST(WindowHistory, GoingSomewhereElseForgetsWhatLayAhead) {
    WindowHistory history;
    const TimeRange a = {us(0), us(1)}, b = {us(1), us(2)}, c = {us(2), us(3)};
    history.clear(a);
    history.visit(b, false);
    EXPECT_EQ(history.back(), a);
    history.visit(c, false);
    EXPECT_FALSE(history.canGoForward());
    EXPECT_EQ(history.back(), a);
}

}  // namespace
}  // namespace ringside::gui
