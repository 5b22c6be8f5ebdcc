// Which row stands where; counters; flows; phases.
#include <algorithm>

#include <gtest/gtest.h>

#include "gui/timeline/counter_geometry.h"
#include "gui/timeline/flow_index.h"
#include "gui/timeline/track_layout.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }

Trace ranks(int count) {
    TraceBuilder builder;
    const std::uint32_t name = builder.internName("kernel");
    for (int rank = 0; rank < count; ++rank) {
        builder.addSlice(builder.addTrack(rank, 2, TrackKind::Communication, "nccl"), us(5), us(10), SliceCategory::Communication, name);
        builder.addSlice(builder.addTrack(rank, 1, TrackKind::Compute, "compute"), us(0), us(10), SliceCategory::Compute, name);
        builder.addSlice(builder.addTrack(rank, 0, TrackKind::Host, "host"), us(0), us(1), SliceCategory::Host, name);
    }
    return builder.build();
}

std::vector<std::string> namesOf(const Trace& trace, const TrackLayout& layout) {
    std::vector<std::string> names;
    for (const LayoutRow& row : layout.rows)
        names.push_back(row.kind == RowKind::Rank ? "rank " + std::to_string(row.rank) : row.kind == RowKind::Density ? "density " + std::to_string(row.rank) : trace.tracks[row.track].name);
    return names;
}

TEST(TrackLayout, ARankIsFollowedByItsHostComputeAndCommunication) {
    const Trace trace = ranks(2);
    const TrackLayout layout = layoutTracks(trace, SliceIndex(trace), {});
    EXPECT_EQ(namesOf(trace, layout), (std::vector<std::string>{"rank 0", "host", "compute", "nccl", "rank 1", "host", "compute", "nccl"}));
    for (std::size_t i = 1; i < layout.rows.size(); ++i) EXPECT_DOUBLE_EQ(layout.rows[i].y, layout.rows[i - 1].bottom());
    EXPECT_DOUBLE_EQ(layout.height, layout.rows.back().bottom());
}

TEST(TrackLayout, CollapsedRanksBecomeDensityRowsOfTheDevicesTracks) {
    const Trace trace = ranks(2);
    TrackOptions options;
    options.collapsed = {1};
    const TrackLayout layout = layoutTracks(trace, SliceIndex(trace), options);
    EXPECT_EQ(namesOf(trace, layout), (std::vector<std::string>{"rank 0", "host", "compute", "nccl", "density 1"}));
    EXPECT_EQ(layout.rows.back().bands.size(), 2U);
}

TEST(TrackLayout, ManyRanksBeginCollapsedAndOneCanBeOpened) {
    const Trace trace = ranks(100);
    TrackOptions options;
    EXPECT_EQ(layoutTracks(trace, SliceIndex(trace), options).rows.size(), 100U);
    options.expanded = {7};
    EXPECT_EQ(layoutTracks(trace, SliceIndex(trace), options).rows.size(), 103U);
}

TEST(TrackLayout, PinnedTracksLeaveTheirPlaceAndStandOnTop) {
    const Trace trace = ranks(1);
    TrackOptions options;
    options.pinned = {1};
    const TrackLayout layout = layoutTracks(trace, SliceIndex(trace), options);
    ASSERT_EQ(layout.pinned.size(), 1U);
    EXPECT_EQ(trace.tracks[layout.pinned[0].track].name, "compute");
    EXPECT_EQ(namesOf(trace, layout), (std::vector<std::string>{"rank 0", "host", "nccl"}));
    EXPECT_EQ(layout.rowOfTrack(1), &layout.pinned[0]);
}

TEST(TrackLayout, AFilterKeepsTracksByNameInAnyCaseAndRanksByNumber) {
    const Trace trace = ranks(3);
    TrackOptions options;
    options.filter = "NCCL";
    EXPECT_EQ(namesOf(trace, layoutTracks(trace, SliceIndex(trace), options)), (std::vector<std::string>{"rank 0", "nccl", "rank 1", "nccl", "rank 2", "nccl"}));
    options.filter = "rank 2";
    EXPECT_EQ(namesOf(trace, layoutTracks(trace, SliceIndex(trace), options)), (std::vector<std::string>{"rank 2", "host", "compute", "nccl"}));
}

TEST(TrackLayout, RanksCanBePutInAnotherOrder) {
    const Trace trace = ranks(3);
    TrackOptions options;
    options.collapsed = {0, 1, 2};
    options.order = {2, 0};
    EXPECT_EQ(namesOf(trace, layoutTracks(trace, SliceIndex(trace), options)), (std::vector<std::string>{"density 2", "density 0", "density 1"}));
}

