#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "small_trace.h"
#include "traces/analysis/collectives.h"
#include "traces/analysis/enclosing.h"
#include "traces/analysis/gradient_flows.h"
#include "traces/analysis/layer_names.h"
#include "traces/analysis/range_statistics.h"
#include "traces/analysis/slice_search.h"
#include "traces/analysis/steps.h"

namespace ringside {
namespace {

const NameStatistics& rowOf(const Trace& trace, const RangeStatistics& statistics, const std::string& name) {
    for (const NameStatistics& row : statistics.names)
        if (trace.names[row.name] == name) return row;
    ADD_FAILURE() << "no row " << name;
    return statistics.names.front();
}

TEST(RangeStatistics, CountsTheTimeOfWhatLiesInTheRangeByKind) {
    const Trace trace = smallTrace();
    // Rank 0 in [20, 80): forward 2, backward 40, all-reduce [42, 72) of which 20 beside backward, optimizer 8.
    const RangeStatistics statistics = rangeStatistics(trace, us(20), us(80));
    ASSERT_EQ(statistics.ranks.size(), 2U);
    const Breakdown& rank0 = statistics.ranks[0].second;
    EXPECT_EQ(rank0.compute, us(42));
    EXPECT_EQ(rank0.optimizer, us(8));
    EXPECT_EQ(rank0.communicationHidden, us(20));
    EXPECT_EQ(rank0.communicationExposed, us(10));
    EXPECT_EQ(rank0.idle, us(0));
    // Both ranks: 40 and 38 µs of backward, uncut.
    const NameStatistics& backward = rowOf(trace, statistics, "backward/layer 0");
    EXPECT_EQ(backward.count, 2);
    EXPECT_EQ(backward.total, us(78));
    EXPECT_EQ(backward.mean, us(39));
    EXPECT_EQ(backward.p50, us(38));
    EXPECT_EQ(backward.p99, us(40));
    EXPECT_EQ(rowOf(trace, statistics, "forward/layer 0").total, us(4)) << "cut at the range's start";
    EXPECT_EQ(rowOf(trace, statistics, "forward/layer 0").most, us(20)) << "but as long as it is";
}

TEST(RangeStatistics, LooksOnlyAtTheTracksAskedFor) {
    const Trace trace = smallTrace();
    const std::vector<std::uint32_t> compute = {1};
    const RangeStatistics statistics = rangeStatistics(trace, us(0), us(100), compute);
    ASSERT_EQ(statistics.ranks.size(), 1U);
    EXPECT_EQ(statistics.ranks[0].second.communication(), us(0));
    EXPECT_EQ(statistics.slices, 3);
}

TEST(RangeStatistics, TakesChildrenOffTheirParentsSelfTime) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 0, TrackKind::Host, "host");
    builder.addSlice(track, us(0), us(10), SliceCategory::Host, builder.internName("parent"));
    builder.addSlice(track, us(2), us(3), SliceCategory::Host, builder.internName("child"));
    builder.addSlice(track, us(3), us(1), SliceCategory::Host, builder.internName("grandchild"));
    builder.addSlice(track, us(6), us(2), SliceCategory::Host, builder.internName("child"));
    const Trace trace = builder.build();
    const RangeStatistics statistics = rangeStatistics(trace, us(0), us(10));
    EXPECT_EQ(rowOf(trace, statistics, "parent").self, us(5));       // 10 − 3 − 2
    EXPECT_EQ(rowOf(trace, statistics, "child").self, us(4));        // 3 − 1 + 2
    EXPECT_EQ(rowOf(trace, statistics, "grandchild").self, us(1));
}

