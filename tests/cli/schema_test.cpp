// The schemas of docs/reference describe what the program really reads and prints.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"
#include "tests/cli/schema_check.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::Not;

const std::filesystem::path kDocs = std::filesystem::path(RINGSIDE_SOURCE_DIR) / "docs";

json readJson(const std::filesystem::path& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file.good()) << path;
    return json::parse(file);
}

TEST(ResultSchema, FitsRealAnswers) {
    const json schema = readJson(kDocs / "reference" / "result.schema.json"), scenarioSchema = readJson(kDocs / "reference" / "scenario.schema.json");
    const WorkDir dir;
    for (const char* line : {"--model gpt2 --device a100-80gb-sxm", "--model gpt2-xl --device a100-80gb-sxm --devices 16 --set profile.launch_us=4",
                             "--model resnet-50 --device v100-sxm --devices 8 --strategy naive", "--model llama-3-8b --device h100-sxm --devices 8 --strategy picotron",
                             "--model bert-large --cluster mixed-a100-h100 --first-step",
                             "--model mlp --device a100-80gb-sxm --devices 4 --strategy local-sgd", "--model mlp --device a100-80gb-sxm --devices 4 --strategy async-ps"}) {
        const json result = json::parse(dir.ringside(std::string("predict --json ") + line).out);
        EXPECT_THAT(schemaFaults(schema, result), IsEmpty()) << line;
        EXPECT_THAT(schemaFaults(scenarioSchema, result["scenario"]), IsEmpty()) << line;
    }
}

TEST(ResultSchema, RefusesAnAnswerWithAKeyMissingOrOfAnotherType) {
    const json schema = readJson(kDocs / "reference" / "result.schema.json");
    const WorkDir dir;
    const json result = json::parse(dir.ringside("predict --json --model gpt2 --device a100-80gb-sxm").out);
    json without = result;
    without["step_time_s"].erase("p90");
    EXPECT_THAT(schemaFaults(schema, without), Not(IsEmpty()));
    json text = result;
    text["mfu"] = "0.4";
    EXPECT_THAT(schemaFaults(schema, text), Not(IsEmpty()));
    json verdict = result;
    verdict["memory"]["verdict"] = "perhaps";
    EXPECT_THAT(schemaFaults(schema, verdict), Not(IsEmpty()));
}

TEST(ScenarioSchema, FitsEveryExampleAndEveryExampleRuns) {
    const json schema = readJson(kDocs / "reference" / "scenario.schema.json");
    const WorkDir dir;
    int examples = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kDocs / "examples")) {
        if (entry.path().extension() != ".json") continue;
        ++examples;
        EXPECT_THAT(schemaFaults(schema, readJson(entry.path())), IsEmpty()) << entry.path();
        const ProgramRun run = dir.ringside({"predict", entry.path().string(), "--json"});
        EXPECT_EQ(run.exitCode, 0) << entry.path() << run.err;
    }
    EXPECT_GE(examples, 3);
}

TEST(ScenarioSchema, RefusesWhatTheProgramRefuses) {
    const json schema = readJson(kDocs / "reference" / "scenario.schema.json");
    for (const char* text : {R"({"modle": "gpt2"})", R"({"model": "gpt2", "devices": 0})", R"({"model": "gpt2", "training": {"micro_bacth": 2}})",
                             R"({"model": "gpt2", "strategy": {"bucket_mb": "25"}})", R"({"model": "gpt2", "step": "second"})"})
        EXPECT_THAT(schemaFaults(schema, json::parse(text)), Not(IsEmpty())) << text;
}

}  // namespace
}  // namespace ringside
