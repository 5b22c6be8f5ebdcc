#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "tests/support/tiny_step.h"

namespace ringside::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr StreamId kCompute = 1, kNccl = 2, kNccl2 = 3;

TEST(Player, AStreamRunsItsTasksInIssueOrderOneAtATime) {
    TinyStep step;
    const TaskId a = step.kernel(kCompute, {100}), b = step.kernel(kCompute, {50});
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][a].end, ns(100));
    EXPECT_EQ(timeline.classes[0][b].start, ns(100));
    EXPECT_EQ(timeline.stepTime, ns(150));
}

TEST(Player, StreamsRunBesideEachOther) {
    TinyStep step;
    step.kernel(kCompute, {100});
    const TaskId other = step.copy(kNccl, 70);
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][other].start, ns(0));
    EXPECT_EQ(timeline.stepTime, ns(100));
}

TEST(Player, ADependencyHoldsBackAnotherStreamAndWhatIsBehindItThere) {
    // compute: a 0–100. other: b waits for a, 100–130; c stands behind b, 130–150.
    TinyStep step;
    const TaskId a = step.kernel(kCompute, {100});
    const TaskId b = step.copy(kNccl, 30, {a});
    const TaskId c = step.copy(kNccl, 20);
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][b].start, ns(100));
    EXPECT_EQ(timeline.classes[0][c].start, ns(130));
    EXPECT_EQ(timeline.stepTime, ns(150));
}

TEST(Player, ManyTinyKernelsTakeAsLongAsTheHostNeedsToLaunchThem) {
    // 50 kernels of 1 ns, each launched in 5 ns: the last is issued at 250 and ends at 251.
    TinyStep step;
    step.launch(5, 5);
    for (int i = 0; i < 50; ++i) step.kernel(kCompute, {1});
    EXPECT_EQ(step.played().stepTime, ns(251));
}

TEST(Player, WithoutRunAheadEachKernelTakesTheLongerOfItsLaunchAndItself) {
    // Kernels of 100 and 1 ns in turn, launched in 5 ns. A launch begins when the last but one has ended: the 1 ns kernels hide behind
    // the launches of the next long ones, so a pair takes 100 + 5; after the last pair nothing is launched, 1 instead of 5.
    TinyStep step;
    step.launch(5, 5);
    step.prices.nodes[0].runAhead = 1;
    for (int i = 0; i < 5; ++i) {
        step.kernel(kCompute, {100});
        step.kernel(kCompute, {1});
    }
    EXPECT_EQ(step.played().stepTime, ns(5 + 5 * 105 - 4));
}

TEST(Player, TheHostRunsAheadOfLongKernels) {
    // 10 kernels of 100 ns, each launched in 5 ns: only the first launch shows. 5 + 10·100.
    TinyStep step;
    step.launch(5, 5);
    for (int i = 0; i < 10; ++i) step.kernel(kCompute, {100});
    EXPECT_EQ(step.played().stepTime, ns(1005));
}

TEST(Player, ACollectiveHasALaunchCostOfItsOwn) {
    TinyStep step({2});
    step.launch(5, 30);
    const TaskId a = step.kernel(kCompute, {1}), b = step.collective(kNccl, 10);
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][a].issued, ns(5));
    EXPECT_EQ(timeline.classes[0][b].issued, ns(35));
    EXPECT_EQ(timeline.stepTime, ns(45));
}

TEST(Player, AHostSyncStopsTheHostUntilWhatItWaitsForHasEnded) {
    // a is issued at 5 and runs to 105; only then the host launches b (110) and b runs to 120.
    TinyStep step;
    step.launch(5, 5);
    const TaskId a = step.kernel(kCompute, {100});
    const TaskId sync = step.hostSync({a});
    const TaskId b = step.kernel(kCompute, {10});
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][sync].start, ns(5));
    EXPECT_EQ(timeline.classes[0][sync].end, ns(105));
    EXPECT_EQ(timeline.classes[0][b].issued, ns(110));
    EXPECT_EQ(timeline.stepTime, ns(120));
}

TEST(Player, AHostSyncOnSeveralTasksWaitsForTheLast) {
    TinyStep step;
    const TaskId fast = step.kernel(kCompute, {10}), slow = step.copy(kNccl, 200);
    const TaskId sync = step.hostSync({fast, slow});
    EXPECT_EQ(step.played().classes[0][sync].end, ns(200));
}

TEST(Player, HostWorkDelaysWhatIsIssuedAfterIt) {
    TinyStep step;
    step.launch(5, 5, 1000);
    step.hostWork();
    const TaskId a = step.kernel(kCompute, {1});
    EXPECT_EQ(step.played().classes[0][a].start, ns(1005));
}

TEST(Player, ACollectiveStartsWhenTheLastRankHasArrived) {
    // Class 0 is ready after 100, class 1 after 300; the collective takes 50 and ends at 350 for both.
    TinyStep step({4, 4});
    const TaskId work = step.kernel(kCompute, {100, 300});
    const TaskId reduce = step.collective(kNccl, 50, {work});
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][reduce].start, ns(100)) << "start is when the rank itself got there";
    EXPECT_EQ(timeline.classes[1][reduce].start, ns(300));
    EXPECT_EQ(timeline.classes[0][reduce].end, ns(350));
    EXPECT_EQ(timeline.classes[1][reduce].end, ns(350));
}