TEST(RangeStatistics, SelfTimesOfNestedSlicesAddUpToTheTimeCovered) {
    EXPECT_TRUE(rc::check("self times of one track", [] {
        TraceBuilder builder;
        const auto track = builder.addTrack(0, 0, TrackKind::Host, "host");
        // A random tree: each slice is cut into children.
        std::vector<std::pair<std::int64_t, std::int64_t>> todo = {{0, 1 << 12}};
        while (!todo.empty()) {
            const auto [begin, end] = todo.back();
            todo.pop_back();
            builder.addSlice(track, Time::fromPicoseconds(begin), Time::fromPicoseconds(end - begin), SliceCategory::Host, builder.internName("n" + std::to_string(begin % 3)));
            if (end - begin < 64 || !*rc::gen::arbitrary<bool>()) continue;
            const auto middle = *rc::gen::inRange(begin + 1, end - 1);
            todo.emplace_back(begin, middle);
            todo.emplace_back(middle, end);
        }
        const Trace trace = builder.build();
        Time self;
        for (const NameStatistics& row : rangeStatistics(trace, Time{}, Time::fromPicoseconds(1 << 12)).names) self += row.self;
        RC_ASSERT(self == Time::fromPicoseconds(1 << 12));
    }));
}

TEST(Histogram, PutsEverySliceOfTheNameIntoOneBin) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 0, TrackKind::Compute, "compute");
    for (int i = 1; i <= 100; ++i) builder.addSlice(track, us(i * 200), us(i), SliceCategory::Compute, builder.internName("k"));
    builder.addSlice(track, us(0), us(1000), SliceCategory::Compute, builder.internName("other"));
    const Trace trace = builder.build();
    const std::uint32_t name = trace.name[1];
    const Histogram histogram = durationHistogram(trace, {&name, 1}, us(0), Time::max(), 9);
    // 1 … 100 µs in 9 bins of 11 µs: 1 … 11.99 holds 11 of them, the last bin has the greatest too.
    EXPECT_EQ(histogram.edge(1), us(12));
    EXPECT_THAT(histogram.counts, testing::ElementsAre(11, 11, 11, 11, 11, 11, 11, 11, 12));
    EXPECT_EQ(histogram.p50, us(50));
    EXPECT_EQ(histogram.p90, us(90));
    const Histogram logarithmic = durationHistogram(trace, {&name, 1}, us(0), Time::max(), 2, true);
    EXPECT_THAT(logarithmic.counts, testing::ElementsAre(9, 91));  // the middle of 1 … 100 is 10
    EXPECT_TRUE(durationHistogram(trace, {&name, 1}, us(0), us(1)).counts.empty());
}

TEST(SliceSearch, MatchesNamesAnywhereAndOrdersHitsByTime) {
    const Trace trace = smallTrace();
    const Result<SearchHits> hits = searchSlices(trace, "^(forward|optimizer)");
    ASSERT_TRUE(hits);
    EXPECT_EQ(hits->names.size(), 2U);
    ASSERT_EQ(hits->slices.size(), 4U);
    EXPECT_TRUE(std::is_sorted(hits->slices.begin(), hits->slices.end(), [&](auto a, auto b) { return trace.start[a] < trace.start[b]; }));
    EXPECT_EQ(searchSlices(trace, "layer 0")->slices.size(), 4U);
    EXPECT_EQ(searchSlices(trace, "BUCKET")->slices.size(), 0U) << "with a capital letters mean themselves";
    EXPECT_EQ(searchSlices(trace, "bucket")->slices.size(), 2U);
    EXPECT_TRUE(searchSlices(trace, "")->slices.empty());
}

TEST(SliceSearch, SaysWhatIsWrongWithAnExpression) {
    const Result<SearchHits> hits = searchSlices(smallTrace(), "aten::(mm");
    ASSERT_FALSE(hits);
    EXPECT_EQ(hits.error().code, ErrorCode::Usage);
    EXPECT_THAT(hits.error().toString(), testing::HasSubstr("'(' or ')' has no partner"));
}

