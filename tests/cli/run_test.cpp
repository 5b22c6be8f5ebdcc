// ringside run as a script uses it: its JSON, its trace, and ranks started by hand as torchrun, srun and mpirun start them.
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/background_program.h"
#include "tests/cli/run_program.h"
#include "tests/cli/tiny_model.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kDdp = "run --model tiny.json --strategy ddp --steps 3 ";

TEST(Run, MeasuresTheStepsItWasAskedFor) {
    const WorkDirWithTinyModel dir;
    const ProgramRun run = dir.ringside(kDdp + "--local-ranks 2 --warm-up 2 --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(run.err, "");
    const json result = json::parse(run.out);
    const json& measured = result["measured"];
    EXPECT_EQ(measured["steps_s"].size(), 3U);
    EXPECT_EQ(measured["losses"].size(), 5U);  // of the warm-up too
    EXPECT_EQ(measured["ranks"].size(), 2U);
    EXPECT_GT(measured["step_s"], 0.0);
    EXPECT_FALSE(measured.contains("largest_relative_difference"));
    EXPECT_FALSE(result.contains("predicted"));
    EXPECT_EQ(result["scenario"]["strategy"]["name"], "ddp");
}

TEST(Run, EndsWhereOneDeviceDoes) {
    const WorkDirWithTinyModel dir;
    for (const std::string settings : {"--strategy naive", "--strategy ddp --bucket-mb 0.05", "--strategy picotron", "--strategy ddp --grad-accum 2", "--strategy zero2", "--strategy fsdp2", "--strategy ps-servers"}) {
        const ProgramRun run = dir.ringside("run --model tiny.json --local-ranks 2 --steps 3 --check-against-single --json " + settings);
        ASSERT_EQ(run.exitCode, 0) << settings << run.err;
        const json difference = json::parse(run.out)["measured"]["largest_relative_difference"];
        ASSERT_TRUE(difference.is_number()) << settings;
        EXPECT_LE(difference.get<double>(), 1e-5) << settings;
    }
}

TEST(Run, SaysWhereADifferenceFromOneDeviceIsByDesign) {
    const WorkDirWithTinyModel dir;
    const ProgramRun run = dir.ringside("run --model tiny.json --local-ranks 2 --strategy local-sgd --steps 2 --check-against-single --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_THAT(json::parse(run.out)["notes"].dump(), HasSubstr("by design"));
}

TEST(Run, TellsPeopleTheSame) {
    const WorkDirWithTinyModel dir;
    const ProgramRun run = dir.ringside(kDdp + "--local-ranks 2 --check-against-single");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    for (const char* words : {"gpt2 with ddp on 2 ranks", "median of 3", "loss", "memory", "against single"}) EXPECT_THAT(run.out, HasSubstr(words));
}

TEST(Run, OneProcessWithoutALauncherIsOneRank) {
    const WorkDirWithTinyModel dir;
    const ProgramRun run = dir.ringside("run --model tiny.json --steps 2 --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(json::parse(run.out)["measured"]["ranks"].size(), 1U);
}

/// Of each task: its id and what it is.
std::map<int, std::string> tasksOf(const json& trace, int rank) {
    std::map<int, std::string> tasks;
    for (const json& event : trace["traceEvents"])
        if (event.value("ph", "") == "X" && event["pid"] == rank && event.contains("args") && event["args"].contains("task") && event["cat"] == "kernel")
            tasks[event["args"]["task"].get<int>()] = event["args"].value("label", event["name"].get<std::string>());
    return tasks;
}

TEST(Run, WritesATraceWithTheTasksOfThePredictedOne) {
    const WorkDirWithTinyModel dir;
    ASSERT_EQ(dir.ringside(kDdp + "--local-ranks 2 --trace measured.json").exitCode, 0);
    // The same schedule, played: the durations do not matter here.
    const ProgramRun played = dir.ringside("predict --model tiny.json --strategy ddp --device a100-80gb-sxm --devices 2 --precision fp32 --trace predicted.json");
    ASSERT_EQ(played.exitCode, 0) << played.err;
    const json measured = json::parse(dir.read("measured.json")), predicted = json::parse(dir.read("predicted.json"));
    EXPECT_EQ(measured["schemaVersion"], 1);
    EXPECT_EQ(measured["distributedInfo"]["world_size"], 2);
    EXPECT_EQ(measured["distributedInfo"]["backend"], "gloo");
    EXPECT_THAT(measured["traceName"].get<std::string>(), HasSubstr("measured"));
    std::set<std::string> ofMeasured, ofPredicted;
    for (const auto& [key, value] : measured.items()) ofMeasured.insert(key);
    for (const auto& [key, value] : predicted.items()) ofPredicted.insert(key);
    EXPECT_EQ(ofMeasured, ofPredicted);
    const std::map<int, std::string> tasks = tasksOf(measured, 0);
    EXPECT_GT(tasks.size(), 50U);
    EXPECT_EQ(tasks, tasksOf(predicted, 0));
    EXPECT_FALSE(tasksOf(measured, 1).empty());
    bool counts = false;
    for (const json& event : measured["traceEvents"]) {
        if (event["ph"] == "C") counts = true;
        if (event["ph"] == "X") {
            EXPECT_GE(event["dur"], 0.0);
        }
    }
    EXPECT_TRUE(counts) << "no memory counter";
}

struct Launcher {
    std::string name, rank, size, localRank;
    std::map<std::string, std::string> others;
};
std::string nameOf(const testing::TestParamInfo<Launcher>& info) { return info.param.name; }

class RunUnder : public testing::TestWithParam<Launcher> {};

TEST_P(RunUnder, ALauncherRankZeroReportsAndTheOthersAreSilent) {
    const WorkDirWithTinyModel dir;
    const int port = freePort();
    const auto variables = [&](int rank) {
        std::map<std::string, std::string> out = GetParam().others;
        out[GetParam().rank] = out[GetParam().localRank] = std::to_string(rank);
        out[GetParam().size] = "2";
        out["MASTER_PORT"] = std::to_string(port);
        return out;
    };
    const std::string line = kDdp + "--json --check-against-single";
    BackgroundProgram second(dir, line, variables(1), "second"), first(dir, line, variables(0), "first");
    const ProgramRun zero = first.wait(), one = second.wait();
    EXPECT_EQ(zero.exitCode, 0) << zero.err;
    EXPECT_EQ(one.exitCode, 0) << one.err;
    EXPECT_EQ(one.out + one.err, "");
    const json measured = json::parse(zero.out)["measured"];
    EXPECT_EQ(measured["ranks"].size(), 2U);
    EXPECT_LE(measured["largest_relative_difference"].get<double>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Variables, RunUnder, testing::Values(
    Launcher{"Torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", {{"MASTER_ADDR", "127.0.0.1"}}},
    Launcher{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", {{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_NODELIST", "localhost"}}},
    Launcher{"OpenMpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}}),
    nameOf);

TEST(Run, UnderMpirunPrintsOneAnswer) {
    const WorkDirWithTinyModel dir;
    const std::string mpirun = "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 ";
    if (dir.shell(mpirun + "true").exitCode != 0) GTEST_SKIP() << "no mpirun, or it cannot start processes here";
    const ProgramRun run = dir.shell(mpirun + "-x MASTER_PORT=" + std::to_string(freePort()) + " " + RINGSIDE_PROGRAM + " " + kDdp + "--json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(json::parse(run.out)["measured"]["ranks"].size(), 2U);
}

}  // namespace
}  // namespace ringside
