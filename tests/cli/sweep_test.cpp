// ringside sweep as a shell uses it: same bytes with any number of threads or ranks, killed and resumed, interrupted, refused.
#include <algorithm>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kBase = "sweep --model gpt2 --device a100-80gb-sxm --devices 8 ";

std::string range(const std::string& key, int first, int last) {
    std::string text = "--set " + key + "=" + std::to_string(first);
    for (int i = first + 1; i <= last; ++i) text += "," + std::to_string(i);
    return text + " ";
}

/// 1,800 rows, every other one failing (twelve devices do not fill nodes of eight): long enough to be cut short.
const std::string kLong =
    "sweep --model gpt2 --device a100-80gb-sxm " + range("micro_batch", 1, 30) + range("bucket_mb", 1, 30) + "--set devices=8,12 ";

std::size_t linesOf(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

/// Starts the program in `dir` and, once `file` holds so many lines, sends it the signal. Returns how it ended, as waitpid says.
int signalWhenThereAre(const WorkDir& dir, const std::string& line, const std::string& file, std::size_t lines, int signal) {
    const pid_t child = fork();
    if (child == 0) {
        const int err = open((dir.path() / "stderr.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (chdir(dir.path().c_str()) != 0 || dup2(err, 1) < 0 || dup2(err, 2) < 0) _exit(126);
        execl("/bin/sh", "sh", "-c", ("exec '" RINGSIDE_PROGRAM "' " + line).c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (linesOf(dir.read(file)) >= lines) {
            kill(child, signal);
            waitpid(child, &status, 0);
            break;
        }
        std::this_thread::yield();
    }
    return status;
}

TEST(Sweep, WritesAHeaderAndARowForEveryCombination) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside(kBase + "--set micro_batch=1,2 --set strategy=ddp,naive --out rows.jsonl");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(run.err, "");
    EXPECT_EQ(run.out, "rows.jsonl: 4 rows: 4 fit\n");
    std::istringstream text(dir.read("rows.jsonl"));
    std::string line;
    std::getline(text, line);
    EXPECT_EQ(json::parse(line)["format"], "ringside-sweep");
    std::vector<std::string> order;
    for (int index = 0; std::getline(text, line); ++index) {
        const json row = json::parse(line);
        EXPECT_EQ(row["index"], index);
        order.push_back(std::to_string(row["micro_batch"].get<int>()) + row["strategy"].get<std::string>());
        // The row says what predict says.
        const json result =
            json::parse(dir.ringside("predict --model gpt2 --device a100-80gb-sxm --devices 8 --json --micro-batch " +
                                     std::to_string(row["micro_batch"].get<int>()) + " --strategy " + row["strategy"].get<std::string>())
                            .out);
        EXPECT_EQ(row["step_time_s"], result["step_time_s"]["median"]);
        EXPECT_EQ(row["peak_memory_bytes"], result["memory"]["peak_device_bytes"]);
        EXPECT_EQ(row["exposed_communication_s"], result["breakdown_s"]["communication_exposed"]);
    }
    EXPECT_THAT(order, ElementsAre("1ddp", "1naive", "2ddp", "2naive"));
}

TEST(Sweep, GivesTheSameBytesWithOneJobAndWithTwo) {
    const WorkDir dir;
    const std::string grid = kBase + range("micro_batch", 1, 10) + range("bucket_mb", 1, 10);
    EXPECT_EQ(dir.ringside(grid + "--jobs 1 --out one.jsonl").exitCode, 0);
    EXPECT_EQ(dir.ringside(grid + "--jobs 2 --out two.jsonl").exitCode, 0);
    EXPECT_EQ(linesOf(dir.read("one.jsonl")), 101U);
    EXPECT_EQ(dir.read("one.jsonl"), dir.read("two.jsonl"));
    // Without a file the rows go to standard output, the same ones.
    EXPECT_EQ(dir.ringside(grid).out, dir.read("one.jsonl"));
}

TEST(Sweep, KilledTimeAndAgainAndResumedHoldsTheSameBytesAsAnUninterruptedRun) {
    const WorkDir dir;
    ASSERT_EQ(dir.ringside(kLong + "--out whole.jsonl").exitCode, 0);
    ASSERT_EQ(linesOf(dir.read("whole.jsonl")), 1801U);
    for (const std::size_t lines : {20U, 300U, 600U}) {
        const int status = signalWhenThereAre(dir, kLong + "--jobs 1 --out rows.jsonl", "rows.jsonl", lines, SIGKILL);
        ASSERT_TRUE(WIFSIGNALED(status)) << "it ended before it could be killed";
        EXPECT_LT(linesOf(dir.read("rows.jsonl")), 1801U);
    }
    dir.write("rows.jsonl", dir.read("rows.jsonl") + "{\"index\":99");  // a line that a crash of the machine tore
    const ProgramRun run = dir.ringside(kLong + "--out rows.jsonl");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("1,800 rows, "));
    EXPECT_THAT(run.out, HasSubstr(" of them from before"));
    EXPECT_EQ(dir.read("rows.jsonl"), dir.read("whole.jsonl"));
    EXPECT_EQ(dir.ringside(kLong + "--out rows.jsonl").exitCode, 0);  // nothing is left to do, and nothing changes
    EXPECT_EQ(dir.read("rows.jsonl"), dir.read("whole.jsonl"));
}

TEST(Sweep, InterruptedEndsCleanlyAndSaysHowToGoOn) {
    for (const int signal : {SIGINT, SIGTERM}) {
        const WorkDir dir;
        const int status = signalWhenThereAre(dir, kLong + "--jobs 1 --format csv --out rows.csv", "rows.csv", 20, signal);
        ASSERT_TRUE(WIFEXITED(status));
        EXPECT_EQ(WEXITSTATUS(status), 130);
        EXPECT_THAT(dir.read("stderr.txt"), HasSubstr("the same command goes on from there"));
        const std::string text = dir.read("rows.csv");
        EXPECT_EQ(text.back(), '\n');
        EXPECT_LT(linesOf(text), 1802U);
        EXPECT_EQ(dir.ringside(kLong + "--format csv --out rows.csv").exitCode, 0);
        EXPECT_EQ(dir.read("rows.csv"), dir.ringside(kLong + "--format csv").out);
    }
}

TEST(Sweep, RefusesAFileOfAnotherGridUnlessToldToOverwriteIt) {
    const WorkDir dir;
    ASSERT_EQ(dir.ringside(kBase + "--set micro_batch=1,2 --out rows.jsonl").exitCode, 0);
    const std::string before = dir.read("rows.jsonl");
    const ProgramRun other = dir.ringside(kBase + "--set micro_batch=1,2,4 --out rows.jsonl");
    EXPECT_EQ(other.exitCode, 3);
    EXPECT_THAT(other.err, HasSubstr("rows of another grid"));
    EXPECT_THAT(other.err, HasSubstr("--overwrite"));
    EXPECT_EQ(dir.read("rows.jsonl"), before);
    EXPECT_EQ(dir.ringside(kBase + "--set micro_batch=1,2,4 --out rows.jsonl --overwrite").exitCode, 0);
    EXPECT_EQ(linesOf(dir.read("rows.jsonl")), 4U);
}

TEST(Sweep, TakesAListOfPatches) {
    const WorkDir dir;
    dir.write("list.jsonl", "{\"devices\": 16}\n\n{\"strategy\": {\"name\": \"ddp\", \"bucket_mb\": 50}, \"training\": {\"micro_batch\": 2}}\n");
    const ProgramRun run = dir.ringside("sweep --model gpt2 --device a100-80gb-sxm --list list.jsonl");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    ASSERT_EQ(linesOf(run.out), 3U);
    const json last = json::parse(run.out.substr(run.out.rfind('\n', run.out.size() - 2) + 1));
    EXPECT_EQ(last["strategy"], "ddp");
    EXPECT_EQ(last["strategy.bucket_mb"], 50);
    EXPECT_EQ(last["training.micro_batch"], 2);
    dir.write("list.jsonl", "{\"devices\": 16}\n{\"devices\": \n");
    const ProgramRun bad = dir.ringside("sweep --model gpt2 --device a100-80gb-sxm --list list.jsonl");
    EXPECT_EQ(bad.exitCode, 3);
    EXPECT_THAT(bad.err, HasSubstr("list.jsonl:2"));
}

TEST(Sweep, KeepsGoingPastRowsThatCannotBePredicted) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside(kBase + "--set strategy=ddp,naive --set bucket_mb=10,25 --out rows.jsonl");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("2 fit, 2 could not be predicted"));
    EXPECT_THAT(run.out, HasSubstr("row 2: "));
    EXPECT_THAT(dir.read("rows.jsonl"), HasSubstr("the strategy 'naive' has no such setting"));
}