TEST(MatchCollectives, WaitIsWhatARankTookLongerThanTheOneThatCameLast) {
    const Trace trace = smallTrace();
    const std::vector<MatchedCollective> matched = matchCollectives(trace);
    ASSERT_EQ(matched.size(), 1U);
    ASSERT_EQ(matched[0].slices.size(), 2U);
    EXPECT_TRUE(matched[0].isComplete);
    // Rank 0 comes at 42, rank 1 at 44; both end at 72: 28 µs of transfer, 2 µs of waiting on rank 0.
    EXPECT_EQ(matched[0].transfer, us(28));
    EXPECT_EQ(waitOf(trace, matched[0], matched[0].slices[0]), us(2));
    EXPECT_EQ(waitOf(trace, matched[0], matched[0].slices[1]), us(0));
    // 4000 bytes in 28 µs; for two ranks busbw is the same.
    EXPECT_NEAR(matched[0].algbw, 4000 / 28e-6, 1);
    EXPECT_NEAR(matched[0].busbw, matched[0].algbw, 1);
    EXPECT_EQ(collectiveFlows(matched).size(), 1U);
    // The link is loaded from the last arrival on.
    const std::vector<CounterSeries> load = linkLoad(trace, matched);
    ASSERT_EQ(load.size(), 2U);
    EXPECT_EQ(load[0].at, (std::vector<Time>{us(44), us(72)}));
    EXPECT_EQ(load[0].values, (std::vector<Bytes>{142857143, 0}));
}

TEST(GradientFlows, LeadFromTheKernelThroughTheBucketToTheOptimizer) {
    TraceBuilder builder;
    const auto compute = builder.addTrack(0, 1, TrackKind::Compute, "compute"), nccl = builder.addTrack(0, 2, TrackKind::Communication, "nccl");
    const auto add = [&](std::uint32_t track, const char* name, double start, SliceCategory category) { return builder.addSlice(track, us(start), us(5), category, builder.internName(name)); };
    add(compute, "backward mlp: weight gradient", 0, SliceCategory::Compute);
    add(compute, "mlp.bias: copy into bucket", 10, SliceCategory::Compute);
    const auto copy = add(compute, "mlp.weight: copy into bucket", 20, SliceCategory::Compute);
    const auto reduce = add(nccl, "all_reduce bucket 0", 30, SliceCategory::Communication);
    const auto out = add(compute, "mlp.weight: copy out of bucket", 40, SliceCategory::Compute);
    add(compute, "optimizer step", 50, SliceCategory::Optimizer);
    add(compute, "optimizer step", 60, SliceCategory::Optimizer);
    builder.addFlow(copy, reduce);
    builder.addFlow(reduce, out);
    const Trace trace = builder.build();
    std::vector<std::string> found;
    for (const Flow& flow : gradientFlows(trace)) found.push_back(fmt::format("{} → {} at {}", trace.names[trace.name[flow.from]], trace.names[trace.name[flow.to]], formatTime(trace.start[flow.to])));
    EXPECT_THAT(found, testing::ElementsAre("backward mlp: weight gradient → mlp.weight: copy into bucket at 20.0 µs", "mlp.weight: copy out of bucket → optimizer step at 50.0 µs"));
    Trace twice = trace;
    for (const Flow& flow : gradientFlows(trace)) twice.flows.push_back(flow);
    EXPECT_TRUE(gradientFlows(twice).empty()) << "a trace that was saved with them gets no second ones";
    Trace without = trace;
    without.flows.clear();
    EXPECT_TRUE(gradientFlows(without).empty()) << "where nobody says what a collective waits for, nothing is made up";
}

