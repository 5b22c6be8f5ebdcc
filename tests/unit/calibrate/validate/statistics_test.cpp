#include "calibrate/validate/statistics.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

ValidationRow row(const std::string& model, const std::string& strategy, double predicted, double measured, double noise = 0) {
    ValidationRow out;
    out.model = model;
    out.strategy = strategy;
    out.ranks = 2;
    out.predicted = predicted;
    out.p10 = predicted * 0.95;
    out.p90 = predicted * 1.05;
    out.measured = measured;
    out.noiseFloor = noise;
    return out;
}

TEST(ValidationError, IsSignedAndRelativeToTheMeasurement) {
    EXPECT_DOUBLE_EQ(row("m", "ddp", 0.110, 0.100).error(), 0.110 / 0.100 - 1);  // too slow: +10 %
    EXPECT_NEAR(row("m", "ddp", 0.090, 0.100).error(), -0.1, 1e-12);
    EXPECT_NEAR(*Compared({"x", 2, 4}).error(), -0.5, 1e-12);
    EXPECT_FALSE(Compared({"x", 2, 0}).error().has_value());  // nothing was measured: no error to speak of
}

TEST(ValidationBand, HoldsItsBordersAndNothingOutside) {
    // 100 ms predicted, band 95 to 105 ms.
    EXPECT_TRUE(row("m", "ddp", 0.1, 0.1 * 0.95).inBand());
    EXPECT_TRUE(row("m", "ddp", 0.1, 0.1 * 1.05).inBand());
    EXPECT_FALSE(row("m", "ddp", 0.1, 0.0949).inBand());
    EXPECT_FALSE(row("m", "ddp", 0.1, 0.1051).inBand());
}

TEST(NoiseFloor, IsHalfTheRangeOfTheRoundsOverTheirMedian) {
    const double rounds[] = {0.100, 0.104, 0.098};
    // (104 − 98) / 2 / 100 = 3 %
    EXPECT_NEAR(relativeHalfWidth(rounds), 0.03, 1e-12);
    EXPECT_NEAR(noiseFloorOf({{0.1}, {0.104}, {0.098}}, rounds), 0.03, 1e-12);
}

TEST(NoiseFloor, OfOneRoundComparesItsEvenAndOddSteps) {
    const double rounds[] = {0.101};
    // Even steps: 100, 100, 100; odd steps: 104, 104. Half of 4 over the median 102.
    EXPECT_NEAR(noiseFloorOf({{0.100, 0.104, 0.100, 0.104, 0.100}}, rounds), 0.002 / 0.102, 1e-12);
    EXPECT_EQ(noiseFloorOf({{0.1}}, rounds), 0);  // one step repeats nothing
    EXPECT_EQ(relativeHalfWidth({}), 0);
}

TEST(ValidationSummary, HasMeanAbsoluteErrorWorstCoverageAndTheMedianNoise) {
    // Errors +10 %, −20 %, 0 %: mean absolute 10 %, mean −3.3 %, worst 20 %; one of three lies in its band of 5 %.
    const std::vector<ValidationRow> rows = {row("a", "ddp", 0.110, 0.100, 0.01), row("b", "ddp", 0.080, 0.100, 0.05), row("a", "naive", 0.100, 0.100, 0.02)};
    const ValidationSummaries summaries = summariesOf(rows);
    EXPECT_EQ(summaries.all.rows, 3U);
    EXPECT_NEAR(summaries.all.mape, 0.1, 1e-12);
    EXPECT_NEAR(summaries.all.bias, -0.1 / 3, 1e-12);
    EXPECT_NEAR(summaries.all.worst, 0.2, 1e-12);
    EXPECT_NEAR(summaries.all.coverage, 1.0 / 3, 1e-12);
    EXPECT_NEAR(summaries.all.noiseFloor, 0.02, 1e-12);
    ASSERT_EQ(summaries.strategies.size(), 2U);
    EXPECT_EQ(summaries.strategies[0].first, "ddp");
    EXPECT_NEAR(summaries.strategies[0].second.mape, 0.15, 1e-12);
    EXPECT_EQ(summaries.strategies[1].second.rows, 1U);
}

TEST(ValidationOrder, CountsOnlyPairsOfOneModelThatDifferByMoreThanTheirNoise) {
    const std::vector<ValidationRow> rows = {
        row("a", "naive", 0.130, 0.120, 0.01),  // slower than ddp, predicted so
        row("a", "ddp", 0.100, 0.100, 0.01),
        row("a", "zero1", 0.090, 0.1015, 0.01),  // within the noise of ddp (1.5 ms of 2): not counted; faster than naive: right
        row("a", "fsdp2", 0.095, 0.200, 0.01),   // the slowest, predicted faster than naive and ddp: two wrong; against zero1 right
        row("b", "ddp", 0.500, 0.010, 0.01),     // another model
    };
    const OrderCount order = summariesOf(rows).all.order;
    EXPECT_EQ(order.pairs, 5);
    EXPECT_EQ(order.right, 3);
}

}  // namespace
}  // namespace ringside
