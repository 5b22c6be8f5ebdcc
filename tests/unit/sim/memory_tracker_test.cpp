#include <gtest/gtest.h>

#include "sim/player/memory_tracker.h"
#include "tests/support/tiny_step.h"

namespace ringside::testing {
namespace {

Bytes of(const CategoryBytes& bytes, MemoryCategory category) { return bytes[static_cast<std::size_t>(category)]; }

/// Parameters of 4 MiB; task 0 allocates activations of 8 MiB, task 1 a workspace of 2 MiB and frees it, task 2 frees the rest.
struct ThreeTasks : TinyStep {
    ThreeTasks() {
        parameters = buffer(4 * kMiB, MemoryCategory::Parameters, true);
        activations = buffer(8 * kMiB, MemoryCategory::Activations);
        workspace = buffer(2 * kMiB, MemoryCategory::Workspace);
        kernel(1, {1});
        use(activations, UseKind::Allocate);
        kernel(1, {1});
        use(workspace, UseKind::Allocate);
        use(workspace, UseKind::Free);
        kernel(1, {1});
        use(activations, UseKind::Free);
    }
    BufferId parameters = 0, activations = 0, workspace = 0;
};

TEST(MemoryTracker, SumsByCategoryAtThePeakAndNamesItsTask) {
    ThreeTasks step;
    MemoryOptions options;
    options.contextBytes = 100;
    options.ncclBytes = 50;
    const MemoryReport report = trackMemory(step.program(), options);
    // 4 + 8 + 2 MiB are live in task 1; all are multiples of 512 B, so rounding adds nothing.
    EXPECT_EQ(report.peakAllocated, 14 * kMiB);
    EXPECT_EQ(report.peakTask, 1U);
    EXPECT_EQ(of(report.atPeak, MemoryCategory::Parameters), 4 * kMiB);
    EXPECT_EQ(of(report.atPeak, MemoryCategory::Activations), 8 * kMiB);
    EXPECT_EQ(of(report.atPeak, MemoryCategory::Workspace), 2 * kMiB);
    EXPECT_EQ(of(report.atPeak, MemoryCategory::Gradients), 0);
    EXPECT_EQ(of(report.atPeak, MemoryCategory::Context), 100);
    EXPECT_EQ(of(report.atPeak, MemoryCategory::Nccl), 50);
    EXPECT_EQ(report.largestAtPeak, step.activations);
    EXPECT_FALSE(report.outOfMemory);
}

TEST(MemoryTracker, ReservesWhatTheCachingAllocatorTakesFromTheDriver) {
    ThreeTasks step;
    const MemoryReport report = trackMemory(step.program(), {});
    // Requests of 1–10 MiB come from 20 MiB segments: 4 + 8 + 2 fit in one. The device holds the context besides.
    EXPECT_EQ(report.peakReserved, 20 * kMiB);
    EXPECT_EQ(report.peakDevice(), 20 * kMiB);
}

TEST(MemoryTracker, WhatIsSharedOutBeforeTheStepCountsWhereItWasMore) {
    ThreeTasks step;
    step.program().setup = {{64 * kMiB, 32 * kMiB}, 4, true};
    const MemoryReport report = trackMemory(step.program(), {});
    EXPECT_EQ(report.peakAllocated, 14 * kMiB);  // of the step
    // 96 MiB, and the first tensor's shard of 16; the second's, of 8, then has room in what the first left.
    EXPECT_EQ(report.peakReserved, 112 * kMiB);
    step.program().setup = {{8 * kMiB}, 4, true};
    EXPECT_EQ(trackMemory(step.program(), {}).peakReserved, 20 * kMiB);
}

TEST(MemoryTracker, WhatIsFlattenedBeforeTheStepStaysInTheCache) {
    ThreeTasks step;
    step.program().setup = {{10 * kMiB, 10 * kMiB}, 1, false};
    const MemoryReport report = trackMemory(step.program(), {});
    EXPECT_EQ(report.peakAllocated, 14 * kMiB);
    // Two segments of 10 MiB and the parameters' of 20, 4 of which are taken; 8 and 2 fit into what is free.
    EXPECT_EQ(report.peakReserved, 40 * kMiB);
    // Where there is no room for both copies, the flat one is made on the host, and nothing is left behind.
    MemoryOptions options;
    options.capacityBytes = 39 * kMiB;
    EXPECT_EQ(trackMemory(step.program(), options).peakReserved, 20 * kMiB);
}

TEST(MemoryTracker, KeepsASampleForEachTaskThatChangesMemory) {
    ThreeTasks step;
    MemoryOptions options;
    options.timeline = true;
    step.kernel(1, {1});  // changes nothing
    const MemoryReport report = trackMemory(step.program(), options);
    ASSERT_EQ(report.samples.size(), 3U);
    EXPECT_EQ(of(report.samples[0].bytes, MemoryCategory::Activations), 8 * kMiB);
    EXPECT_EQ(report.samples[2].task, 2U);
    EXPECT_EQ(of(report.samples[2].bytes, MemoryCategory::Activations), 0);
    EXPECT_EQ(of(report.samples[2].bytes, MemoryCategory::Parameters), 4 * kMiB);
}

TEST(MemoryTracker, OutOfMemoryNamesTheFirstTaskAndTensorThatDoNotFit) {
    TinyStep step;
    const BufferId small = step.buffer(30 * kMiB), large = step.buffer(80 * kMiB);
    step.kernel(1, {1});
    step.use(small, UseKind::Allocate);
    step.kernel(1, {1});
    step.use(large, UseKind::Allocate);
    MemoryOptions options;
    options.capacityBytes = 100 * kMiB;  // 30 + 80 do not fit
    const MemoryReport report = trackMemory(step.program(), options);
    EXPECT_TRUE(report.outOfMemory);
    EXPECT_EQ(report.failedTask, 1U);
    EXPECT_EQ(report.failedBuffer, large);
    EXPECT_EQ(report.peakAllocated, 110 * kMiB) << "goes on, to say how much would be needed";
}

TEST(MemoryTracker, TheContextTakesItsShareOfTheCapacity) {
    TinyStep step;
    const BufferId b = step.buffer(90 * kMiB);
    step.kernel(1, {1});
    step.use(b, UseKind::Allocate);
    MemoryOptions options;
    options.capacityBytes = 100 * kMiB;
    EXPECT_FALSE(trackMemory(step.program(), options).outOfMemory);
    options.contextBytes = 11 * kMiB;  // 90 + 11 > 100
    EXPECT_TRUE(trackMemory(step.program(), options).outOfMemory);
}

}  // namespace
}  // namespace ringside::testing