TEST(BytesInFlight, CountACollectiveFromWhenARankBeginsItAndAddUpWhereTheyOverlap) {
    const Trace trace = smallTrace();
    const std::vector<CounterSeries> counters = bytesInFlight(trace, matchCollectives(trace));
    ASSERT_EQ(counters.size(), 2U);
    EXPECT_EQ(counters[0].at, (std::vector<Time>{us(42), us(72)})) << "rank 0 waits for rank 1 with its bytes in flight";
    EXPECT_EQ(counters[1].at, (std::vector<Time>{us(44), us(72)}));
    EXPECT_EQ(counters[0].values, (std::vector<Bytes>{4000, 0}));

    TraceBuilder builder;
    const auto a = builder.addTrack(0, 1, TrackKind::Communication, "a"), b = builder.addTrack(0, 2, TrackKind::Communication, "b");
    const auto add = [&](std::uint32_t track, double start, Bytes bytes) {
        builder.addSlice(track, us(start), us(10), SliceCategory::Communication, builder.internName("ar"), -1,
                         builder.addCollective({.op = "allreduce", .elements = bytes / 4, .dtype = "Float", .bytes = bytes, .groupSize = 2, .algorithm = "", .protocol = "", .group = ""}));
    };
    add(a, 0, 100);
    add(b, 5, 30);
    add(a, 20, 0);  // bytes not known
    const Trace two = builder.build();
    const std::vector<CounterSeries> sum = bytesInFlight(two, matchCollectives(two));
    ASSERT_EQ(sum.size(), 1U);
    EXPECT_EQ(sum[0].at, (std::vector<Time>{us(0), us(5), us(10), us(15)}));
    EXPECT_EQ(sum[0].values, (std::vector<Bytes>{100, 130, 30, 0}));
}

TEST(MatchCollectives, UsesSequenceNumbersOrTheTurnWithinAGroup) {
    TraceBuilder builder;
    builder.setWorldSize(2);
    const auto add = [&](std::int64_t rank, std::uint32_t track, double start, std::int64_t sequence, Bytes bytes, const char* group) {
        const auto details = builder.addCollective({.op = "allreduce", .elements = bytes / 4, .dtype = "Float", .bytes = bytes, .groupSize = 2, .sequence = sequence, .algorithm = "", .protocol = "", .group = group});
        builder.addSlice(track, us(start), us(1), SliceCategory::Communication, builder.internName("ar"), rank, details);
    };
    for (const std::int64_t rank : {0, 1}) {
        const auto track = builder.addTrack(rank, 0, TrackKind::Communication, "nccl");
        // With numbers: rank 1 lost its first. Without: the two threads of rank 1 swapped sizes 8 and 12.
        if (rank == 0) add(rank, track, 0, 7, 400, "a");
        add(rank, track, 10, 8, 400, "a");
        add(rank, track, rank == 0 ? 20 : 30, -1, 8, "b");
        add(rank, track, rank == 0 ? 30 : 20, -1, 12, "b");
    }
    const Trace trace = builder.build();
    const std::vector<MatchedCollective> matched = matchCollectives(trace);
    ASSERT_EQ(matched.size(), 4U);
    for (const MatchedCollective& one : matched) {
        const CollectiveDetails& details = trace.collectives[static_cast<std::size_t>(one.collective)];
        EXPECT_EQ(one.slices.size(), details.sequence == 7 ? 1U : 2U);
        for (const std::uint32_t slice : one.slices) EXPECT_EQ(trace.collectives[static_cast<std::size_t>(trace.collective[slice])].bytes, details.bytes);
    }
}

TEST(Steps, AreMarkedByTheProfiler) {
    TraceBuilder builder;
    const auto host = builder.addTrack(0, 0, TrackKind::Host, "host"), device = builder.addTrack(0, 7, TrackKind::Compute, "compute");
    for (int n = 0; n < 3; ++n) {
        builder.addSlice(host, us(n * 100), us(90), SliceCategory::Marker, builder.internName("ProfilerStep#" + std::to_string(5 + n)));
        builder.addSlice(device, us(n * 100 + 50), us(90), SliceCategory::Marker, builder.internName("ProfilerStep#" + std::to_string(5 + n)));
    }
    const Steps steps = stepsOf(builder.build(), 0);
    EXPECT_EQ(steps.source, StepSource::Marks);
    ASSERT_EQ(steps.steps.size(), 3U);
    EXPECT_EQ(steps.steps[1], (Step{6, us(100), us(190)}));
}

