#include "calibrate/published/statistics.h"

#include <cmath>

#include <gtest/gtest.h>

namespace ringside {
namespace {

Judgement row(double predicted, double measured, const std::string& sweep = "") {
    Judgement out;
    out.predicted = out.predictedCost = predicted;
    out.measured = out.measuredCost = measured;
    out.sweep = sweep;
    return out;
}

GroupSummary summary(const std::vector<Judgement>& rows) {
    std::vector<const Judgement*> all;
    for (const Judgement& one : rows) all.push_back(&one);
    return summaryOf(all);
}

TEST(PublishedSummary, CountsErrorsAsAPersonWould) {
    // Errors +10 %, −20 %, +30 %, 0 %: mean of the absolutes 15 %, median 15 %, mean with signs 5 %, worst 30 %.
    // P90 of {0, 10, 20, 30}: position 0.9 × 3 = 2.7, that is 20 + 0.7 × 10 = 27 %.
    const GroupSummary s = summary({row(110, 100), row(80, 100), row(130, 100), row(100, 100)});
    EXPECT_EQ(s.n, 4U);
    EXPECT_NEAR(s.mape, 0.15, 1e-12);
    EXPECT_NEAR(s.median, 0.15, 1e-12);
    EXPECT_NEAR(s.p90, 0.27, 1e-12);
    EXPECT_NEAR(s.worst, 0.30, 1e-12);
    EXPECT_NEAR(s.bias, 0.05, 1e-12);
    EXPECT_FALSE(s.spearman);  // no sweep
    EXPECT_FALSE(s.coverage);  // no band
}

TEST(PublishedSummary, CoversTheRowsThatHaveABand) {
    Judgement in = row(100, 104), out = row(100, 111), without = row(100, 100);
    in.p10 = out.p10 = 95;
    in.p90 = out.p90 = 105;
    EXPECT_EQ(in.inBand(), true);
    EXPECT_EQ(out.inBand(), false);
    EXPECT_FALSE(without.inBand());
    EXPECT_DOUBLE_EQ(*summary({in, out, without}).coverage, 0.5);
}

TEST(Spearman, ComparesRanksAndSharesThemAmongEquals) {
    const double a[] = {1, 2, 3, 4}, b[] = {10, 20, 40, 30}, same[] = {5, 5, 5, 5}, ties[] = {1, 1, 2, 3};
    // Ranks 0 1 2 3 against 0 1 3 2: 1 − 6·(0+0+1+1) / (4·15) = 0.8.
    EXPECT_NEAR(*spearman(a, b), 0.8, 1e-12);
    EXPECT_NEAR(*spearman(a, a), 1, 1e-12);
    EXPECT_FALSE(spearman(a, same));
    // Ranks 0 1 2 3 against 0.5 0.5 2 3: covariance 1.5·1 + 0.5·1 + 0.5·0.5 + 1.5·1.5 = 4.5; variances 5 and 4.5.
    EXPECT_NEAR(*spearman(a, ties), 4.5 / std::sqrt(5 * 4.5), 1e-12);
}

TEST(PublishedSummary, OrdersWithinEachSweepAndWeighsSweepsByTheirRows) {
    // Sweep a: three rows in order (1). Sweep b: four rows, one pair swapped (0.8). Sweep c: two rows are too few.
    const std::vector<Judgement> rows = {row(1, 10, "a"), row(2, 20, "a"), row(3, 30, "a"), row(1, 10, "b"), row(2, 20, "b"), row(3, 40, "b"), row(4, 30, "b"), row(2, 1, "c"), row(1, 2, "c")};
    EXPECT_NEAR(*summary(rows).spearman, (3 * 1.0 + 4 * 0.8) / 7, 1e-12);
}

TEST(PublishedSummary, CountsPairsInOrderOnlyWhereTheyAreFurtherApartThanRepeats) {
    // 100 and 102 are as good as equal; 100 and 110, 102 and 110 are not, and the first of these two pairs is the wrong way round.
    const GroupSummary s = summary({row(3, 100, "a"), row(1, 102, "a"), row(2, 110, "a")});
    EXPECT_EQ(s.pairs, 2U);
    EXPECT_DOUBLE_EQ(*s.ordered, 0.5);
    EXPECT_FALSE(summary({row(3, 100, "a"), row(1, 102, "a"), row(2, 150, "b")}).ordered);
    EXPECT_DOUBLE_EQ(*summary({row(1, 100, "a"), row(2, 110, "a")}).ordered, 1);  // two are enough
    EXPECT_DOUBLE_EQ(*summary({row(2, 100, "a"), row(2, 110, "a")}).ordered, 0);  // the same for both is no order
}

// Three machines with one configuration (100, 120 and 144: mean 120), two other configurations. As five rows the repeats would be ordered by chance.
TEST(PublishedSummary, TakesRowsOfOneConfigurationAsRepeats) {
    std::vector<Judgement> rows = {row(2, 100, "a"), row(2, 120, "a"), row(2, 144, "a"), row(1, 119, "a"), row(3, 121, "a")};
    EXPECT_LT(*summary(rows).spearman, 0.5);
    for (std::size_t i = 0; i < 3; ++i) rows[i].configuration = "eight devices";
    EXPECT_NEAR(*summary(rows).spearman, 1, 1e-12);
}

TEST(Quantile, LiesBetweenItsNeighbours) {
    EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
    EXPECT_DOUBLE_EQ(quantile({1, 2}, 0.25), 1.25);
    EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
    EXPECT_DOUBLE_EQ(quantile({1, 2}, 1), 2);
}

}  // namespace
}  // namespace ringside
