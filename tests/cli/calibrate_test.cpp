// ringside calibrate as a shell uses it: measures, goes on after an interruption, refuses what is not right, leaves the old profile.
// All with --trial: few and poor samples, but the whole way.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/background_program.h"
#include "tests/cli/run_program.h"
#include "tests/cli/schema_check.h"
#include "tests/cli/tiny_model.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kTwo = "calibrate --trial --local-ranks 2 --json ";

std::size_t linesOf(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

json schemaOf(const std::string& name) {
    std::ifstream file(std::filesystem::path(RINGSIDE_SOURCE_DIR) / "docs" / "reference" / name);
    return json::parse(file);
}

/// Seconds of a point that every profile has.
double allReduceSeconds(const json& profile) {
    for (const json& curve : profile["collectives"])
        if (curve["op"] == "all_reduce") return curve["points"].back()["seconds"].get<double>();
    ADD_FAILURE() << "no all_reduce";
    return 0;
}

TEST(Calibrate, MeasuresKernelsCollectivesAndInterferenceAndDoesNotMeasureThemTwice) {
    const WorkDirWithTinyModel dir;
    const ProgramRun first = dir.ringside(kTwo + "--out here.json");
    ASSERT_EQ(first.exitCode, 0) << first.err;
    const json summary = json::parse(first.out);
    EXPECT_THAT(schemaFaults(schemaOf("calibration.schema.json"), summary), IsEmpty());
    EXPECT_GT(summary["measured_series"], 50);
    EXPECT_EQ(summary["reused_series"], 0);
    const json profile = json::parse(dir.read("here.json"));
    EXPECT_THAT(schemaFaults(schemaOf("profile.schema.json"), profile), IsEmpty());
    EXPECT_GT(profile["kernels"].size(), 20U);
    ASSERT_EQ(profile["collectives"].size(), 7U);
    for (const json& curve : profile["collectives"]) {
        EXPECT_EQ(curve["ranks"], 2);
        EXPECT_EQ(curve["link"], "loopback");
    }
    const std::string samples = dir.read("here.json.samples.jsonl");
    for (const char* op : {"all_reduce", "all_gather", "reduce_scatter"}) EXPECT_THAT(samples, HasSubstr(std::string("collective ") + op + " 4096 over loopback beside kernels"));
    EXPECT_EQ(linesOf(samples), summary["measured_series"].get<std::size_t>());

    // Again: everything is there, and the same samples make the same profile.
    const ProgramRun second = dir.ringside(kTwo + "--out here.json");
    ASSERT_EQ(second.exitCode, 0) << second.err;
    EXPECT_EQ(json::parse(second.out)["measured_series"], 0);
    EXPECT_EQ(json::parse(second.out)["reused_series"], summary["measured_series"]);
    json again = json::parse(dir.read("here.json")), before = profile;
    again["environment"].erase("date"), before["environment"].erase("date");
    EXPECT_EQ(again, before);

    // Predicted with it, and run.
    const ProgramRun run = dir.ringside("run --model tiny.json --local-ranks 2 --strategy ddp --steps 3 --profile here.json --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const json result = json::parse(run.out);
    EXPECT_GT(result["predicted"]["step_s"], 0.0);
    EXPECT_EQ(result["predicted"]["peak_allocated_bytes"], result["measured"]["peak_allocated_bytes"]);
    EXPECT_THAT(result["notes"], IsEmpty());
    EXPECT_THAT(schemaFaults(schemaOf("run.schema.json"), result), IsEmpty());
}

// Two calibrations side by side. One that takes 1.5 times as long and states the same spreads is no repetition.
TEST(Calibrate, ItsProfilesAreComparedWithinTheirSpreads) {
    const WorkDirWithTinyModel dir;
    ASSERT_EQ(dir.ringside("calibrate --trial --local-ranks 2 --out here.json").exitCode, 0);
    const auto write = [&](const char* name, double factor) {
        json profile = json::parse(dir.read("here.json"));
        for (json& points : profile["kernels"])
            for (json& point : points) {
                point["seconds"] = factor * point["seconds"].get<double>();
                point["relative_spread"] = 0.02;
            }
        dir.write(name, profile.dump());
    };
    write("first.json", 1);
    write("slower.json", 1.5);

    const ProgramRun same = dir.ringside("compare here.json here.json --json");
    ASSERT_EQ(same.exitCode, 0) << same.err;
    const json agreement = json::parse(same.out);
    EXPECT_THAT(schemaFaults(schemaOf("profile-agreement.schema.json"), agreement), IsEmpty());
    EXPECT_EQ(agreement["agree"], true);
    EXPECT_EQ(agreement["same_machine"], true);
    EXPECT_EQ(agreement["all"]["within_one"], 1);

    const ProgramRun different = dir.ringside("compare first.json slower.json --json");
    EXPECT_EQ(different.exitCode, 1);
    const json change = json::parse(different.out);
    EXPECT_THAT(schemaFaults(schemaOf("profile-agreement.schema.json"), change), IsEmpty());
    EXPECT_EQ(change["agree"], false);
    EXPECT_NEAR(change["farthest"][0]["change"].get<double>(), 0.5, 1e-6);
    const ProgramRun words = dir.ringside("compare first.json slower.json");
    EXPECT_EQ(words.exitCode, 1);
    for (const char* said : {"do not agree", "kernels: memory", "+50.0 %", "Farthest apart"}) EXPECT_THAT(words.out, HasSubstr(said));

    EXPECT_EQ(dir.ringside("compare first.json slower.json --set-b devices=4").exitCode, 2);
    const ProgramRun mixed = dir.ringside("compare here.json tiny.json");
    EXPECT_EQ(mixed.exitCode, 3);
    EXPECT_THAT(mixed.err, HasSubstr("tiny.json"));
}

TEST(Calibrate, FreshMeasuresAnewAndTheLatestSamplesCount) {
    const WorkDir dir;
    const std::string line = "calibrate --trial --json --out here.json";
    ASSERT_EQ(dir.ringside(line).exitCode, 0);
    const std::size_t lines = linesOf(dir.read("here.json.samples.jsonl"));
    const ProgramRun fresh = dir.ringside(line + " --fresh");
    ASSERT_EQ(fresh.exitCode, 0) << fresh.err;
    EXPECT_EQ(json::parse(fresh.out)["reused_series"], 0);
    EXPECT_EQ(linesOf(dir.read("here.json.samples.jsonl")), 2 * lines);
    const json profile = json::parse(dir.read("here.json"));
    const ProgramRun again = dir.ringside(line);
    EXPECT_EQ(json::parse(again.out)["reused_series"], lines);
    EXPECT_EQ(json::parse(dir.read("here.json"))["kernels"], profile["kernels"]);
}

TEST(Calibrate, CollectivesAloneKeepTheKernelsOfTheBase) {
    const WorkDir dir;
    ASSERT_EQ(dir.ringside("calibrate --trial --json --out kernels.json").exitCode, 0);
    const ProgramRun run = dir.ringside(kTwo + "--collectives-only --base kernels.json --out both.json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const json kernels = json::parse(dir.read("kernels.json")), both = json::parse(dir.read("both.json"));
    EXPECT_EQ(kernels["kernels"], both["kernels"]);
    EXPECT_FALSE(kernels.contains("collectives") && !kernels["collectives"].empty());
    EXPECT_EQ(both["collectives"].size(), 7U);

    // Once more: within a factor of a few on any machine, however busy.
    ASSERT_EQ(dir.ringside(kTwo + "--collectives-only --base kernels.json --out again.json").exitCode, 0);
    const double ratio = allReduceSeconds(json::parse(dir.read("again.json"))) / allReduceSeconds(both);
    EXPECT_GT(ratio, 0.02);
    EXPECT_LT(ratio, 50);
}

TEST(Calibrate, InterruptedLeavesTheOldProfileAndGoesOnFromItsSamples) {
    const WorkDir dir;
    dir.write("here.json", "old");
    BackgroundProgram program(dir, kTwo + "--out here.json");
    // The series of a model's steps is its last: then one model is whole.
    while (!program.hasEnded() && dir.read("here.json.samples.jsonl").find("\"key\":\"step ") == std::string::npos) std::this_thread::yield();
    ASSERT_FALSE(program.hasEnded()) << program.wait().err;
    const std::vector<pid_t> ranks = program.children();
    kill(program.pid(), SIGINT);
    const ProgramRun cut = program.wait();
    EXPECT_THAT(cut.exitCode, testing::AnyOf(5, 130)) << cut.err;  // while ranks work, and between two measurements
    EXPECT_EQ(cut.out, "");
    for (const pid_t rank : ranks) EXPECT_FALSE(isAlive(rank));
    EXPECT_EQ(dir.read("here.json"), "old");
    dir.write("here.json.samples.jsonl", dir.read("here.json.samples.jsonl") + R"({"version": 1, "key": "kern)");  // as a crash leaves it
    const ProgramRun rest = dir.ringside(kTwo + "--out here.json");
    ASSERT_EQ(rest.exitCode, 0) << rest.err;
    const json summary = json::parse(rest.out);
    EXPECT_GE(summary["reused_series"], 15);
    EXPECT_GT(summary["measured_series"], 15);
    EXPECT_THAT(summary["notes"].dump(), HasSubstr("the last line is incomplete and was dropped"));
    EXPECT_EQ(json::parse(dir.read("here.json"))["format"], "ringside-profile");
}

TEST(Calibrate, OverALauncherOnlyRankZeroWrites) {
    const WorkDir dir;
    const int port = freePort();
    const auto variables = [&](int rank) -> std::map<std::string, std::string> {
        return {{"RANK", std::to_string(rank)}, {"LOCAL_RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}};
    };
    // The second's files would be on another machine: it is not asked for samples, and writes none.
    BackgroundProgram first(dir, "calibrate --trial --json --out here.json", variables(0), "first"), second(dir, "calibrate --trial --json --out there.json", variables(1), "second");
    const ProgramRun zero = first.wait(), one = second.wait();
    ASSERT_EQ(zero.exitCode, 0) << zero.err;
    EXPECT_EQ(one.exitCode, 0) << one.err;
    EXPECT_EQ(one.out + one.err, "");
    EXPECT_EQ(json::parse(dir.read("here.json"))["collectives"].size(), 7U);
    EXPECT_THAT(dir.files(), ElementsAre("first.err", "first.out", "here.json", "here.json.samples.jsonl", "second.err", "second.out"));
}

TEST(Calibrate, TakesTablesOfNcclTests) {
    const WorkDir dir;
    ASSERT_EQ(dir.ringside("calibrate --trial --json --out base.json").exitCode, 0);
    dir.write("nccl.txt",
              "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 8 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n"
              "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
              "     1048576        262144     float     sum      -1    61.10   17.16   30.03      0    60.90   17.22   30.13      0\n"
              "     4194304       1048576     float     sum      -1   102.00   41.12   71.96      0   101.00   41.53   72.67      0\n");
    const ProgramRun run = dir.ringside("calibrate --from-nccl-tests nccl.txt --base base.json --out h100.json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("nccl.txt: 2 points of collectives"));
    const json profile = json::parse(dir.read("h100.json"));
    ASSERT_EQ(profile["collectives"].size(), 1U);
    EXPECT_EQ(profile["collectives"][0]["op"], "all_reduce");
    EXPECT_EQ(profile["collectives"][0]["ranks"], 8);
    EXPECT_EQ(profile["collectives"][0]["points"].size(), 2U);
    const ProgramRun without = dir.ringside("calibrate --from-nccl-tests nccl.txt --out h100.json");
    EXPECT_EQ(without.exitCode, 2);
    EXPECT_THAT(without.err, HasSubstr("--base"));
    dir.write("nccl.txt", "not a table\n");
    const ProgramRun garbage = dir.ringside("calibrate --from-nccl-tests nccl.txt --base base.json --out h100.json");
    EXPECT_EQ(garbage.exitCode, 3);
    EXPECT_THAT(garbage.err, HasSubstr("nccl.txt"));
}

TEST(Calibrate, AFullDiskLeavesTheOldProfile) {
    const WorkDir dir;
    dir.write("here.json", "old");
    // Files may grow to 8 KiB: the samples of the first model do not fit.
    const ProgramRun full = dir.shell("ulimit -f 8; trap '' XFSZ; ringside calibrate --trial --json --out here.json");
    EXPECT_EQ(full.exitCode, 5) << full.err;
    EXPECT_THAT(full.err, HasSubstr("could not write the samples"));
    EXPECT_EQ(dir.read("here.json"), "old");
    // The rest of the samples fits elsewhere, but the profile does not.
    const ProgramRun device = dir.ringside("calibrate --trial --json --out /dev/full --samples here.samples");
    EXPECT_EQ(device.exitCode, 5) << device.err;
    EXPECT_THAT(device.err, HasSubstr("No space left on device"));
    EXPECT_EQ(dir.ringside("calibrate --trial --json --out here.json --samples here.samples").exitCode, 0);
}

TEST(Calibrate, AKilledRankLeavesTheOldProfile) {
    const WorkDir dir;
    dir.write("here.json", "old");
    BackgroundProgram program(dir, "calibrate --quick --local-ranks 2 --json --out here.json");
    const std::vector<pid_t> ranks = program.ranksAtWork(2);
    ASSERT_EQ(ranks.size(), 2U) << program.wait().err;
    kill(ranks[0], SIGKILL);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_THAT(run.err, HasSubstr("rank 0 was killed by signal 9"));
    EXPECT_EQ(dir.read("here.json"), "old");
    EXPECT_FALSE(isAlive(ranks[1]));
}

TEST(Calibrate, RefusesWhatIsNotRight) {
    const WorkDir dir;
    dir.write("garbage.samples", "{\"version\": 1, \"key\": \"k\", \"seconds\": [0.1]}\nnot a series\n{\"version\": 1, \"key\": \"k\", \"seconds\": [0.1]}\n");
    dir.write("nan.samples", "{\"version\": 1, \"key\": \"k\", \"seconds\": [0.1, NaN]}\n{\"version\": 1, \"key\": \"k\", \"seconds\": [0.1]}\n");
    dir.write("negative.samples", "{\"version\": 1, \"key\": \"k\", \"seconds\": [0.1, -3]}\n");
    struct Case {
        const char* arguments;
        int exitCode;
        std::vector<const char*> says;
    };
    for (const Case& one : {Case{"", 2, {"--out", "here.json"}}, Case{"--out here.json --quick --thorough", 2, {"--quick", "--thorough"}},
                            Case{"--out here.json --quick --trial", 2, {"--quick", "--trial"}}, Case{"--out here.json --collectives-only", 2, {"--collectives-only", "--base"}},
                            Case{"--out here.json --link 1gbit", 2, {"--link", "--local-ranks"}}, Case{"--out here.json --local-ranks 0", 2, {"--local-ranks"}},
                            Case{"--out here.json --base nothere.json", 3, {"nothere.json", "cannot open"}}, Case{"--out nowhere/here.json", 5, {"nowhere", "make it first"}},
                            Case{"--out .", 5, {"is a directory"}}, Case{"--out here.json --samples garbage.samples", 3, {"garbage.samples:2"}},
                            Case{"--out here.json --samples nan.samples", 3, {"nan.samples:1"}}, Case{"--out here.json --samples negative.samples", 3, {"negative.samples:1", "seconds[1]", "-3"}}}) {
        const ProgramRun run = dir.ringside(std::string("calibrate ") + one.arguments);
        EXPECT_EQ(run.exitCode, one.exitCode) << one.arguments << "\n" << run.err;
        EXPECT_EQ(run.out, "") << one.arguments;
        for (const char* words : one.says) EXPECT_THAT(run.err, HasSubstr(words)) << one.arguments;
    }
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "here.json"));
}

TEST(Calibrate, AProfileThatIsNotRightIsRefusedAndOneOfAnotherMachineIsNoted) {
    const WorkDirWithTinyModel dir;
    ASSERT_EQ(dir.ringside("calibrate --trial --json --out here.json").exitCode, 0);
    const json profile = json::parse(dir.read("here.json"));
    const std::string kernel = profile["kernels"].begin().key();
    const auto runWith = [&](const std::string& text) {
        dir.write("other.json", text);
        return dir.ringside("run --model tiny.json --steps 2 --profile other.json --json");
    };
    json negative = profile;
    negative["kernels"][kernel][0]["seconds"] = -1;
    ProgramRun run = runWith(negative.dump());
    EXPECT_EQ(run.exitCode, 3);
    EXPECT_THAT(run.err, HasSubstr("other.json: kernels." + kernel + "[0].seconds: -1"));
    json none = profile;
    none["kernels"][kernel][0]["seconds"] = nullptr;  // what many a writer makes of NaN
    run = runWith(none.dump());
    EXPECT_EQ(run.exitCode, 3);
    EXPECT_THAT(run.err, HasSubstr("other.json: kernels." + kernel + "[0]"));
    EXPECT_THAT(run.err, HasSubstr("'seconds'"));
    std::string text = profile.dump();
    text.replace(text.find("\"seconds\":") + 10, 0, "NaN,\"was\":");
    run = runWith(text);
    EXPECT_EQ(run.exitCode, 3);
    EXPECT_THAT(run.err, HasSubstr("other.json:1:"));
    json later = profile;
    later["version"] = 2;
    run = runWith(later.dump());
    EXPECT_EQ(run.exitCode, 3);
    EXPECT_THAT(run.err, HasSubstr("other.json: version"));
    json edited = profile;
    edited["environment"]["cpu_model"] = "another processor";
    run = runWith(edited.dump());
    EXPECT_EQ(run.exitCode, 3);
    EXPECT_THAT(run.err, HasSubstr("environment.fingerprint"));

    // Of another machine: the run is right, only the prediction is another machine's.
    edited["environment"].erase("fingerprint");
    run = runWith(edited.dump());
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_THAT(json::parse(run.out)["notes"].dump(), HasSubstr("processor was 'another processor'"));
    EXPECT_EQ(dir.ringside("predict --model tiny.json --device cpu --precision fp32 --profile other.json").exitCode, 0);
}

}  // namespace
}  // namespace ringside