TEST(Sweep, OnAFullDiskIsAnError) {
    const WorkDir dir;
    const ProgramRun run = dir.shell("ringside " + kBase + "--set micro_batch=1,2 > /dev/full");
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_THAT(run.err, HasSubstr("standard output"));
}

struct Refusal {
    std::string arguments;
    std::vector<std::string> says;
    int exitCode;
};

TEST(Sweep, RefusesSlipsBeforeTheFirstRow) {
    for (const Refusal& refusal :
         {Refusal{kBase, {"nothing to vary", "--set", "--list"}, 2}, Refusal{kBase + "--set micro_bacth=1,2", {"did you mean 'micro_batch'?"}, 3},
          Refusal{kBase + "--set micro_batch", {"expected key=value"}, 2},
          Refusal{kBase + "--set micro_batch=1 --jobs none", {"--jobs", "'none'"}, 3},
          Refusal{kBase + "--set micro_batch=1 --list none.jsonl", {"none.jsonl", "cannot open"}, 3},
          Refusal{kBase + "--set micro_batch=1 --out none/rows.jsonl", {"none/rows.jsonl", "No such file"}, 5},
          Refusal{"sweep --model gtp2 --device a100-80gb-sxm --set devices=1,2", {"--model", "did you mean 'gpt2'?"}, 3}}) {
        const WorkDir dir;
        const ProgramRun run = dir.ringside(refusal.arguments);
        EXPECT_EQ(run.exitCode, refusal.exitCode) << refusal.arguments << run.err;
        EXPECT_EQ(run.out, "") << refusal.arguments;
        for (const std::string& words : refusal.says) EXPECT_THAT(run.err, HasSubstr(words)) << refusal.arguments;
        EXPECT_THAT(dir.files(), IsEmpty()) << refusal.arguments;
    }
}

