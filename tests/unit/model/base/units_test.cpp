#include "model/base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ringside {
namespace {

TEST(Time, RoundsSecondsToTheNearestPicosecond) {
    // 1.4 ps → 1 ps, 1.6 ps → 2 ps, and the same away from zero.
    EXPECT_EQ(Time::fromSeconds(1.4e-12).picoseconds(), 1);
    EXPECT_EQ(Time::fromSeconds(1.6e-12).picoseconds(), 2);
    EXPECT_EQ(Time::fromSeconds(-1.6e-12).picoseconds(), -2);
}

TEST(Time, SaturatesInsteadOfOverflowing) {
    // 1e9 s = 1e21 ps does not fit in 63 bits.
    EXPECT_EQ(Time::fromSeconds(1e9), Time::max());
    EXPECT_EQ(Time::fromSeconds(-1e9).picoseconds(), -Time::max().picoseconds());
    EXPECT_GT((Time::max() + Time::max()).picoseconds(), 0);
}

TEST(Time, UnitsAgree) {
    EXPECT_EQ(Time::fromNanoseconds(3), Time::fromPicoseconds(3000));
    EXPECT_EQ(Time::fromMicroseconds(2.5), Time::fromPicoseconds(2'500'000));
    EXPECT_DOUBLE_EQ(Time::fromPicoseconds(2'500'000).microseconds(), 2.5);
}

TEST(Time, SecondsRoundTripForAnyMicrosecondCount) {
    // Ten minutes are 6·10¹⁴ ps, well inside the 2⁵³ ≈ 9·10¹⁵ that a double counts exactly.
    EXPECT_TRUE(rc::check("fromSeconds(seconds()) is the identity below ten minutes", [] {
        const auto us = *rc::gen::inRange<std::int64_t>(0, 600'000'000);
        const Time t = Time::fromPicoseconds(us * 1'000'000);
        RC_ASSERT(Time::fromSeconds(t.seconds()) == t);
    }));
}

TEST(FormatTime, HasThreeSignificantDigits) {
    EXPECT_EQ(formatTime(Time::fromNanoseconds(412)), "412 ns");
    EXPECT_EQ(formatTime(Time::fromMicroseconds(36.24)), "36.2 µs");
    EXPECT_EQ(formatTime(Time::fromSeconds(1.274e-3)), "1.27 ms");
    EXPECT_EQ(formatTime(Time::fromSeconds(3.406)), "3.41 s");
    EXPECT_EQ(formatTime(Time()), "0 s");
}

TEST(FormatTime, ChangesUnitBeforeAFourthDigitAppears) {
    // 999.6 µs would print as "1000 µs".
    EXPECT_EQ(formatSeconds(999.6e-6), "1.00 ms");
    EXPECT_EQ(formatSeconds(999.4e-6), "999 µs");
    EXPECT_EQ(formatSeconds(7200), "120 min");
}

TEST(FormatBytes, UsesPowersOf1024) {
    EXPECT_EQ(formatBytes(512), "512 B");
    EXPECT_EQ(formatBytes(4096), "4.00 KiB");
    EXPECT_EQ(formatBytes(kGiB * 234 / 10), "23.4 GiB");
    EXPECT_EQ(formatBytes(-4096), "-4.00 KiB");
    EXPECT_EQ(formatBytes(3 * 1024 * kGiB), "3.00 TiB");
}

TEST(FormatCount, GroupsByThousands) {
    EXPECT_EQ(formatCount(0), "0");
    EXPECT_EQ(formatCount(999), "999");
    EXPECT_EQ(formatCount(1000), "1,000");
    EXPECT_EQ(formatCount(1234567), "1,234,567");
    EXPECT_EQ(formatCount(-1234567), "-1,234,567");
}

TEST(FormatShortCount, UsesTheShortScale) {
    EXPECT_EQ(formatShortCount(1.558e9), "1.56 B");
    EXPECT_EQ(formatShortCount(124e6), "124 M");
    EXPECT_EQ(formatShortCount(42), "42");
    EXPECT_EQ(formatShortCount(12345), "12.3 k");
}

TEST(ParseSize, ReadsPowersOf1024) {
    EXPECT_EQ(parseSize("4096"), 4096);
    EXPECT_EQ(parseSize("64K"), 64 * kKiB);
    EXPECT_EQ(parseSize("25M"), 25 * kMiB);
    EXPECT_EQ(parseSize("1G"), kGiB);
    EXPECT_EQ(parseSize("1.5MiB"), kMiB * 3 / 2);
    EXPECT_EQ(parseSize("512B"), 512);
}

TEST(ParseSize, IsNegativeForWhatIsNotASize) {
    for (const char* text : {"", "M", "25X", "25MM", "-1", "1e30", "nan"}) EXPECT_LT(parseSize(text), 0) << text;
}

}  // namespace
}  // namespace ringside
