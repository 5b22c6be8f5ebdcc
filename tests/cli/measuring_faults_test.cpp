// calibrate and validate when something goes wrong, and runs whose servers or workers do not wait for each other: as run_faults_test.cpp has it for run.
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/background_program.h"
#include "tests/cli/run_program.h"
#include "tests/cli/tiny_model.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

std::map<std::string, std::string> torchrun(int rank, int size, int port) {
    return {{"RANK", std::to_string(rank)}, {"LOCAL_RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(size)}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}};
}

void expectGone(const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids)
        while (isAlive(pid)) std::this_thread::yield();
}

/// A port that somebody listens at.
class TakenPort {
public:
    TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof(address);
        EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
        EXPECT_EQ(listen(socket_, 1), 0);
        EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
        port_ = ntohs(address.sin_port);
    }
    ~TakenPort() { close(socket_); }
    int port() const { return port_; }

private:
    int socket_, port_ = 0;
};

/// Has tiny.json and here.json, a profile of this machine for as many ranks.
class Measuring : public testing::Test {
protected:
    void makeProfile(int ranks) const { ASSERT_EQ(dir_.ringside("calibrate --trial --local-ranks " + std::to_string(ranks) + " --out here.json").exitCode, 0); }
    static std::string validate(const std::string& more) { return "validate --profile here.json --models tiny.json --strategies ddp --json " + more; }

    WorkDirWithTinyModel dir_;
};

// ---- validate ---------------------------------------------------------------------------------------------------------------

TEST_F(Measuring, AKilledRankEndsValidateNamingIt) {
    makeProfile(2);
    BackgroundProgram program(dir_, validate("--local-ranks 2 --rounds 1 --steps 10000"));
    const std::vector<pid_t> ranks = program.ranksAtWork(2);
    ASSERT_EQ(ranks.size(), 2U) << program.wait().err;
    kill(ranks[1], SIGKILL);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("rank 1 was killed by signal 9"));
    expectGone(ranks);
}

TEST_F(Measuring, AStoppedRankEndsValidateWithinItsTimeOut) {
    makeProfile(2);
    BackgroundProgram program(dir_, validate("--local-ranks 2 --rounds 1 --steps 10000 --timeout 1"));
    const std::vector<pid_t> ranks = program.ranksAtWork(2);
    ASSERT_EQ(ranks.size(), 2U) << program.wait().err;
    kill(ranks[0], SIGSTOP);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_THAT(run.err, HasSubstr("rank 0 is stopped"));
    expectGone(ranks);
}

TEST_F(Measuring, AFullDiskDoesNotPassForAnAnswerOfValidate) {
    makeProfile(1);
    for (const std::string flag : {"-o /dev/full", "--html /dev/full"}) {
        const ProgramRun run = dir_.ringside("validate --profile here.json --models tiny.json --strategies single --rounds 1 --steps 2 --json " + flag);
        EXPECT_EQ(run.exitCode, 5) << flag << "\n" << run.err;
        EXPECT_THAT(run.err, AllOf(HasSubstr("/dev/full"), HasSubstr("No space left on device"))) << flag;
    }
}

TEST_F(Measuring, SamplesWithNanOrOfAnotherFormatAreRefusedWithTheirLine) {
    makeProfile(1);
    dir_.write("nan.jsonl", "{\"version\": 1, \"key\": \"k\", \"seconds\": [0.1, NaN]}\n{\"version\": 1, \"key\": \"k\", \"seconds\": [0.1]}\n");
    const ProgramRun run = dir_.ringside(validate("--samples nan.jsonl"));
    EXPECT_EQ(run.exitCode, 3);
    EXPECT_THAT(run.err, HasSubstr("nan.jsonl:1"));
}

TEST_F(Measuring, AProfileOfALaterVersionIsRefusedByValidateAndAsABase) {
    makeProfile(1);
    json later = json::parse(dir_.read("here.json"));
    later["version"] = 2;
    dir_.write("here.json", later.dump());
    const ProgramRun validated = dir_.ringside(validate(""));
    EXPECT_EQ(validated.exitCode, 3);
    EXPECT_THAT(validated.err, HasSubstr("here.json: version"));
    dir_.write("out.json", "old");
    const ProgramRun calibrated = dir_.ringside("calibrate --trial --base here.json --collectives-only --local-ranks 2 --out out.json");
    EXPECT_EQ(calibrated.exitCode, 3);
    EXPECT_THAT(calibrated.err, HasSubstr("here.json: version"));
    EXPECT_EQ(dir_.read("out.json"), "old");
}

TEST_F(Measuring, RanksOfALauncherValidateTogetherAndRankZeroReports) {
    makeProfile(2);
    const std::string line = "validate --profile here.json --models tiny.json --strategies ddp,fsdp2 --rounds 2 --steps 3 --timeout 60 --json";
    const int port = freePort();
    BackgroundProgram first(dir_, line, torchrun(0, 2, port), "first"), second(dir_, line, torchrun(1, 2, port), "second");
    const ProgramRun answer = first.wait(), silent = second.wait();
    ASSERT_EQ(answer.exitCode, 0) << answer.err;
    EXPECT_EQ(silent.exitCode, 0) << silent.err;
    EXPECT_EQ(silent.out, "");
    const json rows = json::parse(answer.out)["rows"];
    ASSERT_EQ(rows.size(), 2U);
    for (const json& row : rows) {
        EXPECT_EQ(row["ranks"], 2);
        EXPECT_GT(row["measured_s"], 0);
    }
}