bool hasMpirun() { return WorkDir().shell("command -v mpirun").exitCode == 0; }
const std::string kMpirun = "mpirun --allow-run-as-root --oversubscribe -n ";

class SweepOverRanks : public testing::Test {
protected:
    void SetUp() override {
        if (!hasMpirun()) GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
        if (!RINGSIDE_HAS_MPI) GTEST_SKIP() << "this build has no MPI (Debian: libopenmpi-dev)";
    }
};

TEST_F(SweepOverRanks, WritesTheSameBytesAsOneProcess) {
    const WorkDir dir;
    const std::string grid =
        "sweep --model gpt2 --device a100-80gb-sxm --set devices=8,12,16 " + range("micro_batch", 1, 10) + range("bucket_mb", 1, 10);
    ASSERT_EQ(dir.ringside(grid + "--out alone.jsonl").exitCode, 0);
    for (const char* ranks : {"1", "2", "3"}) {
        const ProgramRun run = dir.shell(kMpirun + ranks + " '" RINGSIDE_PROGRAM "' " + grid + "--overwrite --out ranks.jsonl");
        EXPECT_EQ(run.exitCode, 0) << run.err;
        EXPECT_THAT(run.out, HasSubstr("ranks.jsonl: 300 rows: 200 fit, 100 could not be predicted"));
        EXPECT_EQ(dir.read("ranks.jsonl"), dir.read("alone.jsonl")) << ranks << " ranks";
    }
}

TEST_F(SweepOverRanks, GoesOnWhereOneProcessWasKilled) {
    const WorkDir dir;
    ASSERT_TRUE(WIFSIGNALED(signalWhenThereAre(dir, kLong + "--jobs 1 --out rows.jsonl", "rows.jsonl", 20, SIGKILL)));
    const ProgramRun run = dir.shell(kMpirun + "2 '" RINGSIDE_PROGRAM "' " + kLong + "--out rows.jsonl");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(dir.read("rows.jsonl"), dir.ringside(kLong).out);
}

TEST_F(SweepOverRanks, EndsWithAnErrorWhenARankDiesAndCanBeResumed) {
    const WorkDir dir;
    // Rank 1 is killed once some rows are in the file; the shell around it then ends as a killed rank does.
    dir.write("rank.sh", "'" RINGSIDE_PROGRAM "' " + kLong +
                             "--jobs 1 --out rows.jsonl & child=$!\n"
                             "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then\n"
                             "  while [ \"$(wc -l < rows.jsonl 2>/dev/null || echo 0)\" -lt 20 ]; do :; done; kill -9 $child\n"
                             "fi\n"
                             "wait $child\n");
    const ProgramRun run = dir.shell(kMpirun + "2 sh rank.sh");
    EXPECT_NE(run.exitCode, 0);
    ASSERT_LT(linesOf(dir.read("rows.jsonl")), 1801U) << "it ended before the rank could be killed";
    EXPECT_EQ(dir.ringside(kLong + "--out rows.jsonl").exitCode, 0);
    EXPECT_EQ(dir.read("rows.jsonl"), dir.ringside(kLong).out);
}

TEST_F(SweepOverRanks, SaysOnceWhatIsWrong) {
    const WorkDir dir;
    const ProgramRun run = dir.shell(kMpirun + "2 '" RINGSIDE_PROGRAM "' " + kBase + "--set micro_bacth=1,2 --out rows.jsonl");
    EXPECT_EQ(run.exitCode, 3);
    const std::size_t first = run.err.find("did you mean 'micro_batch'?");
    EXPECT_NE(first, std::string::npos) << run.err;
    EXPECT_EQ(run.err.find("did you mean 'micro_batch'?", first + 1), std::string::npos) << run.err;
}

TEST(SweepUnderMpirun, WithoutMpiSaysWhatToInstall) {
    if (RINGSIDE_HAS_MPI) GTEST_SKIP() << "this build has MPI";
    const WorkDir dir;
    const ProgramRun run = dir.shell("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 '" RINGSIDE_PROGRAM "' " + kBase + "--set micro_batch=1,2");
    EXPECT_EQ(run.exitCode, 4);
    EXPECT_THAT(run.err, HasSubstr("libopenmpi-dev"));
    EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace ringside
