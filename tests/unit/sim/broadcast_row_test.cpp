// Broadcasts in a row through binomial trees: ranks come and go one by one. docs/models/player.md.
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "tests/support/tiny_step.h"

namespace ringside::testing {
namespace {

constexpr StreamId kCompute = 1, kComm = 2;

/// A hop takes 100 ns; the ranks come together: 300 ns for four.
TaskId broadcast(TinyStep& step, std::int32_t root, std::vector<TaskId> after = {}) {
    const TaskId t = step.collective(kComm, 300, std::move(after));
    CollectiveWork& work = step.schedule.collectives.back();
    work.op = CollectiveOp::Broadcast;
    work.root = root;
    step.prices.collectives.back().tree = BroadcastHop{0, 100e-9};
    return t;
}

TEST(BroadcastRow, OneAloneTakesItsPrice) {
    TinyStep step({4});
    const TaskId b = broadcast(step, 1);
    EXPECT_EQ(step.played().classes[0][b].end, ns(300));
}

TEST(BroadcastRow, ARankThatHasPassedOneOnBeginsTheNext) {
    // From 0: ranks 0 and 2 are through at 200, 1 and 3 at 300. From 2, then: 2 → 0 has the link alone from 200 to 300, 2 → 3 follows until 400, 3 → 1 until 500.
    TinyStep step({4});
    const TaskId first = broadcast(step, 0), second = broadcast(step, 2);
    const Timeline timeline = step.played();
    EXPECT_EQ(timeline.classes[0][first].end, ns(300));
    EXPECT_EQ(timeline.classes[0][second].end, ns(500));
}

TEST(BroadcastRow, OneThatWaitsForOtherWorkBeginsAfresh) {
    // The second needs a kernel that ends at 1000: 1000 + 300.
    TinyStep step({4});
    broadcast(step, 0);
    const TaskId k = step.kernel(kCompute, {1000});
    const TaskId second = broadcast(step, 2, {k});
    EXPECT_EQ(step.played().classes[0][second].end, ns(1300));
}

TEST(BroadcastRow, BehindAnotherCollectiveAllBeginTogether) {
    TinyStep step({4});
    step.collective(kComm, 50);
    const TaskId b = broadcast(step, 2);
    EXPECT_EQ(step.played().classes[0][b].end, ns(350));
}

TEST(BroadcastRow, ALateLeafNeedsOnlyItsOwnHop) {
    // Rank 3 computes until 1000; all others are ready, so it is through at 1100.
    TinyStep step({1, 1, 1, 1});
    const TaskId k = step.kernel(kCompute, {0, 0, 0, 1000});
    const TaskId b = broadcast(step, 0, {k});
    EXPECT_EQ(step.played().classes[0][b].end, ns(1100));
}

TEST(BroadcastRow, FoldingRanksChangesNothing) {
    TinyStep step({3, 5});
    const TaskId k = step.kernel(kCompute, {40, 70});
    TaskId last = 0;
    for (const std::int32_t root : {0, 0, 1, 5, 7, 2}) last = broadcast(step, root, {k});
    const Timeline folded = step.played();
    const Timeline all = *play(unfoldRanks(step.schedule), step.prices);
    for (std::size_t r = 0; r < 8; ++r)
        for (TaskId t = 0; t <= last; ++t) EXPECT_EQ(all.classes[r][t].end, folded.classes[r < 3 ? 0 : 1][t].end) << "rank " << r << ", task " << t;
}

TEST(BroadcastRow, OfAllRootsIsFasterThanOneByOneAndNoFasterThanTheLinks) {
    // Eight ranks, each once the root: one by one 8 · 600 ns. Every rank takes in seven buffers: 700 ns.
    TinyStep step({8});
    TaskId last = 0;
    for (std::int32_t root = 0; root < 8; ++root) last = broadcast(step, root);
    const Time end = step.played().classes[0][last].end;
    EXPECT_LT(end, ns(8 * 600));
    EXPECT_GE(end, ns(700));
}

}  // namespace
}  // namespace ringside::testing
