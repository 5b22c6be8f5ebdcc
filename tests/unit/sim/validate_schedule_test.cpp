// One test per rule: the step is right but for one thing, and the message names the rule and the task.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/validate_schedule.h"
#include "tests/support/tiny_step.h"

namespace ringside::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr StreamId kCompute = 1, kNccl = 2;

std::string brokenRule(const Schedule& schedule) {
    const Result<void> result = validateSchedule(schedule);
    return result ? "the schedule is valid" : result.error().toString();
}

/// Writes a bucket, reduces it, reads it: valid.
struct GoodStep : TinyStep {
    GoodStep() : TinyStep({1, 1}) {
        bucket = buffer(100, MemoryCategory::Buckets);
        write = kernel(kCompute, {10});
        use(bucket, UseKind::Allocate);
        use(bucket, UseKind::Write);
        reduce = collective(kNccl, 10, {write});
        use(bucket, UseKind::Write);
        read = kernel(kCompute, {10}, {reduce});
        use(bucket, UseKind::Read);
        use(bucket, UseKind::Free);
    }
    BufferId bucket = 0;
    TaskId write = 0, reduce = 0, read = 0;
};

TEST(ValidateSchedule, AcceptsARightSchedule) { EXPECT_EQ(brokenRule(GoodStep().schedule), "the schedule is valid"); }

TEST(ValidateSchedule, NeedsAWorkload) {
    GoodStep step;
    step.schedule.workload.reset();
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("has no workload"));
}

TEST(ValidateSchedule, StreamZeroIsTheHostAndOneTheComputeStream) {
    GoodStep step;
    std::swap(step.program().streams[0], step.program().streams[1]);
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("stream 0 must be the host and stream 1 the compute stream"));
}

TEST(ValidateSchedule, TasksNameAnExistingStream) {
    GoodStep step;
    step.program().tasks[step.read].stream = 9;
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 2"), HasSubstr("its stream does not exist")));
}

TEST(ValidateSchedule, DeviceTasksAreNotOnTheHostStream) {
    GoodStep step;
    step.program().tasks[step.read].stream = kHostStream;
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 2"), HasSubstr("host tasks run on the host stream and device tasks do not")));
}

TEST(ValidateSchedule, HostTasksAreOnTheHostStream) {
    GoodStep step;
    step.hostWork();
    step.program().tasks.back().stream = kCompute;
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 3 (training loop)"), HasSubstr("host tasks run on the host stream")));
}

TEST(ValidateSchedule, WorkPointsIntoItsTable) {
    GoodStep step;
    step.program().tasks[step.reduce].work = 7;
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 1"), HasSubstr("its work does not exist")));
}

TEST(ValidateSchedule, DependenciesPointToEarlierTasks) {
    GoodStep step;
    step.program().dependencies[0] = step.read;  // of the all-reduce
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 1 (all_reduce bucket 0)"), HasSubstr("depends on task 2, which is not issued before it")));
}

TEST(ValidateSchedule, BuffersAreAllocatedBeforeUse) {
    GoodStep step;
    step.program().uses[0].kind = UseKind::Read;
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 0"), HasSubstr("uses bucket 0, which is not allocated")));
}

TEST(ValidateSchedule, BuffersAreAllocatedOnce) {
    GoodStep step;
    step.program().uses[2].kind = UseKind::Allocate;  // by the all-reduce
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 1 (all_reduce bucket 0)"), HasSubstr("allocates bucket 0, which is allocated already")));
}

TEST(ValidateSchedule, BuffersAreNotUsedAfterTheyAreFreed) {
    GoodStep step;
    step.kernel(kCompute, {1});
    step.use(step.bucket, UseKind::Read);
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 3"), HasSubstr("uses bucket 0, which is not allocated")));
}

TEST(ValidateSchedule, BuffersAreFreedByTheEndOfTheStep) {
    GoodStep step;
    step.program().uses.back().kind = UseKind::Read;
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("bucket 0 is never freed"));
    step.program().buffers[step.bucket].outlives = true;
    EXPECT_EQ(brokenRule(step.schedule), "the schedule is valid") << "what outlives the step need not be freed";
}

