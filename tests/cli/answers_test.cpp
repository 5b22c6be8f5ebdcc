// What the program answers: on which stream, into which file, with which exit code, how long and how wide.
#include <algorithm>
#include <sstream>
#include <string>

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
using testing::Not;

const std::string kGpt2 = "predict --model gpt2 --device a100-80gb-sxm --devices 8 ";

std::size_t columnsOf(const std::string& line) {  // UTF-8: continuation bytes take no column
    return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

class OneScreen : public testing::TestWithParam<std::string> {};

TEST_P(OneScreen, HoldsTheTextAnswer) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside("predict " + GetParam());
    EXPECT_LE(run.exitCode, 1) << run.err;
    EXPECT_EQ(run.err, "");
    std::istringstream text(run.out);
    std::string line;
    int lines = 0;
    while (std::getline(text, line)) {
        ++lines;
        EXPECT_LE(columnsOf(line), 110U) << line;
    }
    EXPECT_LE(lines, 45) << run.out;
    for (const char* words : {"Step time", "80 % band", "samples/s", "MFU", "HFU", "Where the time goes", "Memory", "Critical path", "Step time with 10 % more", "Rests on"})
        EXPECT_THAT(run.out, HasSubstr(words));
    EXPECT_THAT(run.out, Not(HasSubstr("-0.0 %")));
    EXPECT_THAT(run.out, Not(HasSubstr("nan")));
    EXPECT_THAT(run.out, Not(HasSubstr("\033[")));
}

INSTANTIATE_TEST_SUITE_P(Predict, OneScreen, testing::Values(
    "--model gpt2-xl --device a100-80gb-sxm --devices 16 --micro-batch 4",
    "--model gpt2 --device a100-80gb-sxm",
    "--model resnet-50 --device v100-sxm --devices 8 --micro-batch 64",
    "--model llama-3.1-405b --device h100-sxm --devices 16384 --precision bf16-master --optimizer adamw-fused --grad-accum 4",
    "--model bert-large --cluster mixed-a100-h100 --micro-batch 16",
    "--model mixtral-8x7b --cluster dgx-h100-2048 --first-step",
    "--model mlp --device a10g --devices 8 --set device.peak_dense_tflops.bf16=70"));

TEST(ExitCode, IsOneWhenTheStepDoesNotFitInMemory) {
    const WorkDir dir;
    for (const char* command : {"predict", "memory"}) {
        const ProgramRun run = dir.ringside(std::string(command) + " --model llama-3-8b --device h100-sxm --devices 8");
        EXPECT_EQ(run.exitCode, 1) << command;
        EXPECT_THAT(run.out, HasSubstr("does not fit"));
        EXPECT_EQ(run.err, "");
    }
    const ProgramRun asJson = dir.ringside("predict --model llama-3-8b --device h100-sxm --devices 8 --json");
    EXPECT_EQ(asJson.exitCode, 1);
    EXPECT_EQ(json::parse(asJson.out)["memory"]["verdict"], "out_of_memory");
}

TEST(ExitCode, IsZeroForHelpAndVersion) {
    const WorkDir dir;
    for (const char* line : {"--help", "predict --help", "memory --help", "scale --help", "sweep --help", "compare --help", "collective --help", "catalog --help", "completion --help", "--version"}) {
        const ProgramRun run = dir.ringside(line);
        EXPECT_EQ(run.exitCode, 0) << line;
        EXPECT_NE(run.out, "") << line;
        EXPECT_EQ(run.err, "") << line;
        if (std::string(line) != "--version") {
            EXPECT_THAT(run.out, HasSubstr("Example")) << line;
        }
    }
}

TEST(ADeviceWithoutAPublishedPeak, WorksWhenThePeakIsSupplied) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside("predict --model gpt2 --device a10g --set device.peak_dense_tflops.bf16=70");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("peak bf16 70 TFLOPS"));
}

TEST(OutputFile, HoldsTheAnswerAndStandardOutputNothing) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside(kGpt2 + "--json -o answer.json --trace step.json");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(dir.files(), ElementsAre("answer.json", "step.json"));
    EXPECT_EQ(json::parse(dir.read("answer.json"))["format"], "ringside-result");
}

