#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/layout.h"

namespace ringside {
namespace {

using ::testing::ElementsAre;

// Five rows of 3, and a vector of 4.
const std::vector<ProgramParameter> kParameters = {{0, 0, 15, 3}, {0, 1, 4, 1}};

TEST(Layout, OfPackedTensorsHasThemOneAfterAnother) {
    const std::uint32_t order[] = {1, 0};
    EXPECT_THAT(segmentsOf(packed(order, kParameters), kParameters, 1, 0), ElementsAre(Segment{1, 0, 4, 0}, Segment{0, 0, 15, 4}));
}

// 20 elements with a gap before the vector, over 2 ranks: 10 each; the second begins in row 3 of the matrix.
TEST(Layout, CutFlatGoesThroughTensorsAndGaps) {
    Layout layout;
    layout.pieces = {{0, 0}, {1, 16}};
    layout.elements = 20;
    layout.cut = Cut::Flat;
    EXPECT_THAT(segmentsOf(layout, kParameters, 2, 0), ElementsAre(Segment{0, 0, 10, 0}));
    EXPECT_THAT(segmentsOf(layout, kParameters, 2, 1), ElementsAre(Segment{0, 10, 5, 0}, Segment{1, 0, 4, 6}));
    layout.gathered = true;
    EXPECT_THAT(segmentsOf(layout, kParameters, 2, 1), ElementsAre(Segment{0, 0, 15, 0}, Segment{1, 0, 4, 16}));
}

// 5 rows over 4 ranks: 2, 2, 1 and none; each keeps room for 2.
TEST(Layout, CutByRowsLeavesTheLastRanksLessOrNothing) {
    Layout layout;
    layout.pieces = {{0, 0}, {1, 0}};
    layout.cut = Cut::EachRow;
    EXPECT_THAT(segmentsOf(layout, kParameters, 4, 1), ElementsAre(Segment{0, 6, 6, 0}, Segment{1, 1, 1, 6}));
    EXPECT_THAT(segmentsOf(layout, kParameters, 4, 2), ElementsAre(Segment{0, 12, 3, 0}, Segment{1, 2, 1, 6}));
    EXPECT_THAT(segmentsOf(layout, kParameters, 4, 3), ElementsAre(Segment{1, 3, 1, 6}));
}

// Gathered, a rank's part of every tensor comes before the next rank's: 7 elements each.
TEST(Layout, GatheredHasOneRankAfterAnother) {
    Layout layout;
    layout.pieces = {{0, 0}, {1, 0}};
    layout.cut = Cut::EachRow;
    layout.gathered = true;
    EXPECT_THAT(segmentsOf(layout, kParameters, 4, 0),
                ElementsAre(Segment{0, 0, 6, 0}, Segment{1, 0, 1, 6}, Segment{0, 6, 6, 7}, Segment{1, 1, 1, 13}, Segment{0, 12, 3, 14}, Segment{1, 2, 1, 20}, Segment{1, 3, 1, 27}));
}

// Padded to a multiple of 4, the 5 rows are 8: two ranks have 4 each, not 3.
TEST(Layout, PaddedToMoreRanksIsCutWithItsPadding) {
    Layout layout;
    layout.pieces = {{0, 0}};
    layout.cut = Cut::EachRow;
    EXPECT_THAT(segmentsOf(layout, kParameters, 2, 1), ElementsAre(Segment{0, 9, 6, 0}));
    layout.paddedTo = 4;
    EXPECT_THAT(segmentsOf(layout, kParameters, 2, 1), ElementsAre(Segment{0, 12, 3, 0}));
}

TEST(Layout, ThatIsAViewBeginsInsideItsBuffer) {
    Layout layout;
    layout.pieces = {{1, 0}};
    layout.cut = Cut::EachRow;
    layout.start = 6;
    EXPECT_THAT(segmentsOf(layout, kParameters, 4, 2), ElementsAre(Segment{1, 2, 1, 6}));
}

}  // namespace
}  // namespace ringside