TEST(Player, CollectivesOfOneCommunicatorSerialiseEvenFromDifferentStreams) {
    // Both could start at 0; the second waits for the first: 0–50, 50–80.
    TinyStep step({2});
    const TaskId a = step.collective(kNccl, 50), b = step.collective(kNccl2, 30);
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][a].end, ns(50));
    EXPECT_EQ(timeline.classes[0][b].start, ns(50));
    EXPECT_EQ(timeline.classes[0][b].end, ns(80));
}

TEST(Player, CollectivesOfDifferentCommunicatorsOverlap) {
    TinyStep step({2});
    step.schedule.axes.push_back({"tp", 2, 1});
    step.collective(kNccl, 50);
    const TaskId b = step.collective(kNccl2, 30);
    step.schedule.collectives.back().axis = 1;
    EXPECT_EQ(step.played().classes[0][b].end, ns(30));
}

TEST(Player, SerialisationFollowsIssueOrderNotReadiness) {
    // b is ready at 0 but was issued after a, which waits for a kernel until 100: a 100–150, b 150–180.
    TinyStep step({2});
    const TaskId work = step.kernel(kCompute, {100});
    step.collective(kNccl, 50, {work});
    const TaskId b = step.collective(kNccl2, 30);
    EXPECT_EQ(step.played().classes[0][b].end, ns(180));
}

TEST(Player, AKernelSlowsByTheFactorOnlyWhileACollectiveRuns) {
    // The collective runs 0–60. In those 60 ns a kernel twice as slow does 30 ns of its work; the other 70 take 70: ends at 130.
    TinyStep step({2});
    step.collective(kNccl, 60);
    const TaskId kernel = step.kernel(kCompute, {100}, {}, 2.0F);
    EXPECT_EQ(step.played().classes[0][kernel].end, ns(130));
}

TEST(Player, AKernelThatIsRunningWhenACollectiveStartsSlowsFromThereOn) {
    // The collective runs 40–100 after a copy; the kernel does 40 alone, 30 in the 60 beside it, 30 after: 130.
    TinyStep step({2});
    const TaskId gate = step.copy(kNccl2, 40);
    step.collective(kNccl, 60, {gate});
    const TaskId kernel = step.kernel(kCompute, {100}, {}, 2.0F);
    EXPECT_EQ(step.played().classes[0][kernel].end, ns(130));
}

TEST(Player, ARankThatWaitsForItsPeersIsSlowedWhileItWaits) {
    // Class 0 arrives at 0, class 1 at 200 (its copy gate differs by compute); the collective ends at 210. Class 0's kernel of
    // 100 runs beside the waiting collective all the time: 200.
    TinyStep step({1, 1});
    const TaskId gate = step.kernel(kNccl2, {0, 200});
    step.collective(kNccl, 10, {gate});
    const TaskId kernel = step.kernel(kCompute, {100}, {}, 2.0F);
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][kernel].end, ns(200));
    EXPECT_EQ(timeline.classes[1][kernel].end, ns(100));
}

TEST(Player, RanksThatWaitForEachOtherForeverAreAnErrorThatNamesTheTask) {
    // Two programs issue two different collectives in opposite order.
    TinyStep step({1, 1});
    step.collective(kNccl, 10);
    step.collective(kNccl, 10);
    step.schedule.collectives[1].elements = 7;
    step.schedule.programs.push_back(step.program());
    std::swap(step.schedule.programs[1].tasks[0].work, step.schedule.programs[1].tasks[1].work);
    step.schedule.classes[1].program = 1;
    const Result<Timeline> timeline = play(step.schedule, step.prices);
    ASSERT_FALSE(timeline);
    EXPECT_EQ(timeline.error().code, ErrorCode::BadInput);
    EXPECT_THAT(timeline.error().toString(), AllOf(HasSubstr("rank 0 waits forever in task 0"), HasSubstr("all_reduce bucket 0")));
}

TEST(Player, UnfoldedRanksHaveTheTimesOfTheirClass) {
    TinyStep step({3, 2});
    const TaskId work = step.kernel(kCompute, {100, 130}, {}, 1.5F);
    step.collective(kNccl, 50, {work});
    step.kernel(kCompute, {70, 20}, {}, 1.5F);
    const Timeline folded = step.played();
    const Schedule unfolded = unfoldRanks(step.schedule);
    ASSERT_EQ(unfolded.classes.size(), 5U);
    const Timeline all = *play(unfolded, step.prices);
    for (std::size_t r = 0; r < 5; ++r)
        for (TaskId t = 0; t < 3; ++t) EXPECT_EQ(all.classes[r][t].end, folded.classes[r < 3 ? 0 : 1][t].end) << "rank " << r << ", task " << t;
}

}  // namespace
}  // namespace ringside::testing