TEST(OutputFile, KeepsItsOldContentWhenTheInputIsBad) {
    const WorkDir dir;
    dir.write("answer.txt", "old");
    EXPECT_EQ(dir.ringside("predict --model gtp2 --device a100-80gb-sxm -o answer.txt").exitCode, 3);
    EXPECT_EQ(dir.read("answer.txt"), "old");
    EXPECT_THAT(dir.files(), ElementsAre("answer.txt"));
}

TEST(FullDisk, IsAnErrorAndNotASilentSuccess) {
    const WorkDir dir;
    const ProgramRun run = dir.shell("ringside catalog models > /dev/full");
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_THAT(run.err, HasSubstr("standard output"));
}

TEST(ClosedPipe, EndsTheProgramWithoutNoise) {
    const WorkDir dir;
    // `true` reads nothing, and the answer is larger than what a pipe holds.
    const ProgramRun run = dir.shell("for i in 1 2 3; do ringside predict --model gpt2-xl --device a100-80gb-sxm --devices 16 --json; done | true");
    EXPECT_EQ(run.err, "");
}

TEST(Scenario, IsReadFromAFileFromStandardInputAndFromFlagsAlike) {
    const WorkDir dir;
    const std::string scenario = R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "training": {"micro_batch": 4}})";
    dir.write("s.json", scenario);
    const std::string fromFlags = dir.ringside(kGpt2 + "--micro-batch 4 --json").out;
    EXPECT_EQ(dir.ringside("predict s.json --json").out, fromFlags);
    EXPECT_EQ(dir.ringside({"predict", "-", "--json"}, scenario).out, fromFlags);
    EXPECT_NE(fromFlags, "");
}

TEST(Scenario, TakesFlagsOverTheFile) {
    const WorkDir dir;
    dir.write("s.json", R"({"model": "gpt2", "cluster": "dgx-a100-2", "training": {"micro_batch": 4}})");
    const json answer = json::parse(dir.ringside("predict s.json --micro-batch 2 --device h100-sxm --devices 8 --bucket-mb 50 --json").out);
    EXPECT_EQ(answer["scenario"]["training"]["micro_batch"], 2);
    EXPECT_EQ(answer["scenario"]["training"]["global_batch"], 16);
    EXPECT_EQ(answer["scenario"]["strategy"]["bucket_mb"], 50);
    EXPECT_EQ(answer["scenario"]["cluster"]["nodes"][0]["kind"]["device"]["name"], "h100-sxm");
}

TEST(Scenario, AnErrorInAFlagOverAFileNamesTheFlag) {
    const WorkDir dir;
    dir.write("s.json", R"({"model": "gpt2", "device": "a100-80gb-sxm"})");
    const ProgramRun run = dir.ringside("predict s.json --micro-batch 0");
    EXPECT_THAT(run.err, HasSubstr("ringside: --micro-batch: 0"));
}

TEST(Result, IsAScenarioThatGivesTheSameResult) {
    const WorkDir dir;
    const std::string first = dir.ringside(kGpt2 + "--set device.sms=100 --set comm_hook=fp16 --set profile.launch_us=3 --first-step --json -o r.json").err;
    EXPECT_EQ(first, "");
    EXPECT_EQ(dir.ringside("predict r.json --json").out, dir.read("r.json"));
}

TEST(Result, TakesFlagsOverItsScenarioAndSettlesTheBatchesAgain) {
    const WorkDir dir;
    EXPECT_EQ(dir.ringside(kGpt2 + "--micro-batch 4 --json -o r.json").exitCode, 0);
    const auto trainingOf = [&](const std::string& flags) { return json::parse(dir.ringside("predict r.json --json " + flags).out)["scenario"]["training"]; };
    EXPECT_EQ(trainingOf("--micro-batch 8")["global_batch"], 64);  // 8 · 1 · 8
    EXPECT_EQ(trainingOf("--grad-accum 2")["global_batch"], 64);  // 4 · 2 · 8
    EXPECT_EQ(trainingOf("--global-batch 128")["grad_accum"], 4);  // 128 / (4 · 8)
    EXPECT_EQ(trainingOf("--device h100-sxm --devices 16")["global_batch"], 64);  // 4 · 1 · 16
}

