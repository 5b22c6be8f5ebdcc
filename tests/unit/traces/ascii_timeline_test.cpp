#include "traces/terminal/ascii_timeline.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "small_trace.h"

namespace ringside {
namespace {

/// Characters on the screen: UTF-8 bytes that do not continue a character.
std::size_t screenWidth(const std::string& line) {
    std::size_t width = 0;
    for (const char c : line) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return width;
}

std::vector<std::string> linesOf(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

// The step is 82 µs and the picture has 60 − 7 − 3 = 50 columns of 1.64 µs. Compute starts at 2 µs: column 1, which it fills to
// (3.28 − 2) / 1.64 = 78 % ≈ 6/8. The all-reduce runs under backward until 62 µs and is exposed for 10 µs, until column 43.9.
TEST(AsciiTimeline, DrawsTheSmallTraceWithBlocks) {
    EXPECT_EQ(asciiTimeline(smallTrace(), {.width = 60}),
              "          ├ forward ─┤├────── backward ───────┤     ├optim┤\n"
              "host    │███████▍                                          │\n"
              "compute │ ▊███████████████████████████████████▊     ▏██████│\n"
              "nccl    │                         ▍█████████████████▉      │\n"
              "exposed │                                     ▎█████▉      │\n"
              "        └┴───────────┴───────────┴───────────┴───────────┴─┘\n"
              "         0           20 µs       40 µs       60 µs\n"
              "         step 82.0 µs, one column 1.64 µs; █ all busy, ▍ partly\n");
}

TEST(AsciiTimeline, HasAPlainForm) {
    const std::string text = asciiTimeline(smallTrace(), {.width = 60, .unicode = false});
    EXPECT_EQ(text,
              "          < forward -><------ backward ------->     <optim>\n"
              "host    |#######-                                          |\n"
              "compute | =###################################=     .######|\n"
              "nccl    |                         -##################      |\n"
              "exposed |                                     .######      |\n"
              "        ++-----------+-----------+-----------+-----------+-+\n"
              "         0           20 us       40 us       60 us\n"
              "         step 82.0 us, one column 1.64 us; # all busy, - partly\n");
    for (const char c : text) EXPECT_LT(static_cast<unsigned char>(c), 128);
}

TEST(AsciiTimeline, NeverGoesBeyondTheWidth) {
    for (int width = 64; width < 200; width += 7)
        for (const std::string& line : linesOf(asciiTimeline(smallTrace(), {.width = width}))) EXPECT_LE(screenWidth(line), static_cast<std::size_t>(width)) << line;
}

TEST(AsciiTimeline, ColoursChangeNothingButColours) {
    std::string coloured = asciiTimeline(smallTrace(), {.width = 80, .colour = true});
    EXPECT_NE(coloured.find("\x1b[32m"), std::string::npos);
    for (std::size_t at; (at = coloured.find('\x1b')) != std::string::npos;) coloured.erase(at, coloured.find('m', at) - at + 1);
    const auto plain = linesOf(asciiTimeline(smallTrace(), {.width = 80})), stripped = linesOf(coloured);
    ASSERT_EQ(plain.size(), stripped.size());
    // The legend, the last line, also names the colours.
    for (std::size_t i = 0; i + 1 < plain.size(); ++i) EXPECT_EQ(stripped[i], plain[i]);
    EXPECT_NE(stripped.back().find("communication"), std::string::npos);
}

TEST(AsciiTimeline, ASliceMuchShorterThanAColumnStillShows) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 0, TrackKind::Compute, "gpu");
    builder.addSlice(track, us(50), Time::fromPicoseconds(1), SliceCategory::Compute, builder.internName("blip"));
    builder.addSlice(track, us(99), us(1), SliceCategory::Compute, builder.internName("end"));
    const std::string row = linesOf(asciiTimeline(builder.build(), {.width = 60, .unicode = false})).at(0);
    EXPECT_EQ(std::count(row.begin(), row.end(), '.'), 1) << row;
}

TEST(AsciiTimeline, SaysSoWhenARankHasNothing) {
    EXPECT_EQ(asciiTimeline(Trace{}, {}), "rank 0 has nothing to show\n");
    EXPECT_EQ(asciiTimeline(smallTrace(), {.rank = 9}), "rank 9 has nothing to show\n");
}

}  // namespace
}  // namespace ringside
