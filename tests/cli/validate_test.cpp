// ringside validate: steps are predicted, run and compared; what cannot be is said.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/cost/profile.h"
#include "model/hardware/device.h"
#include "tests/cli/run_program.h"
#include "tests/cli/schema_check.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// A processor somewhere between slow and fast: good enough to predict within a factor, on any machine.
Profile someProfile() {
    Device host;
    host.name = "cpu";
    Profile profile = datasheetProfile(host);
    profile.name = "some processor";
    profile.device = "cpu";
    profile.gemmEfficiency = {{DType::Fp32, {1, 0.05, Provenance::Measured, "made up"}}};
    profile.deviceFigures = {{"peak_dense_tflops.fp32", 0.05}, {"memory_bandwidth_gb_per_s", 10}, {"memory_bytes", 8e9}, {"pcie_gb_per_s", 5}};
    Environment environment;
    environment.cpuModel = "a processor of long ago";
    environment.cores = 2;
    environment.kernel = "Linux 0.01";
    environment.versions = {{"ringside", "0.0.1"}};
    profile.environment = environment;
    return profile;
}

class Validate : public testing::Test {
protected:
    Validate() {
        dir_.write("profile.json", Json(toJson(someProfile())).dump());
        dir_.write("tiny.json", R"({"model": {"model_type": "mlp", "widths": [64, 96, 32], "activation": "gelu"}, "training": {"micro_batch": 8, "precision": "fp32", "optimizer": "sgd"}})");
        dir_.write("gpt.json", R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 32, "n_head": 2, "vocab_size": 64, "n_positions": 16})");
    }
    ProgramRun validate(const std::string& arguments) const { return dir_.ringside("validate --profile profile.json --any-machine --rounds 1 --steps 2 " + arguments); }

    WorkDir dir_;
};

json schema() {
    std::ifstream file(std::filesystem::path(RINGSIDE_SOURCE_DIR) / "docs" / "reference" / "validation.schema.json");
    return json::parse(file);
}

