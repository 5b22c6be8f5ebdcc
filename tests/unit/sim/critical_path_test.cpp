#include <gtest/gtest.h>

#include "sim/player/critical_path.h"
#include "tests/support/tiny_step.h"

namespace ringside::testing {
namespace {

constexpr StreamId kCompute = 1, kNccl = 2, kNccl2 = 3;

std::vector<PathSegment> pathOf(const TinyStep& step) {
    const Timeline timeline = step.played();
    std::vector<PathSegment> path = criticalPath(step.schedule, timeline);
    // It covers [0, step) without gaps.
    Time cursor;
    for (const PathSegment& segment : path) {
        EXPECT_EQ(segment.begin, cursor);
        EXPECT_LT(segment.begin, segment.end);
        cursor = segment.end;
    }
    EXPECT_EQ(cursor, timeline.stepTime);
    return path;
}

TEST(CriticalPath, GoesThroughTheDependencyThatEndedLast) {
    // compute 0–100, copy 0–30 on another stream, both before the last kernel 100–120: the copy is not on the path.
    TinyStep step;
    const TaskId a = step.kernel(kCompute, {100}), b = step.copy(kNccl, 30);
    const TaskId c = step.kernel(kCompute, {20}, {a, b});
    const auto path = pathOf(step);
    ASSERT_EQ(path.size(), 2U);
    EXPECT_EQ(path[0].task, a);
    EXPECT_EQ(path[1].task, c);
}

TEST(CriticalPath, ExposedCommunicationIsOnItAndHiddenIsNot) {
    // a 0–100 → all-reduce 100–180, b 100–150 hides part of it, c waits for the all-reduce: 180–190.
    TinyStep step({2});
    const TaskId a = step.kernel(kCompute, {100});
    const TaskId reduce = step.collective(kNccl, 80, {a});
    step.kernel(kCompute, {50});
    step.kernel(kCompute, {10}, {reduce});
    const auto path = pathOf(step);
    ASSERT_EQ(path.size(), 3U);
    EXPECT_EQ(path[1].kind, PathKind::Communication);
    EXPECT_EQ(path[1].begin, ns(100));
    EXPECT_EQ(path[1].end, ns(180));
}

TEST(CriticalPath, AHostBoundStepIsHostTime) {
    // Launches of 5 ns, kernels of 1 ns: all but the last kernel is the host.
    TinyStep step;
    step.launch(5, 5);
    for (int i = 0; i < 10; ++i) step.kernel(kCompute, {1});
    const auto path = pathOf(step);
    Time host;
    for (const PathSegment& segment : path)
        if (segment.kind == PathKind::Host) host += segment.end - segment.begin;
    EXPECT_EQ(host, ns(50));
}

TEST(CriticalPath, AHostThatMayNotGetFurtherAheadWaitsForTheDevice) {
    // Launches of 5 ns, kernels of 100 and 1 ns in turn, at most one issued ahead of the running one. After the first launch the host
    // waits for each long kernel and then launches the next, while the short one runs and is over: 526 ns in all, of which the long
    // kernels take 5·100, the last short one 1, and the host five launches of 5.
    TinyStep step;
    step.launch(5, 5);
    step.prices.nodes[0].runAhead = 1;
    for (int i = 0; i < 5; ++i) {
        step.kernel(kCompute, {100});
        step.kernel(kCompute, {1});
    }
    Time host;
    for (const PathSegment& segment : pathOf(step))
        if (segment.kind == PathKind::Host) host += segment.end - segment.begin;
    EXPECT_EQ(host, ns(5 + 4 * 5));
}

TEST(CriticalPath, CrossesToTheRankThatArrivedLast) {
    // Class 1 is the slow one: its kernel 0–300, then the all-reduce 300–350.
    TinyStep step({1, 1});
    const TaskId work = step.kernel(kCompute, {100, 300});
    step.collective(kNccl, 50, {work});
    const auto path = pathOf(step);
    ASSERT_EQ(path.size(), 2U);
    EXPECT_EQ(path[0].rankClass, 1U);
    EXPECT_EQ(path[0].end, ns(300));
    EXPECT_EQ(path[1].begin, ns(300));
}

TEST(CriticalPath, FollowsACommunicatorFromStreamToStream) {
    TinyStep step({2});
    const TaskId a = step.collective(kNccl, 50), b = step.collective(kNccl2, 30);
    const auto path = pathOf(step);
    ASSERT_EQ(path.size(), 2U);
    EXPECT_EQ(path[0].task, a);
    EXPECT_EQ(path[1].task, b);
}

TEST(CriticalPath, AHostSyncPutsWhatItWaitedForOnThePath) {
    TinyStep step;
    step.launch(5, 5);
    const TaskId a = step.kernel(kCompute, {100});
    step.hostSync({a});
    const TaskId b = step.kernel(kCompute, {10});
    // host 0–5, a 5–105, host 105–110, b 110–120.
    const auto path = pathOf(step);
    ASSERT_EQ(path.size(), 4U);
    EXPECT_EQ(path[1].task, a);
    EXPECT_EQ(path[2].kind, PathKind::Host);
    EXPECT_EQ(path[3].task, b);
}

}  // namespace
}  // namespace ringside::testing