TEST_F(Measuring, ALaunchersRankThatNeverComesEndsValidateAndCalibrateNamingIt) {
    makeProfile(2);
    dir_.write("old.json", "old");
    for (const std::string& line : {validate("--timeout 1"), std::string("calibrate --trial --out old.json --timeout 1")}) {
        BackgroundProgram alone(dir_, line, torchrun(0, 2, freePort()));
        const ProgramRun run = alone.wait();
        EXPECT_EQ(run.exitCode, 5) << line;
        EXPECT_EQ(run.out, "") << line;
        EXPECT_THAT(run.err, AllOf(ContainsRegex("ranks have not come: 1|rank 1 has not come"), HasSubstr("--timeout"))) << line;
    }
    EXPECT_EQ(dir_.read("old.json"), "old");
}

TEST_F(Measuring, ALaunchersRankThatDiesEndsTheOthersValidation) {
    makeProfile(2);
    const int port = freePort();
    const std::string line = validate("--rounds 1 --steps 10000 --timeout 5");
    BackgroundProgram first(dir_, line, torchrun(0, 2, port), "first"), second(dir_, line, torchrun(1, 2, port), "second");
    while (!first.isAtWork() && !first.hasEnded()) std::this_thread::yield();
    ASSERT_FALSE(first.hasEnded()) << first.wait().err;
    kill(second.pid(), SIGKILL);
    const ProgramRun run = first.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("rank 0 failed"));
}

// ---- calibrate ------------------------------------------------------------------------------------------------------------------

TEST_F(Measuring, APortInUseIsNamedByCalibrateAndByARankZero) {
    const TakenPort taken;
    dir_.write("old.json", "old");
    const std::string says = "port " + std::to_string(taken.port()) + " is in use";
    const ProgramRun local = dir_.ringside("calibrate --trial --local-ranks 2 --out old.json --port " + std::to_string(taken.port()));
    EXPECT_EQ(local.exitCode, 5);
    EXPECT_THAT(local.err, AllOf(HasSubstr(says), HasSubstr("--port")));
    for (const char* line : {"calibrate --trial --out old.json --timeout 5", "run --model tiny.json --strategy ddp --timeout 5"}) {
        BackgroundProgram launched(dir_, line, torchrun(0, 2, taken.port()));
        const ProgramRun run = launched.wait();
        EXPECT_EQ(run.exitCode, 5) << line;
        EXPECT_THAT(run.err, AllOf(HasSubstr(says), HasSubstr("MASTER_PORT"))) << line;
    }
    EXPECT_EQ(dir_.read("old.json"), "old");
}

TEST_F(Measuring, ALaunchersRankThatDiesLeavesTheOldProfileOfCalibrate) {
    dir_.write("old.json", "old");
    const std::string line = "calibrate --quick --out old.json --timeout 5";
    const int port = freePort();
    BackgroundProgram first(dir_, line, torchrun(0, 2, port), "first"), second(dir_, line, torchrun(1, 2, port), "second");
    while (!first.isAtWork() && !first.hasEnded()) std::this_thread::yield();
    ASSERT_FALSE(first.hasEnded()) << first.wait().err;
    kill(second.pid(), SIGKILL);
    const ProgramRun run = first.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_EQ(dir_.read("old.json"), "old");
}

// ---- servers of their own, and workers that do not wait ------------------------------------------------------------------------

class Servers : public testing::TestWithParam<std::string> {
protected:
    std::string endless() const { return "run --model tiny.json --local-ranks 2 --steps 100000 --strategy " + GetParam() + " "; }
    WorkDirWithTinyModel dir_;
};

TEST_P(Servers, AKilledWorkerEndsTheRunAndItsServer) {
    BackgroundProgram program(dir_, endless());
    const std::vector<pid_t> processes = program.ranksAtWork(3);
    ASSERT_EQ(processes.size(), 3U) << program.wait().err;
    kill(processes[1], SIGKILL);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("rank 1 was killed by signal 9"));
    EXPECT_THAT(run.err, ContainsRegex("its last task was '.+'"));
    expectGone(processes);
}

TEST_P(Servers, AKilledServerEndsTheRunAndItsWorkers) {
    BackgroundProgram program(dir_, endless());
    const std::vector<pid_t> processes = program.ranksAtWork(3);
    ASSERT_EQ(processes.size(), 3U) << program.wait().err;
    kill(processes[2], SIGKILL);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_THAT(run.err, HasSubstr("rank 2 was killed by signal 9"));
    expectGone(processes);
}

// The server says all the time that it lives; its workers wait for it in vain.
TEST_P(Servers, AStoppedServerEndsTheRunWithinItsTimeOut) {
    BackgroundProgram program(dir_, endless() + "--timeout 1");
    const std::vector<pid_t> processes = program.ranksAtWork(3);
    ASSERT_EQ(processes.size(), 3U) << program.wait().err;
    kill(processes[2], SIGSTOP);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 5);
    expectGone(processes);
}

TEST_P(Servers, CtrlCEndsAllOfThem) {
    BackgroundProgram program(dir_, endless());
    const std::vector<pid_t> processes = program.ranksAtWork(3);
    ASSERT_EQ(processes.size(), 3U) << program.wait().err;
    kill(program.pid(), SIGINT);
    EXPECT_EQ(program.wait().exitCode, 5);
    expectGone(processes);
}

std::string named(const testing::TestParamInfo<std::string>& info) {
    std::string name;
    for (const char c : info.param)
        if (c != '-') name += c;
    return name;
}
INSTANTIATE_TEST_SUITE_P(OfTheirOwn, Servers, testing::Values("ps-servers", "async-ps"), named);

}  // namespace
}  // namespace ringside