TEST(Steps, EndWithTheOptimizerWhereNobodyMarkedThem) {
    TraceBuilder builder;
    const auto host = builder.addTrack(0, 0, TrackKind::Host, "host");
    for (int n = 0; n < 2; ++n) {
        builder.addSlice(host, us(n * 100), us(50), SliceCategory::Host, builder.internName("aten::mm"));
        builder.addSlice(host, us(n * 100 + 60), us(20), SliceCategory::Marker, builder.internName("Optimizer.step#SGD.step"));
    }
    const Steps steps = stepsOf(builder.build(), 0);
    EXPECT_EQ(steps.source, StepSource::Optimizer);
    ASSERT_EQ(steps.steps.size(), 2U);
    EXPECT_EQ(steps.steps[0], (Step{0, us(0), us(80)}));
    EXPECT_EQ(steps.steps[1], (Step{1, us(80), us(180)}));
}

TEST(Steps, AreTheWholeTraceWithoutEither) {
    const Steps steps = stepsOf(smallTrace(), 1);
    EXPECT_EQ(steps.source, StepSource::Whole);
    ASSERT_EQ(steps.steps.size(), 1U);
    EXPECT_EQ(steps.steps[0].end, us(82));
    EXPECT_TRUE(stepsOf(smallTrace(), 9).steps.empty());
}

TEST(Phases, AreFoundByOurNamesAndThroughLaunches) {
    const std::vector<PhaseSpan> ours = phasesOf(smallTrace(), 0, us(0), us(100));
    ASSERT_EQ(ours.size(), 3U);
    EXPECT_EQ(ours[0].begin, us(2));
    EXPECT_EQ(ours[1].end, us(62));
    EXPECT_EQ(ours[2].begin, us(72));

    TraceBuilder builder;
    const auto host = builder.addTrack(0, 0, TrackKind::Host, "host"), device = builder.addTrack(0, 7, TrackKind::Compute, "compute");
    builder.addSlice(host, us(0), us(10), SliceCategory::Host, builder.internName("autograd::engine::evaluate_function: MmBackward0"));
    const auto call = builder.addSlice(host, us(2), us(1), SliceCategory::Host, builder.internName("cudaLaunchKernel"));
    const auto kernel = builder.addSlice(device, us(30), us(5), SliceCategory::Compute, builder.internName("gemm"));
    builder.addFlow(call, kernel, Flow::Kind::Launch);
    const std::vector<PhaseSpan> theirs = phasesOf(builder.build(), 0, us(0), us(100));
    ASSERT_EQ(theirs.size(), 1U);
    EXPECT_EQ(theirs[0].phase, TracePhase::Backward);
    EXPECT_EQ(theirs[0].begin, us(30));
}

TEST(EnclosingSlices, FindTheInnermostAtAnInstant) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 0, TrackKind::Host, "host");
    const auto outer = builder.addSlice(track, us(0), us(10), SliceCategory::Host, builder.internName("outer"));
    const auto inner = builder.addSlice(track, us(2), us(3), SliceCategory::Host, builder.internName("inner"));
    const auto next = builder.addSlice(track, us(10), us(5), SliceCategory::Host, builder.internName("next"));
    std::vector<std::uint32_t> ids;
    const Trace trace = builder.build(&ids);
    const std::vector<TrackPoint> points = {{track, us(20)}, {track, us(1)}, {track, us(5)}, {track, us(10)}, {track, us(3)}, {track, us(15)}};
    EXPECT_EQ(enclosingSlices(trace, points), (std::vector<std::uint32_t>{kNoSlice, ids[outer], ids[inner], ids[next], ids[inner], ids[next]}));
    EXPECT_EQ(parentSlices(trace, 0), (std::vector<std::uint32_t>{kNoSlice, ids[outer], kNoSlice}));
}

TEST(LayerNames, NumbersThatStandAloneAreLeftOut) {
    EXPECT_EQ(withoutNumbers("model.layers.12.mlp"), "model.layers.#.mlp");
    EXPECT_EQ(withoutNumbers("all_gather unit 3"), "all_gather unit #");
    EXPECT_EQ(withoutNumbers("gemm_128x64_sm80"), "gemm_128x64_sm80");
}

}  // namespace
}  // namespace ringside
