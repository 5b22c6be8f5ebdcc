#include "traces/import/merge_ranks.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "traces/trace_builder.h"

namespace ringside {
namespace {

using testing::HasSubstr;

Time us(double microseconds) { return Time::fromMicroseconds(microseconds); }

/// Ten all-reduces that end every 100 µs; the rank got to each `early` µs before its end. Times read from a clock that is `offset` ahead.
ImportedTrace rankFile(std::int64_t rank, double early, double offset, const char* op = "allreduce", double noise = 0) {
    TraceBuilder builder;
    builder.setWorldSize(2);
    const auto track = builder.addTrack(rank, 20, TrackKind::Communication, "nccl");
    for (int i = 0; i < 10; ++i) {
        const auto details = builder.addCollective({.op = op, .elements = 100, .dtype = "Float", .bytes = 400, .groupSize = 2, .sequence = i, .algorithm = "", .protocol = ""});
        builder.addSlice(track, us(100 * (i + 1) - early + offset + (i % 2 == 0 ? noise : -noise)), us(early), SliceCategory::Communication, builder.internName(op), -1, details);
    }
    builder.addCounter({rank, "memory", {"x"}, {us(offset)}, {1}});
    ImportedTrace part;
    part.trace = builder.build();
    part.files = {"rank" + std::to_string(rank) + ".json"};
    return part;
}

TEST(MergeRanks, AlignsByTheEndsOfCommonCollectives) {
    std::vector<ImportedTrace> parts;
    parts.push_back(rankFile(0, 50, 0));
    parts.push_back(rankFile(1, 20, 1234.5));
    const ImportedTrace merged = mergeRanks(std::move(parts));
    ASSERT_EQ(merged.trace.size(), 20U);
    ASSERT_EQ(merged.alignment.size(), 2U);
    EXPECT_EQ(merged.alignment[0].method, RankAlignment::Method::Reference);
    EXPECT_EQ(merged.alignment[1].method, RankAlignment::Method::Collectives);
    EXPECT_EQ(merged.alignment[1].shift, us(-1234.5));
    EXPECT_EQ(merged.alignment[1].anchors, 10);
    EXPECT_EQ(merged.alignment[1].residual, Time{});
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(merged.trace.start[i] + merged.trace.duration[i], merged.trace.start[10 + i] + merged.trace.duration[10 + i]);
    EXPECT_EQ(merged.trace.counters[1].at[0], us(0)) << "counters move with their rank";
    ASSERT_EQ(merged.notes.all().size(), 1U);
    EXPECT_THAT(merged.notes.all()[0].what, HasSubstr("rank 1 was moved by −1.23 ms: the median over 10 ends"));
}

TEST(MergeRanks, LeavesAClockThatIsAsGoodAsTheCollectives) {
    std::vector<ImportedTrace> parts;
    parts.push_back(rankFile(0, 50, 0));
    parts.push_back(rankFile(1, 20, 0, "allreduce", 3));
    for (ImportedTrace& part : parts) part.metadata.baseTimeNanoseconds = 1700000000000000000;
    const ImportedTrace merged = mergeRanks(std::move(parts));
    EXPECT_EQ(merged.alignment[1].method, RankAlignment::Method::OwnClock);
    EXPECT_EQ(merged.alignment[1].shift, Time{});
    EXPECT_EQ(merged.alignment[1].residual, us(3));
    EXPECT_THAT(merged.notes.all()[0].what, HasSubstr("agrees with 10 ends of collectives"));
}

TEST(MergeRanks, SaysWhereThereIsNothingToAlignBy) {
    // All ranks need not leave a broadcast together.
    std::vector<ImportedTrace> parts;
    parts.push_back(rankFile(0, 50, 0, "broadcast"));
    parts.push_back(rankFile(1, 20, 777, "broadcast"));
    const ImportedTrace merged = mergeRanks(std::move(parts));
    EXPECT_EQ(merged.alignment[1].method, RankAlignment::Method::None);
    EXPECT_EQ(merged.alignment[1].shift, Time{});
    EXPECT_THAT(merged.notes.all()[0].what, HasSubstr("rank 1 is NOT aligned"));
    EXPECT_THAT(merged.notes.all()[0].what, HasSubstr("must not be compared"));
}

TEST(MergeRanks, UsesClocksSince1970) {
    std::vector<ImportedTrace> parts;
    parts.push_back(rankFile(0, 50, 0, "broadcast"));
    parts.push_back(rankFile(1, 50, 0, "broadcast"));
    parts[0].metadata.baseTimeNanoseconds = 1700000000000005000;
    parts[1].metadata.baseTimeNanoseconds = 1700000000000000000;
    const ImportedTrace merged = mergeRanks(std::move(parts));
    EXPECT_EQ(merged.trace.start[0] - merged.trace.start[10], us(5));
    EXPECT_EQ(merged.metadata.baseTimeNanoseconds, 1700000000000000000);
}

TEST(MergeRanks, NumbersARankThatIsThereTwiceAnew) {
    std::vector<ImportedTrace> parts;
    parts.push_back(rankFile(0, 50, 0));
    parts.push_back(rankFile(0, 50, 0));
    const ImportedTrace merged = mergeRanks(std::move(parts));
    EXPECT_EQ(merged.trace.tracks[1].rank, 1);
    EXPECT_EQ(merged.trace.counters[1].rank, 1);
    EXPECT_THAT(merged.notes.all()[0].what, HasSubstr("already in another file"));
}

TEST(MergeRanks, FindsTheOffsetsOfAnyClocks) {
    EXPECT_TRUE(rc::check("offsets come back within twice the noise", [] {
        const int ranks = *rc::gen::inRange(2, 6);
        std::vector<ImportedTrace> parts;
        std::vector<double> offsets;
        for (int r = 0; r < ranks; ++r) {
            offsets.push_back(*rc::gen::inRange(-100000, 100000));
            parts.push_back(rankFile(r, *rc::gen::inRange(5, 90), offsets.back(), "allreduce", r == 0 ? 0.0 : *rc::gen::inRange(0, 3)));
        }
        const ImportedTrace merged = mergeRanks(std::move(parts));
        for (int r = 0; r < ranks; ++r) {
            const double error = merged.alignment[static_cast<std::size_t>(r)].shift.microseconds() + offsets[static_cast<std::size_t>(r)] - offsets[0];
            RC_ASSERT(std::fabs(error) <= 6);
        }
        for (const Time start : merged.trace.start) RC_ASSERT(start >= Time{});
    }));
}

}  // namespace
}  // namespace ringside