TEST(TrackLayout, ARankIsDraggedToWhereAnotherStands) {
    const Trace trace = ranks(4);
    TrackOptions options;
    options.collapsed = {0, 1, 3};
    const auto drag = [&](std::int64_t rank, std::int64_t onto) {
        const TrackLayout layout = layoutTracks(trace, SliceIndex(trace), options);
        const auto rowOf = [&](std::int64_t r) { return *std::find_if(layout.rows.begin(), layout.rows.end(), [&](const LayoutRow& row) { return row.rank == r; }); };
        options = withMoved(options, layout, rowOf(rank), rowOf(onto));
        std::vector<std::string> names = namesOf(trace, layoutTracks(trace, SliceIndex(trace), options));
        std::erase_if(names, [](const std::string& name) { return name.find(' ') == std::string::npos; });  // tracks of the open one
        return names;
    };
    EXPECT_EQ(drag(0, 2), (std::vector<std::string>{"density 1", "rank 2", "density 0", "density 3"})) << "down: after it";
    EXPECT_EQ(drag(3, 1), (std::vector<std::string>{"density 3", "density 1", "rank 2", "density 0"})) << "up: before it";
    EXPECT_EQ(drag(2, 2), (std::vector<std::string>{"density 3", "density 1", "rank 2", "density 0"}));
}

TEST(TrackLayout, ATrackIsDraggedAmongThoseOfItsRankAndPinnedOnesAmongThemselves) {
    const Trace trace = ranks(2);
    TrackOptions options;
    TrackLayout layout = layoutTracks(trace, SliceIndex(trace), options);
    // Rows: rank 0, host, compute, nccl, rank 1, host, compute, nccl.
    options = withMoved(options, layout, layout.rows[3], layout.rows[1]);
    layout = layoutTracks(trace, SliceIndex(trace), options);
    EXPECT_EQ(namesOf(trace, layout), (std::vector<std::string>{"rank 0", "nccl", "host", "compute", "rank 1", "host", "compute", "nccl"}));
    options = withMoved(options, layout, layout.rows[5], layout.rows[7]);
    layout = layoutTracks(trace, SliceIndex(trace), options);
    EXPECT_EQ(namesOf(trace, layout), (std::vector<std::string>{"rank 0", "nccl", "host", "compute", "rank 1", "compute", "nccl", "host"}));
    EXPECT_EQ(withMoved(options, layout, layout.rows[1], layout.rows[6]), options) << "a track stays with its rank";
    options.pinned = {0, 1, 3};
    layout = layoutTracks(trace, SliceIndex(trace), options);
    EXPECT_EQ(withMoved(options, layout, layout.pinned[2], layout.pinned[0]).pinned, (std::vector<std::uint32_t>{3, 0, 1}));
    EXPECT_EQ(withMoved(options, layout, layout.pinned[2], layout.rows[1]), options);
}

TEST(TrackLayout, CountersOfOneSeriesAreLowAndStackedOnesHigh) {
    Trace trace = ranks(1);
    CounterSeries load, memory;
    load.name = "link load";
    load.series = {"bytes per second"};
    memory.name = "memory by category";
    memory.series = {"parameters", "activations"};
    for (CounterSeries* counter : {&load, &memory}) {
        counter->at = {us(0)};
        counter->values.assign(counter->series.size(), 1);
        trace.counters.push_back(*counter);
    }
    const TrackLayout layout = layoutTracks(trace, SliceIndex(trace), {});
    EXPECT_EQ(layout.rows[4].height, RowHeights().counter);
    EXPECT_EQ(layout.rows[5].height, RowHeights().stackedCounter);
}

TEST(TrackLayout, FindsTheRowsOfAStretchByBinarySearch) {
    const Trace trace = ranks(2);
    const TrackLayout layout = layoutTracks(trace, SliceIndex(trace), {});
    const auto [first, last] = layout.visible(layout.rows[2].y + 1, layout.rows[3].y + 1);
    EXPECT_EQ(first, 2U);
    EXPECT_EQ(last, 4U);
    EXPECT_EQ(layout.rowAt(layout.rows[4].y), &layout.rows[4]);
    EXPECT_EQ(layout.rowAt(1e9), nullptr);
}

CounterSeries counter(const std::vector<Bytes>& sums) {
    CounterSeries c;
    c.series = {"a", "b"};
    for (std::size_t i = 0; i < sums.size(); ++i) {
        c.at.push_back(us(static_cast<double>(i)));
        c.values.push_back(sums[i] / 2);
        c.values.push_back(sums[i] - sums[i] / 2);
    }
    return c;
}