TEST_F(Validate, PrintsTheRowsAndTheSummaryThatScriptsRelyOn) {
    const ProgramRun run = validate("--models tiny.json,gpt.json --local-ranks 2 --strategies naive,ddp:bucket_mb=1 --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const json result = json::parse(run.out);
    EXPECT_THAT(schemaFaults(schema(), result), IsEmpty());
    ASSERT_EQ(result["rows"].size(), 4U);
    for (const json& row : result["rows"]) {
        for (const char* key : {"strategy", "model", "ranks", "predicted_s", "measured_s", "error", "noise_floor", "in_band"}) EXPECT_TRUE(row.contains(key)) << key;
        EXPECT_EQ(row["ranks"], 2);
        EXPECT_GT(row["measured_s"].get<double>(), 0);
        EXPECT_NEAR(row["error"].get<double>(), row["predicted_s"].get<double>() / row["measured_s"].get<double>() - 1, 1e-9);
        EXPECT_TRUE(row["phases"].contains("backward"));
        EXPECT_TRUE(row["task_classes"].contains("all_reduce"));
        EXPECT_GT(row["task_classes"]["all_reduce"]["measured_s"].get<double>(), 0);
    }
    EXPECT_EQ(result["rows"][1]["strategy"], "ddp:bucket_mb=1");
    EXPECT_EQ(result["rows"][1]["model"], "tiny");
    for (const char* key : {"mape", "worst", "noise_floor", "coverage"}) EXPECT_TRUE(result["summary"][key].is_number()) << key;
    EXPECT_TRUE(result["skipped"].empty());
    EXPECT_TRUE(result["holdout"].is_null());
}

TEST_F(Validate, MemoryOfTheExecutorsTensorsIsExactlyWhatIsPredicted) {
    const json result = json::parse(validate("--models tiny.json --strategies single --json").out);
    EXPECT_EQ(result["rows"][0]["ranks"], 1);
    EXPECT_EQ(result["rows"][0]["peak_memory"]["predicted_bytes"], result["rows"][0]["peak_memory"]["measured_bytes"]);
}

TEST_F(Validate, SaysNoWhenTheErrorIsAboveTheLimitAndStillPrintsTheAnswer) {
    const ProgramRun above = validate("--models tiny.json --limit 0");
    EXPECT_EQ(above.exitCode, 1) << above.err;
    EXPECT_THAT(above.out, AllOf(HasSubstr("Above the limit of 0 %"), HasSubstr("tiny"), HasSubstr("mean absolute error")));
    EXPECT_EQ(validate("--models tiny.json --limit 900000").exitCode, 0);
}

TEST_F(Validate, WritesAPageAndTheTracesOfBothTimelines) {
    const ProgramRun run = validate("--models tiny.json --local-ranks 2 --strategies ddp --html report.html --trace-dir traces");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_THAT(dir_.read("report.html"), AllOf(HasSubstr("<!DOCTYPE html>"), HasSubstr("predicted —"), HasSubstr("measured —"), HasSubstr("</html>")));
    for (const char* name : {"traces/tiny-ddp-2-predicted.json", "traces/tiny-ddp-2-measured.json"}) {
        std::ifstream file(dir_.path() / name);
        EXPECT_TRUE(json::parse(file)["traceEvents"].is_array()) << name;
    }
}

TEST_F(Validate, PacedKernelsTakeAtLeastWhatWasPredicted) {
    const ProgramRun run = validate("--models tiny.json --paced --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const json result = json::parse(run.out);
    EXPECT_TRUE(result["paced"].get<bool>());
    // A sleep is never shorter than asked for; only a loaded machine makes it longer.
    EXPECT_GE(result["rows"][0]["phases"]["forward"]["measured_s"].get<double>(), 0.99 * result["rows"][0]["phases"]["forward"]["predicted_s"].get<double>());
}

TEST_F(Validate, RanksWhoseProgramsDifferArePacedByTheirOwnKernels) {
    // Each rank's optimizer has parameters of its own: kernels that the prediction, in which one rank stands for all, does not have.
    const ProgramRun run = validate("--models gpt.json --local-ranks 4 --strategies zero-redundancy-optimizer --paced --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(json::parse(run.out)["rows"].size(), 1U);
}

TEST_F(Validate, ListsWhatCannotBeComparedWithTheReason) {
    const ProgramRun run = validate("--models tiny.json --local-ranks 2 --strategies ddp,hsdp,diloco --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const json result = json::parse(run.out);
    EXPECT_EQ(result["rows"].size() + result["skipped"].size(), 3U);
    for (const json& one : result["skipped"]) EXPECT_NE(one["reason"], "");
}

TEST_F(Validate, RefusesAProfileOfAnotherMachineUnlessAskedNotTo) {
    const ProgramRun run = dir_.ringside("validate --profile profile.json --models tiny.json --rounds 1 --steps 1");
    EXPECT_EQ(run.exitCode, 3);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(HasSubstr("profile.json"), HasSubstr("a processor of long ago"), HasSubstr("--any-machine")));
}

TEST_F(Validate, SaysWhatToInstallWherePyTorchIsMissing) {
    // A python3 that cannot import anything stands before the real one.
    dir_.write("python3", "#!/bin/sh\necho no module named torch >&2\nexit 1\n");
    std::filesystem::permissions(dir_.path() / "python3", std::filesystem::perms::owner_all);
    const ProgramRun run = dir_.shell("export PATH=\"$PWD:$PATH\"; ringside validate --profile profile.json --any-machine --against torch");
    EXPECT_EQ(run.exitCode, 4);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(HasSubstr("--against torch"), HasSubstr("pip install torch")));
}

TEST_F(Validate, RefusesWhatItDoesNotUnderstand) {
    struct Case {
        const char *arguments, *says;
        int exitCode;
    };
    for (const Case& one : {Case{"--strategies ddq", "did you mean 'ddp'?", 3}, Case{"--strategies ddp,,naive", "empty entry", 2}, Case{"--models tinny", "unknown model", 3},
                            Case{"--models nowhere.json", "nowhere.json", 3}, Case{"--limit many", "--limit", 2}, Case{"--link 1gbit", "--local-ranks", 2}, Case{"--rounds 0", "--rounds", 2},
                            Case{"--models tiny.json --samples nowhere.jsonl", "nowhere.jsonl", 3}, Case{"--models tiny.json --strategies ddp:bucket_mb=-1 --local-ranks 2", "bucket_mb", 3}}) {
        const ProgramRun run = validate(one.arguments);
        EXPECT_EQ(run.exitCode, one.exitCode) << one.arguments << "\n" << run.err;
        EXPECT_THAT(run.err, HasSubstr(one.says)) << one.arguments;
        EXPECT_EQ(run.out, "") << one.arguments;
    }
    EXPECT_EQ(dir_.ringside("validate --models tiny.json").exitCode, 2);
    EXPECT_EQ(dir_.ringside("validate --profile nowhere.json --models tiny.json").exitCode, 3);
}

}  // namespace
}  // namespace ringside
