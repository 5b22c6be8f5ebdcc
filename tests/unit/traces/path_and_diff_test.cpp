#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "small_trace.h"
#include "traces/analysis/diff.h"
#include "traces/analysis/enclosing.h"
#include "traces/analysis/memory_at.h"
#include "traces/analysis/trace_path.h"

namespace ringside {
namespace {

std::vector<std::string> namesOn(const Trace& trace, const TracePath& path) {
    std::vector<std::string> names;
    for (const PathPiece& piece : path.pieces) names.push_back(piece.slice == kNoSlice ? "-" : trace.names[trace.name[piece.slice]]);
    return names;
}

TEST(TracePath, GoesOverDependenciesStreamsAndTheRankThatCameLast) {
    const Trace trace = smallTrace();
    const TracePath path = tracePath(trace, us(0), us(82));
    // Backwards: the optimizer waited for the all-reduce, that for rank 1, which came at 44. What rank 1's all-reduce waited for nobody
    // says: of its device nothing had ended but forward at 22. Forward was launched from 0 on and began at 2.
    EXPECT_EQ(namesOn(trace, path), (std::vector<std::string>{"launch forward", "forward/layer 0", "-", "bucket 0", "optimizer"}));
    EXPECT_EQ(path.byCategory[static_cast<std::size_t>(SliceCategory::Optimizer)], us(10));
    EXPECT_EQ(path.byCategory[static_cast<std::size_t>(SliceCategory::Communication)], us(28));
    EXPECT_EQ(path.idle, us(22));
}

TEST(TracePath, FollowsAHostThatWaitsToWhatItWaitedFor) {
    TraceBuilder builder;
    const auto host = builder.addTrack(0, 0, TrackKind::Host, "host"), device = builder.addTrack(0, 7, TrackKind::Compute, "compute");
    const auto call = builder.addSlice(host, us(0), us(2), SliceCategory::Host, builder.internName("launch"));
    builder.addSlice(host, us(2), us(18), SliceCategory::Wait, builder.internName("cudaDeviceSynchronize"));
    builder.addSlice(host, us(20), us(5), SliceCategory::Host, builder.internName("log"));
    const auto kernel = builder.addSlice(device, us(3), us(15), SliceCategory::Compute, builder.internName("gemm"));
    builder.addFlow(call, kernel, Flow::Kind::Launch);
    const Trace trace = builder.build();
    const TracePath path = tracePath(trace, us(0), us(25));
    EXPECT_EQ(namesOn(trace, path), (std::vector<std::string>{"launch", "-", "gemm", "cudaDeviceSynchronize", "log"}));
    EXPECT_EQ(path.pieces[3].begin, us(18)) << "only what came after the kernel";
    EXPECT_TRUE(path.pieces[2].isInferred);
}

TEST(TracePath, CountsTheInnermostSliceOfAThread) {
    TraceBuilder builder;
    const auto host = builder.addTrack(0, 0, TrackKind::Host, "host");
    builder.addSlice(host, us(0), us(10), SliceCategory::Host, builder.internName("outer"));
    builder.addSlice(host, us(2), us(3), SliceCategory::Host, builder.internName("inner"));
    const Trace trace = builder.build();
    EXPECT_EQ(namesOn(trace, tracePath(trace, us(0), us(10))), (std::vector<std::string>{"outer", "inner", "outer"}));
}

TEST(TracePath, CoversItsRangeWithoutGapsInAnyTrace) {
    EXPECT_TRUE(rc::check("pieces touch, times add up, slack is never negative", [] {
        TraceBuilder builder;
        std::vector<std::uint32_t> tracks, slices;
        for (int t = 0; t < 4; ++t) tracks.push_back(builder.addTrack(t / 2, t, static_cast<TrackKind>(t % 2), "t"));
        for (int i = 0, n = *rc::gen::inRange(1, 30); i < n; ++i)
            slices.push_back(builder.addSlice(*rc::gen::elementOf(tracks), us(*rc::gen::inRange(0, 50)), us(*rc::gen::inRange(0, 20)), static_cast<SliceCategory>(*rc::gen::inRange(0, 7)), builder.internName("s")));
        for (int i = 0, n = *rc::gen::inRange(0, 20); i < n; ++i)
            builder.addFlow(*rc::gen::elementOf(slices), *rc::gen::elementOf(slices), static_cast<Flow::Kind>(*rc::gen::inRange(0, 3)));
        const Trace trace = builder.build();
        const Time begin = us(*rc::gen::inRange(0, 20)), end = begin + us(*rc::gen::inRange(1, 60));
        const TracePath path = tracePath(trace, begin, end);
        Time cursor = begin, sum = path.idle;
        for (const PathPiece& piece : path.pieces) {
            RC_ASSERT(piece.begin == cursor);
            RC_ASSERT(piece.end > piece.begin);
            if (piece.slice != kNoSlice) RC_ASSERT(piece.begin >= trace.start[piece.slice] && piece.end <= trace.start[piece.slice] + trace.duration[piece.slice]);
            cursor = piece.end;
        }
        RC_ASSERT(cursor == end);
        for (const Time part : path.byCategory) sum += part;
        RC_ASSERT(sum == end - begin);
        for (const Time slack : sliceSlack(trace, begin, end)) RC_ASSERT(slack >= Time{});
    }));
}

TEST(SliceSlack, IsHowMuchLaterASliceMayEnd) {
    TraceBuilder builder;
    const auto a = builder.addTrack(0, 1, TrackKind::Compute, "a"), b = builder.addTrack(0, 2, TrackKind::Compute, "b");
    const auto first = builder.addSlice(a, us(0), us(10), SliceCategory::Compute, builder.internName("first"));
    const auto side = builder.addSlice(b, us(0), us(4), SliceCategory::Compute, builder.internName("side"));
    const auto last = builder.addSlice(a, us(10), us(5), SliceCategory::Compute, builder.internName("last"));
    builder.addFlow(side, last, Flow::Kind::Dependency);
    std::vector<std::uint32_t> ids;
    const Trace trace = builder.build(&ids);
    const std::vector<Time> slack = sliceSlack(trace, us(0), us(15));
    EXPECT_EQ(slack[ids[first]], us(0));
    EXPECT_EQ(slack[ids[last]], us(0));
    EXPECT_EQ(slack[ids[side]], us(6));  // it ends at 4 and is needed at 10
}

TEST(MemoryAt, SaysWhatIsAliveAndByCategory) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 0, TrackKind::Compute, "compute");
    builder.addSlice(track, us(0), us(10), SliceCategory::Compute, builder.internName("k"));
    builder.addCounter({0, "memory by category", {"parameters", "activations"}, {us(0), us(4), us(8)}, {100, 0, 100, 60, 100, 20}, 1000});
    builder.addCounter({0, "memory reserved", {"reserved"}, {us(0), us(4)}, {128, 256}, 1000});
    const auto parameters = builder.internName("parameters"), activations = builder.internName("activations");
    builder.addAllocation({0, us(0), Time::max(), 100, builder.internName("weight"), parameters});
    builder.addAllocation({0, us(4), us(8), 40, builder.internName("x"), activations});
    builder.addAllocation({0, us(4), us(9), 20, builder.internName("y"), activations});
    builder.addAllocation({1, us(4), us(9), 20, builder.internName("of another rank"), activations});
    const Trace trace = builder.build();
    const MemoryAt memory = memoryAt(trace, 0, us(5));
    EXPECT_EQ(memory.allocated, 160);
    EXPECT_EQ(memory.reserved, 256);
    EXPECT_EQ(memory.capacity, 1000);
    ASSERT_EQ(memory.alive.size(), 3U);
    EXPECT_EQ(trace.names[trace.allocations[memory.alive[1]].name], "x");
    EXPECT_EQ(memoryAt(trace, 0, us(8)).alive.size(), 2U) << "x ended at 8";
    EXPECT_EQ(memoryPeak(trace, 0), us(4));
}