TEST(CounterGeometry, AColumnShowsTheLargestSampleInForceInIt) {
    // Ten samples per pixel, one spike: it must not vanish.
    std::vector<Bytes> sums(1000, 10);
    sums[503] = 99;
    const CounterSeries c = counter(sums);
    const CounterIndex index(c);
    EXPECT_EQ(index.largest(), 99);
    std::vector<std::int64_t> columns;
    counterColumns(c, index, TimeAxis({us(0), us(1000)}, 100), columns);
    ASSERT_EQ(columns.size(), 100U);
    EXPECT_EQ(columns[50], 503);
}

TEST(CounterGeometry, ASampleIsInForceUntilTheNextAndThereIsNoneBeforeTheFirst) {
    CounterSeries c;
    c.series = {"a"};
    c.at = {us(100), us(900)};
    c.values = {5, 7};
    const CounterIndex index(c);
    std::vector<std::int64_t> columns;
    counterColumns(c, index, TimeAxis({us(0), us(1000)}, 10), columns);
    EXPECT_EQ(columns, (std::vector<std::int64_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1}));
    EXPECT_EQ(sampleAt(c, us(50)), -1);
    EXPECT_EQ(sampleAt(c, us(100)), 0);
}

TEST(CounterIndex, FindsTheLargestOfAnyRun) {
    std::vector<Bytes> sums;
    for (int i = 0; i < 5000; ++i) sums.push_back((i * 7919) % 10007);
    const CounterIndex index(counter(sums));
    for (std::size_t first = 0; first < 5000; first += 331)
        for (std::size_t last = first + 1; last <= 5000; last += 457)
            EXPECT_EQ(index.sumAt(index.largestIn(first, last)), *std::max_element(sums.begin() + static_cast<std::ptrdiff_t>(first), sums.begin() + static_cast<std::ptrdiff_t>(last)));
}

TEST(FlowIndex, WalksAlongDependenciesBeforeLaunches) {
    TraceBuilder builder;
    const std::uint32_t track = builder.addTrack(0, 0, TrackKind::Compute, "compute"), name = builder.internName("k");
    const auto slice = [&](double at) { return builder.addSlice(track, us(at), us(1), SliceCategory::Compute, name); };
    const std::uint32_t launch = slice(0), gradient = slice(10), bucket = slice(20), late = slice(30);
    builder.addFlow(launch, bucket, Flow::Kind::Launch);
    builder.addFlow(gradient, bucket);
    builder.addFlow(bucket, late);
    const Trace trace = builder.build();
    const FlowIndex flows(trace);
    EXPECT_EQ(flows.into(2).size(), 2U);
    EXPECT_EQ(previousAlongFlow(trace, flows, 2), 1U);
    EXPECT_EQ(nextAlongFlow(trace, flows, 2), 3U);
    EXPECT_EQ(nextAlongFlow(trace, flows, 3), kNoSlice);
    EXPECT_EQ(previousAlongFlow(trace, flows, 0), kNoSlice);
}

TEST(Phases, AreReadFromHowComputeSlicesAreNamed) {
    TraceBuilder builder;
    const std::uint32_t track = builder.addTrack(0, 1, TrackKind::Compute, "compute");
    const auto slice = [&](double at, const char* name, SliceCategory category) { builder.addSlice(track, us(at), us(5), category, builder.internName(name)); };
    slice(0, "forward block: mlp", SliceCategory::Compute);
    slice(10, "forward head: loss", SliceCategory::Compute);
    slice(20, "backward head: loss", SliceCategory::Compute);
    slice(40, "adamw step", SliceCategory::Optimizer);
    const std::vector<Phase> phases = stepsAndPhases(builder.build());
    // From the first to the last slice of each; the step itself ends with its optimizer.
    std::vector<std::string> names;
    for (const Phase& phase : phases)
        if (!phase.step) names.push_back(phase.name);
    EXPECT_EQ(names, (std::vector<std::string>{"forward", "backward", "optimizer"}));
}

TEST(Phases, StepsComeFromTheProfilersAnnotations) {
    TraceBuilder builder;
    const std::uint32_t host = builder.addTrack(0, 0, TrackKind::Host, "thread");
    builder.addSlice(host, us(0), us(100), SliceCategory::Marker, builder.internName("ProfilerStep#7"));
    const std::vector<Phase> phases = stepsAndPhases(builder.build());
    ASSERT_GE(phases.size(), 1U);
    EXPECT_TRUE(phases[0].step);
    EXPECT_EQ(phases[0].name, "step 7");
}

}  // namespace
}  // namespace ringside::gui
