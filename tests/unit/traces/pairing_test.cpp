#include "traces/analysis/pairing.h"

#include <gtest/gtest.h>

#include "small_trace.h"

namespace ringside {
namespace {

Trace ofRank(std::int64_t rank, std::initializer_list<std::pair<const char*, std::int64_t>> slices, SliceCategory category = SliceCategory::Compute) {
    TraceBuilder builder;
    const auto track = builder.addTrack(rank, 1, TrackKind::Compute, "compute");
    double at = 0;
    for (const auto& [name, task] : slices) builder.addSlice(track, us(at += 10), us(5), category, builder.internName(name), task);
    return builder.build();
}

TEST(PairedRanks, AreThoseBothHaveOrTheFirstOfEach) {
    const Trace both = smallTrace();  // ranks 0 and 1
    EXPECT_EQ(pairedRanks(both, both), (RankPairs{{0, 0}, {1, 1}}));
    EXPECT_EQ(pairedRanks(both, ofRank(1, {{"k", 0}})), (RankPairs{{1, 1}}));
    EXPECT_EQ(pairedRanks(both, ofRank(5, {{"k", 0}})), (RankPairs{{0, 5}}));
    EXPECT_TRUE(pairedRanks(both, Trace()).empty());
}

TEST(AreOfOneSchedule, WhereIdsAreTheSameWorkOrNearlyAllCarryTheSameName) {
    const auto joined = [](const Trace& a, const Trace& b) { return areOfOneSchedule(a, b, pairedRanks(a, b)); };
    const Trace predicted = ofRank(0, {{"forward mlp", 0}, {"backward mlp", 1}});
    EXPECT_TRUE(joined(predicted, ofRank(0, {{"gemm", 0}, {"gemm", 1}}))) << "each side may call them as it likes";
    EXPECT_TRUE(joined(predicted, ofRank(3, {{"gemm", 0}, {"gemm", 1}}))) << "of ranks that are compared with each other";
    EXPECT_FALSE(joined(predicted, ofRank(0, {{"gemm", 0}, {"gemm", 1}}, SliceCategory::Communication)));
    EXPECT_FALSE(joined(predicted, ofRank(0, {{"gemm", 0}, {"gemm", 1}, {"norm", 2}})));
    EXPECT_FALSE(joined(ofRank(0, {{"gemm", -1}}), ofRank(0, {{"gemm", -1}}))) << "without ids";
    // A run that lost one task of twelve.
    std::initializer_list<std::pair<const char*, std::int64_t>> all = {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}, {"e", 4}, {"f", 5}, {"g", 6}, {"h", 7}, {"i", 8}, {"j", 9}, {"k", 10}, {"l", 11}};
    EXPECT_TRUE(joined(ofRank(0, all), ofRank(0, {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}, {"e", 4}, {"f", 5}, {"g", 6}, {"h", 7}, {"i", 8}, {"j", 9}, {"k", 10}})));
}

TEST(AlignedSteps, HaveTheSameNumberWhereBothAreMarked) {
    const auto steps = [](StepSource source, std::initializer_list<std::int64_t> numbers) {
        Steps made;
        made.source = source;
        for (const std::int64_t number : numbers) made.steps.push_back({number, us(double(number)), us(double(number) + 1)});
        return made;
    };
    using Places = std::vector<std::pair<std::size_t, std::size_t>>;
    EXPECT_EQ(alignedSteps(steps(StepSource::Marks, {1, 2, 3}), steps(StepSource::Marks, {2, 3, 4})), (Places{{1, 0}, {2, 1}}));
    EXPECT_EQ(alignedSteps(steps(StepSource::Marks, {1, 2}), steps(StepSource::Marks, {7, 8, 9})), (Places{{0, 0}, {1, 1}})) << "none in common";
    EXPECT_EQ(alignedSteps(steps(StepSource::Marks, {1, 2}), steps(StepSource::Whole, {0})), (Places{{0, 0}}));
}

}  // namespace
}  // namespace ringside
