#include "calibrate/ranks/launch.h"

#include <cerrno>
#include <csignal>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrate/ranks/tcp_socket.h"
#include "calibrate/ranks/tcp_store.h"

namespace ringside {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

LaunchOptions quick() {
    LaunchOptions options;
    options.grace = 300ms;
    return options;
}

[[noreturn]] void sleepForEver() {
    for (;;) ::pause();
}

/// Whether this process has no child left, alive or not.
bool hasNoChild() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

/// Where ranks leave their process ids for the test.
class Pids {
public:
    Pids() {
        int pair[2];
        EXPECT_EQ(::pipe(pair), 0);
        read_ = Socket(pair[0]);
        write_ = Socket(pair[1]);
    }
    void leave() {
        const pid_t self = ::getpid();
        EXPECT_EQ(::write(write_.get(), &self, sizeof(self)), static_cast<ssize_t>(sizeof(self)));
    }
    pid_t take() {
        pid_t pid = -1;
        EXPECT_EQ(::read(read_.get(), &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
        return pid;
    }

private:
    Socket read_, write_;
};

TEST(Launch, GivesEveryRankItsPlaceAndReturnsWhatTheyHandBack) {
    const auto results = launchLocalRanks(3, quick(), [](LocalRank& rank) -> Result<std::string> {
        const RankEnv& env = rank.env();
        return fmt::format("{} of {} at {} by {} listens {}", env.rank, env.size, env.masterAddress, env.launcher, env.listenSocket >= 0);
    });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_THAT(*results, testing::ElementsAre("0 of 3 at 127.0.0.1 by local listens true", "1 of 3 at 127.0.0.1 by local listens false",
                                               "2 of 3 at 127.0.0.1 by local listens false"));
    EXPECT_TRUE(hasNoChild());
}

TEST(Launch, BringsBackLargeResults) {
    const std::size_t bytes = 20 << 20;
    const auto results = launchLocalRanks(2, quick(), [&](LocalRank& rank) -> Result<std::string> { return std::string(bytes, static_cast<char>('a' + rank.env().rank)); });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_TRUE((*results)[0] == std::string(bytes, 'a'));
    EXPECT_TRUE((*results)[1] == std::string(bytes, 'b'));
}

TEST(Launch, LetsRanksMeetAtAPortThatIsTheirs) {
    const auto results = launchLocalRanks(3, quick(), [](LocalRank& rank) -> Result<std::string> {
        TRY(const auto store, makeTcpStore(rank.env(), 60s));
        TRY_VOID(store->set(std::to_string(rank.env().rank), std::string(1, static_cast<char>('a' + rank.env().rank))));
        std::string all;
        for (int i = 0; i < rank.env().size; ++i) {
            TRY(const std::string letter, store->get(std::to_string(i), 60s));
            all += letter;
        }
        return all;
    });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_THAT(*results, testing::Each("abc"));
}

TEST(Launch, RefusesAPortThatIsInUseBeforeAnyRankStarts) {
    Socket taken = *listenAt("127.0.0.1", 0);
    LaunchOptions options = quick();
    options.port = portOf(taken);
    const auto results = launchLocalRanks(2, options, [](LocalRank&) -> Result<std::string> { return ""; });
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(results.error().message, AllOf(HasSubstr("is in use"), HasSubstr("--port")));
}

TEST(Launch, ReturnsTheErrorOfTheRankThatGaveUpAndEndsTheOthers) {
    const auto results = launchLocalRanks(3, quick(), [](LocalRank& rank) -> Result<std::string> {
        rank.progress("forward layer 3", 7);
        if (rank.env().rank == 1) return badInput("scenario.json", "layers: found −1");
        sleepForEver();
    });
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::BadInput);
    EXPECT_EQ(results.error().place, "scenario.json");
    EXPECT_THAT(results.error().message, AllOf(HasSubstr("rank 1 failed: layers: found −1"), HasSubstr("'forward layer 3' (step 7)")));
    EXPECT_TRUE(hasNoChild());
}

TEST(Launch, NamesARankThatExitsByItself) {
    const auto results = launchLocalRanks(2, quick(), [](LocalRank& rank) -> Result<std::string> {
        if (rank.env().rank == 0) ::_exit(3);
        sleepForEver();
    });
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(results.error().message, AllOf(HasSubstr("rank 0 exited with code 3"), HasSubstr("had not begun its first task")));
    EXPECT_TRUE(hasNoChild());
}

TEST(Launch, NamesARankThatThrows) {
    const auto results = launchLocalRanks(2, quick(), [](LocalRank& rank) -> Result<std::string> {
        if (rank.env().rank == 1) throw std::runtime_error("a bug (this line is expected in the test's output)");
        return "";
    });
    ASSERT_FALSE(results.has_value());
    EXPECT_THAT(results.error().message, HasSubstr("rank 1 exited with code 70"));
}

TEST(Launch, NamesARankThatWasKilledAndItsLastTask) {
    const auto results = launchLocalRanks(3, quick(), [](LocalRank& rank) -> Result<std::string> {
        rank.progress("all_reduce bucket 1", 3);
        rank.progress("all_reduce bucket 2", 3);
        if (rank.env().rank == 1) ::raise(SIGKILL);
        sleepForEver();
    });
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(results.error().message, AllOf(HasSubstr("rank 1 was killed by signal 9"), HasSubstr("its last task was 'all_reduce bucket 2' (step 3)")));
    EXPECT_TRUE(hasNoChild());
}

TEST(Launch, BlamesTheRankThatWasKilledAndNotThoseThatNoticed) {
    // Rank 1 fails because rank 0, which serves the store, goes away, and may well be seen to fail first.
    const auto results = launchLocalRanks(2, quick(), [](LocalRank& rank) -> Result<std::string> {
        TRY(const auto store, makeTcpStore(rank.env(), 60s));
        TRY_VOID(store->set(std::to_string(rank.env().rank), ""));
        if (rank.env().rank == 0) {
            rank.progress("backward", 0);
            TRY_VOID(store->get("1", 60s));
            ::raise(SIGKILL);
        }
        TRY(const std::string never, store->get("never", 60s));
        return never;
    });
    ASSERT_FALSE(results.has_value());
    EXPECT_THAT(results.error().message, AllOf(HasSubstr("rank 0 was killed by signal 9"), HasSubstr("'backward' (step 0)")));
}

TEST(Launch, EndsARunInWhichARankHangsAndSaysWhoIsBehind) {
    LaunchOptions options = quick();
    options.timeout = 1200ms;
    const auto results = launchLocalRanks(3, options, [](LocalRank& rank) -> Result<std::string> {
        rank.progress("forward", 4);
        if (rank.env().rank != 2) rank.progress("all_reduce bucket 0", 4);  // where the others wait for rank 2
        sleepForEver();
    });
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(results.error().message, AllOf(HasSubstr("no progress for 1200 ms"), HasSubstr("rank 2 is behind: its last task was 'forward' (step 4)"),
                                               HasSubstr("rank 0: its last task was 'all_reduce bucket 0' (step 4)"), Not(HasSubstr("rank 0 is behind"))));
    EXPECT_TRUE(hasNoChild());
}

TEST(Launch, KillsARankThatRefusesToEnd) {
    LaunchOptions options = quick();
    options.timeout = 300ms;
    const auto results = launchLocalRanks(2, options, [](LocalRank& rank) -> Result<std::string> {
        if (rank.env().rank == 0) ::signal(SIGTERM, SIG_IGN);
        sleepForEver();
    });
    ASSERT_FALSE(results.has_value());
    EXPECT_TRUE(hasNoChild());
}

TEST(Launch, DoesNotTakeARankThatReportsForOneThatHangs) {
    LaunchOptions options = quick();
    options.timeout = 2000ms;
    const auto results = launchLocalRanks(1, options, [](LocalRank& rank) -> Result<std::string> {
        // Longer than the time-out in all, with pauses far below it.
        for (int i = 0; i < 110; ++i) {
            rank.progress("step", i);
            ::poll(nullptr, 0, 20);
        }
        return "done";
    });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_EQ((*results)[0], "done");
}

/// Runs a launch of two endless ranks in a process of its own; their ids come through `pids`.
pid_t forkLauncher(Pids& pids) {
    const pid_t launcher = ::fork();
    if (launcher != 0) return launcher;
    const auto results = launchLocalRanks(2, quick(), [&](LocalRank&) -> Result<std::string> {
        pids.leave();
        sleepForEver();
    });
    ::_exit(!results && results.error().message.find("stopped by") != std::string::npos ? 42 : 1);
}

TEST(Launch, EndsItsRanksWhenItIsToldToStop) {
    for (const int signal : {SIGINT, SIGTERM}) {
        Pids pids;
        const pid_t launcher = forkLauncher(pids);
        const pid_t ranks[2] = {pids.take(), pids.take()};
        ASSERT_EQ(::kill(launcher, signal), 0);
        int status = 0;
        ASSERT_EQ(::waitpid(launcher, &status, 0), launcher);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
        for (const pid_t rank : ranks) EXPECT_TRUE(::kill(rank, 0) == -1 && errno == ESRCH) << "an orphan is left";
    }
}

TEST(Launch, LeavesNoRankBehindWhenItIsKilled) {
    // Orphans come to this process instead of init, so that it can see them end.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    Pids pids;
    const pid_t launcher = forkLauncher(pids);
    std::set<pid_t> left = {launcher, pids.take(), pids.take()};
    ASSERT_EQ(::kill(launcher, SIGKILL), 0);
    while (!left.empty()) {
        int status = 0;
        const pid_t ended = ::waitpid(-1, &status, 0);
        ASSERT_GT(ended, 0);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        left.erase(ended);
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    EXPECT_TRUE(hasNoChild());
}

TEST(ProgressBoard, KeepsTheLastTaskWholeAndCutsLongNames) {
    ProgressBoard board = *ProgressBoard::create(2);
    EXPECT_EQ(board.read(1).count, 0U);
    board.report(1, "first", 1);
    board.report(1, std::string(500, 'x'), 2);
    EXPECT_EQ(board.read(1).count, 2U);
    EXPECT_EQ(board.read(1).task, std::string(127, 'x'));
    EXPECT_EQ(board.read(1).step, 2);
    EXPECT_EQ(board.read(0).count, 0U);
}

}  // namespace
}  // namespace ringside