TEST(DiffTraces, JoinsByTaskAndTellsWhatGotLonger) {
    const Trace a = smallTrace();
    Trace b = a;
    for (std::size_t i = 0; i < b.size(); ++i)
        if (b.names[b.name[i]] == "optimizer") b.duration[i] = us(15);
    const TraceDiff diff = diffTraces(a, b);
    EXPECT_EQ(diff.join, DiffJoin::Tasks);
    EXPECT_EQ(diff.ranks, (std::vector<std::int64_t>{0, 1}));
    EXPECT_NEAR(diff.stepSecondsA, 82e-6, 1e-12);
    EXPECT_NEAR(diff.stepSecondsB, 87e-6, 1e-12);
    EXPECT_NEAR(diff.stepPercent(), 100 * 5.0 / 82, 1e-9);
    ASSERT_FALSE(diff.names.empty());
    EXPECT_EQ(diff.names[0].name, "optimizer");
    EXPECT_NEAR(diff.names[0].seconds(), 5e-6, 1e-12);
    EXPECT_NEAR(diff.names[0].percent(), 50, 1e-9);
    EXPECT_EQ(diff.pairs.size(), a.size());
    EXPECT_EQ(diff.onlyA + diff.onlyB, 0);
    EXPECT_EQ(diff.breakdownB.optimizer - diff.breakdownA.optimizer, us(5));
}