TEST(ValidateSchedule, PersistentBuffersAreNeitherAllocatedNorFreed) {
    GoodStep step;
    step.program().buffers[step.bucket].persistent = true;
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 0"), HasSubstr("allocates bucket 0, which is persistent")));
    step.program().uses[0].kind = UseKind::Read;
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 2"), HasSubstr("frees bucket 0, which is persistent")));
}

TEST(ValidateSchedule, UsesNameAnExistingBuffer) {
    GoodStep step;
    step.program().uses[1].buffer = 5;
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 0"), HasSubstr("uses a buffer that does not exist")));
}

TEST(ValidateSchedule, AReaderIsOrderedAfterTheWriter) {
    GoodStep step;
    step.program().tasks[step.read].dependencyCount = 0;  // the compute stream no longer waits for the all-reduce
    EXPECT_THAT(brokenRule(step.schedule), AllOf(HasSubstr("task 2"), HasSubstr("uses bucket 0 but is not ordered after task 1, which writes it")));
}

TEST(ValidateSchedule, AHostSyncOrdersWhatIsIssuedAfterIt) {
    TinyStep step;
    const BufferId b = step.buffer(1, MemoryCategory::Workspace, true);
    const TaskId write = step.kernel(kNccl, {1});
    step.use(b, UseKind::Write);
    step.hostSync({write});
    step.kernel(kCompute, {1});
    step.use(b, UseKind::Read);
    EXPECT_EQ(brokenRule(step.schedule), "the schedule is valid");
}

TEST(ValidateSchedule, ClassesHoldEveryRank) {
    GoodStep step;
    step.schedule.classes.pop_back();
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("its classes hold 1 ranks, but the world has 2"));
}

TEST(ValidateSchedule, NoRankIsInTwoClasses) {
    GoodStep step;
    step.schedule.world = 4;
    step.schedule.axes[0].size = 4;
    step.schedule.classes[0].ranks = {0, 2, 2};  // 0 and 2
    step.schedule.classes[1].ranks = {1, 1, 2};  // 1 and 2
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("classes 0 and 1 share a rank"));
}

TEST(ValidateSchedule, RanksLieInTheWorld) {
    GoodStep step;
    step.schedule.classes[1].ranks.first = 5;
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("class 1 holds rank 5, but the world has 2"));
}

TEST(ValidateSchedule, ClassesNameAnExistingProgram) {
    GoodStep step;
    step.schedule.classes[1].program = 3;
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("a rank class names a program that does not exist"));
}

TEST(ValidateSchedule, CollectivesNameAnExistingAxis) {
    GoodStep step;
    step.schedule.collectives[0].axis = 4;
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("a collective names an axis that does not exist"));
}

TEST(ValidateSchedule, RanksOfAGroupIssueTheSameCollectives) {
    GoodStep step;
    step.schedule.programs.push_back(step.program());
    step.schedule.classes[1].program = 1;
    EXPECT_EQ(brokenRule(step.schedule), "the schedule is valid");
    step.schedule.collectives.push_back(step.schedule.collectives[0]);
    step.schedule.programs[1].tasks[step.reduce].work = 1;
    EXPECT_EQ(brokenRule(step.schedule), "the schedule is valid");  // the same collective, listed twice
    step.schedule.collectives[1].elements += 1;
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("ranks 0 and 1 issue different collectives on the axis 'dp'"));
}

TEST(ValidateSchedule, ARankThatIssuesNoneOfItsPeersCollectivesIsFoundToo) {
    GoodStep step;
    RankProgram lonely;
    lonely.streams = step.program().streams;
    step.schedule.programs.insert(step.schedule.programs.begin(), lonely);
    step.schedule.classes[0].program = 0;
    step.schedule.classes[1].program = 1;
    EXPECT_THAT(brokenRule(step.schedule), HasSubstr("ranks 0 and 1 issue different collectives on the axis 'dp'"));
}

}  // namespace
}  // namespace ringside::testing
