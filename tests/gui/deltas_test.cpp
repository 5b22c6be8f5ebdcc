// Where two traces differ.
#include "gui/compare/deltas.h"

#include <gtest/gtest.h>

#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }
const TimeRange kAll{Time(), Time::fromSeconds(1)};

struct TraceMaker {
    TraceBuilder builder;
    std::uint32_t track = builder.addTrack(0, 1, TrackKind::Compute, "compute");

    void add(const char* name, double start, double length, std::int64_t task = -1, SliceCategory category = SliceCategory::Compute) {
        builder.addSlice(track, us(start), us(length), category, builder.internName(name), task);
    }
};

TEST(Deltas, SumByNameAndPutTheGreatestChangeFirst) {
    TraceMaker a, b;
    a.add("gemm", 0, 10), a.add("gemm", 10, 10), a.add("norm", 20, 5);
    b.add("gemm", 0, 16), b.add("gemm", 20, 16), b.add("norm", 40, 2), b.add("copy", 50, 1);
    const Deltas deltas = deltasOf(a.builder.build(), kAll, b.builder.build(), kAll);
    ASSERT_EQ(deltas.rows.size(), 3U);
    EXPECT_EQ(deltas.rows[0].name, "gemm");  // 20 → 32 µs
    EXPECT_EQ(deltas.rows[0].change(), us(12));
    EXPECT_EQ(deltas.rows[1].name, "norm");  // 5 → 2 µs
    EXPECT_EQ(deltas.rows[1].change(), us(-3));
    EXPECT_EQ(deltas.rows[2].before, Time());
    EXPECT_EQ(deltas.joinedByTask, 0U);
}

TEST(Deltas, AreJoinedByTaskWhereTheSidesNameItDifferently) {
    TraceMaker predicted, measured;
    predicted.add("forward block.mlp", 0, 10, 7);
    measured.add("ampere_bf16_s16816gemm", 0, 12, 7);
    const Deltas deltas = deltasOf(predicted.builder.build(), kAll, measured.builder.build(), kAll);
    ASSERT_EQ(deltas.rows.size(), 1U);
    EXPECT_EQ(deltas.rows[0].name, "forward block.mlp");
    EXPECT_EQ(deltas.rows[0].change(), us(2));
    EXPECT_EQ(deltas.joinedByTask, 1U);
}

TEST(Deltas, AnIdDoesNotJoinAnotherKindOfWork) {
    TraceMaker a, b;
    a.add("forward block.mlp", 0, 10, 7);
    b.add("all-reduce", 0, 12, 7, SliceCategory::Communication);
    EXPECT_EQ(deltasOf(a.builder.build(), kAll, b.builder.build(), kAll).rows.size(), 2U);
}

TEST(Deltas, IdsOfTwoSchedulesJoinNothing) {
    TraceMaker a, b;
    a.add("all_gather unit 1", 0, 10, 7), a.add("gemm", 20, 10, 8);
    b.add("gather block 1", 0, 12, 7), b.add("gemm", 20, 10, 8), b.add("norm", 40, 10, 9);
    const Deltas deltas = deltasOf(a.builder.build(), kAll, b.builder.build(), kAll);
    EXPECT_EQ(deltas.joinedByTask, 0U);
    EXPECT_EQ(deltas.rows.size(), 4U);
}

TEST(Deltas, LayersTogetherAreOneRow) {
    TraceMaker a, b;
    a.add("all_gather unit 1", 0, 10), a.add("all_gather unit 12", 20, 10);
    b.add("all_gather unit 3", 0, 10);
    const Deltas deltas = deltasOf(a.builder.build(), kAll, b.builder.build(), kAll, true);
    ASSERT_EQ(deltas.rows.size(), 1U);
    EXPECT_EQ(deltas.rows[0].name, "all_gather unit #");
}

TEST(Deltas, CountOnlyWhatStartsInTheRange) {
    TraceMaker a, b;
    a.add("gemm", 0, 10), a.add("gemm", 100, 10);
    b.add("gemm", 0, 10), b.add("gemm", 100, 10);
    const Deltas deltas = deltasOf(a.builder.build(), {Time(), us(50)}, b.builder.build(), kAll);
    EXPECT_EQ(deltas.rows[0].upper.size(), 1U);
    EXPECT_EQ(deltas.rows[0].lower.size(), 2U);
}

TEST(PairedHistogram, HasTheSameBinsForBothSides) {
    DeltaRow row;
    row.upper = {us(1), us(1), us(2)};
    row.lower = {us(5)};
    const PairedHistogram histogram = pairedHistogram(row, 4);  // bins of 1 µs from 1 to 5 µs
    EXPECT_EQ(histogram.upper, (std::vector<std::int64_t>{2, 1, 0, 0}));
    EXPECT_EQ(histogram.lower, (std::vector<std::int64_t>{0, 0, 0, 1}));
    EXPECT_EQ(histogram.most, us(5));
}

}  // namespace
}  // namespace ringside::gui
