// Time to pixel and back, and the ruler.
#include <gtest/gtest.h>

#include "gui/timeline/time_axis.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }
Time ps(std::int64_t t) { return Time::fromPicoseconds(t); }

TEST(TimeAxis, PixelsAndTimesAreEachOthersInverse) {
    const TimeAxis axis({us(100), us(300)}, 1000);
    EXPECT_DOUBLE_EQ(axis.toX(us(150)), 250);  // 50 of 200 µs over 1,000 pixels
    EXPECT_EQ(axis.toTime(250), us(150));
    EXPECT_DOUBLE_EQ(axis.widthOf(us(1)), 5);
}

TEST(TimeAxis, ANanosecondAMonthIntoATraceIsStillANanosecondWide) {
    const Time late = Time::fromSeconds(30.0 * 86400);
    const TimeAxis axis({late, late + Time::fromNanoseconds(10)}, 1000);
    EXPECT_DOUBLE_EQ(axis.toX(late + Time::fromNanoseconds(1)), 100);
    EXPECT_EQ(axis.toTime(100), late + Time::fromNanoseconds(1));
}

TEST(Ruler, TicksAreRoundAndFarEnoughApart) {
    // 1 ms over 1,000 pixels, 80 apart: at least 80 µs, so every 100 µs; 0 to 1 ms are eleven of them.
    const auto ticks = rulerTicks(TimeAxis({us(0), us(1000)}, 1000), 80);
    ASSERT_EQ(ticks.size(), 11U);
    EXPECT_EQ(ticks[1].at, us(100));
    EXPECT_EQ(ticks[1].label, "0.1 ms");
    EXPECT_EQ(ticks[10].label, "1.0 ms");
}

TEST(Ruler, DeepZoomsCountInTheSmallerUnitInsteadOfManyDecimals) {
    // 1 µs in sight at 5 ms: steps of 100 ns would need four decimals of a millisecond.
    const auto ticks = rulerTicks(TimeAxis({us(5000), us(5001)}, 1000), 80);
    EXPECT_EQ(ticks[1].label, "5,000.1 µs");
}

TEST(Ruler, BeforeZeroThereIsAMinus) {
    const auto ticks = rulerTicks(TimeAxis({us(-20), us(20)}, 400), 80);
    EXPECT_EQ(ticks.front().label, "−20 µs");
}

TEST(Ruler, TheNarrowestWindowHasTicksToo) {
    EXPECT_GE(rulerTicks(TimeAxis({ps(0), ps(2000)}, 1920), 80).size(), 2U);
}

TEST(FormatInstant, IsExactToTheNanosecond) {
    EXPECT_EQ(formatInstant(ps(12'345'678'000)), "12.345678 ms");
    EXPECT_EQ(formatInstant(ps(1'500'000)), "1.500 µs");
    EXPECT_EQ(formatInstant(ps(0)), "0 s");
}

}  // namespace
}  // namespace ringside::gui