TEST(DiffTraces, JoinsTheNthOfANameInAlignedSteps) {
    const auto trace = [](int firstStep, double offset, int kernelsInSecond) {
        TraceBuilder builder;
        const auto host = builder.addTrack(0, 0, TrackKind::Host, "host"), device = builder.addTrack(0, 7, TrackKind::Compute, "compute");
        for (int n = 0; n < 3; ++n) {
            builder.addSlice(host, us(offset + n * 100), us(100), SliceCategory::Marker, builder.internName("ProfilerStep#" + std::to_string(firstStep + n)));
            for (int k = 0; k < (n == 1 ? kernelsInSecond : 2); ++k) builder.addSlice(device, us(offset + n * 100 + k * 10), us(5 + n), SliceCategory::Compute, builder.internName("gemm"));
        }
        return builder.build();
    };
    // Steps 1, 2, 3 against 2, 3, 4: 2 and 3 are aligned. In step 2 of A there are three kernels, of B two.
    const TraceDiff diff = diffTraces(trace(1, 0, 3), trace(2, 1000, 2));
    EXPECT_EQ(diff.join, DiffJoin::Names);
    ASSERT_EQ(diff.steps.size(), 2U);
    EXPECT_EQ(diff.steps[0].first.number, 2);
    EXPECT_EQ(diff.steps[0].second.number, 2);
    EXPECT_EQ(diff.shift, us(100) - us(1000));
    EXPECT_EQ(diff.pairs.size(), 4U);
    EXPECT_EQ(diff.onlyA, 1);
    EXPECT_EQ(diff.onlyB, 0);
    for (const SlicePair& pair : diff.pairs) EXPECT_EQ(pair.delta, us(-1)) << "step 2 is A's second and B's first";
}

TEST(DiffTraces, DoesNotJoinTheTasksOfDifferentSchedules) {
    Trace other = smallTrace();
    for (std::int64_t& task : other.task)
        if (task >= 0) task = 3 - task;  // the same numbers for other work
    EXPECT_EQ(diffTraces(smallTrace(), other).join, DiffJoin::Names);
}

TEST(DiffTraces, OfATraceWithItselfIsNothing) {
    const TraceDiff diff = diffTraces(smallTrace(), smallTrace());
    EXPECT_EQ(diff.stepPercent(), 0);
    for (const NameDelta& row : diff.names) EXPECT_EQ(row.seconds(), 0);
    for (const SlicePair& pair : diff.pairs) EXPECT_EQ(pair.delta, Time{});
}

}  // namespace
}  // namespace ringside