TEST(Set, ReachesEveryPartOfTheScenario) {
    const WorkDir dir;
    const json answer = json::parse(dir.ringside(kGpt2 +
        "--set dropout=true --set training.attention=math --set find_unused_parameters=true --set collectives.algorithm=tree --set level=message "
        "--set nccl_version=2.27 --set memory.expandable_segments=true --set step=first --set device.sms=90 --json").out);
    const json& scenario = answer["scenario"];
    EXPECT_EQ(scenario["training"]["dropout"], true);
    EXPECT_EQ(scenario["training"]["attention"], "math");
    EXPECT_EQ(scenario["strategy"]["find_unused_parameters"], true);
    EXPECT_EQ(scenario["collectives"]["algorithm"], "tree");
    EXPECT_EQ(scenario["collectives"]["level"], "message");
    EXPECT_EQ(scenario["collectives"]["nccl_version"], "2.27");
    EXPECT_EQ(scenario["memory"]["expandable_segments"], true);
    EXPECT_EQ(scenario["step"], "first");
    EXPECT_EQ(scenario["cluster"]["nodes"][0]["kind"]["device"]["sms"], 90);
}

TEST(Color, AppearsOnlyWhenAskedForOrOnATerminal) {
    const WorkDir dir;
    EXPECT_THAT(dir.ringside(kGpt2 + "--color always").out, HasSubstr("\033["));
    EXPECT_THAT(dir.ringside(kGpt2 + "--color never").out, Not(HasSubstr("\033[")));
    EXPECT_THAT(dir.ringside(kGpt2).out, Not(HasSubstr("\033[")));  // a file is no terminal
    // script(1) gives the program a terminal; NO_COLOR wins over it.
    if (dir.shell("command -v script").exitCode != 0) GTEST_SKIP() << "script(1) is not installed";
    const std::string onTerminal = std::string("script -qec \"") + RINGSIDE_PROGRAM + " " + kGpt2 + "\" /dev/null";
    EXPECT_THAT(dir.shell(onTerminal).out, HasSubstr("\033["));
    EXPECT_THAT(dir.shell("NO_COLOR=1 " + onTerminal).out, Not(HasSubstr("\033[")));
}

TEST(Timeline, DrawsHostComputeAndCommunicationUnderTheAnswer) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside(kGpt2 + "--micro-batch 8 --timeline");
    for (const char* words : {"forward", "backward", "optimizer", "host ", "compute", "nccl dp", "exposed"}) EXPECT_THAT(run.out, HasSubstr(words));
}

TEST(Trace, IsAChromeTraceWithKinetosFieldsWhoseKernelsFillTheStep) {
    const WorkDir dir;
    const json answer = json::parse(dir.ringside(kGpt2 + "--micro-batch 8 --json --trace step.json").out);
    const json trace = json::parse(dir.read("step.json"));
    EXPECT_TRUE(trace.contains("schemaVersion") && trace.contains("deviceProperties") && trace.contains("distributedInfo"));
    std::size_t kernels = 0, collectives = 0;
    double end = 0;
    for (const json& event : trace["traceEvents"]) {
        ASSERT_TRUE(event.contains("ph"));
        if (event["ph"] != "X") continue;
        EXPECT_GE(event["dur"].get<double>(), 0);
        end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
        if (event["cat"] != "kernel") continue;
        ++kernels;
        EXPECT_TRUE(event["args"].contains("stream") && event["args"].contains("correlation")) << event.dump();
        if (!event["args"].contains("Collective name")) continue;
        ++collectives;
        EXPECT_EQ(event["args"]["Group size"], 8);
    }
    EXPECT_GT(kernels, 500U);
    EXPECT_EQ(collectives, answer["communication"]["collectives"].size());
    EXPECT_NEAR(end * 1e-6, answer["step_time_s"]["median"].get<double>(), 1e-6);
}

TEST(Completion, KnowsEveryCommandAndFlag) {
    const WorkDir dir;
    for (const char* shell : {"bash", "zsh", "fish"}) {
        const ProgramRun run = dir.ringside(std::string("completion ") + shell);
        EXPECT_EQ(run.exitCode, 0);
        for (const char* word : {"predict", "collective", "catalog", "micro-batch", "sizes"}) EXPECT_THAT(run.out, HasSubstr(word)) << shell;
    }
    EXPECT_EQ(dir.shell("source <(ringside completion bash) && complete -p ringside").exitCode, 0);
}

}  // namespace
}  // namespace ringside
