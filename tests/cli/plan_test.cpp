// ringside plan: its answer in text and JSON, its exit codes, what it refuses.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/cli/schema_check.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kGpt2 = "plan --model gpt2 --seq-len 512 --global-batch 64 --hardware a100-80gb-sxm,h100-sxm --devices 4,8 --strategies naive,ddp ";

TEST(Plan, HasTheKeysThatScriptsReadAndTheyAgreeWithEachOther) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside(kGpt2 + "--tokens 1e9 --price h100=3 --price a100-80gb-sxm=2 --co2-g-per-kwh 300 --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const json plan = json::parse(run.out);
    EXPECT_EQ(plan["format"], "ringside-plan");
    for (const char* key : {"fastest", "cheapest", "pareto", "rejected", "nearest_miss", "goal", "assumptions", "global_batch", "evaluated", "warnings"})
        EXPECT_TRUE(plan.contains(key)) << key;
    ASSERT_FALSE(plan["pareto"].empty());
    EXPECT_EQ(plan["pareto"].front(), plan["fastest"]);
    EXPECT_EQ(plan["pareto"].back(), plan["cheapest"]);
    for (const json& c : plan["pareto"]) {
        for (const char* key : {"device", "devices", "strategy", "micro_batch", "grad_accum", "recompute", "knobs", "step_time_s", "tokens_per_s", "days", "cost_per_step_usd",
                                "cost_per_billion_tokens_usd", "total_usd", "energy_kwh", "energy_kwh_per_step", "co2_kg", "goodput", "scenario"})
            EXPECT_TRUE(c.contains(key)) << key;
        const double devices = c["devices"], step = c["step_time_s"], usd = c["device"] == "h100-sxm" ? 3 : 2;
        EXPECT_EQ(c["micro_batch"].get<int>() * c["grad_accum"].get<int>() * c["devices"].get<int>(), 64);
        EXPECT_NEAR(c["tokens_per_s"].get<double>(), 64 * 512 / step, 1e-6 * 64 * 512 / step);
        EXPECT_NEAR(c["cost_per_step_usd"].get<double>(), devices * usd * step / 3600, 1e-12);
        // The whole job: devices · price · 24 h a day; a billion tokens are all of it here.
        EXPECT_NEAR(c["total_usd"].get<double>(), devices * usd * 24 * c["days"].get<double>(), 1e-6);
        EXPECT_NEAR(c["total_usd"].get<double>(), c["cost_per_billion_tokens_usd"].get<double>(), 1e-6);
        EXPECT_NEAR(c["co2_kg"].get<double>(), 0.3 * c["energy_kwh"].get<double>(), 1e-6);
    }
    // Two kinds, two counts, two strategies: each is on the front or says why not.
    EXPECT_EQ(plan["pareto"].size() + plan["rejected"].size(), 8U);
    for (const json& r : plan["rejected"]) EXPECT_NE(r["reason"], "");
}

TEST(Plan, ItsAnswersFitTheSchemaAndABrokenOneDoesNot) {
    std::ifstream file(RINGSIDE_SOURCE_DIR "/docs/reference/plan.schema.json");
    const json schema = json::parse(file);
    const WorkDir dir;
    json plan;
    for (const char* line : {"--tokens 1e9", "--tokens 1e12 --deadline-days 0.1 --co2-g-per-kwh 300", "", "--price h100-sxm=3 --commitment reserved --async-checkpoint"}) {
        plan = json::parse(dir.ringside(kGpt2 + line + " --json").out);
        EXPECT_THAT(schemaFaults(schema, plan), testing::IsEmpty()) << line;
    }
    // Nothing fits: rejections without a candidate.
    EXPECT_THAT(schemaFaults(schema, json::parse(dir.ringside("plan --model llama-3-8b --hardware l4 --devices 1 --seq-len 2048 --json").out)), testing::IsEmpty());
    // No tokens and no power draw: null, not missing.
    EXPECT_THAT(schemaFaults(schema, json::parse(dir.ringside("plan --model mlp --hardware cpu --devices 2 --global-batch 64 --price cpu=1 --set precision=fp32 --json").out)), testing::IsEmpty());
    plan["pareto"][0].erase("days");
    EXPECT_THAT(schemaFaults(schema, plan), testing::Not(testing::IsEmpty()));
}

TEST(Plan, AWinnersScenarioPredictsWhatThePlanSays) {
    const WorkDir dir;
    const json plan = json::parse(dir.ringside(kGpt2 + "--json").out);
    dir.write("winner.json", plan["fastest"]["scenario"].dump());
    const json result = json::parse(dir.ringside("predict winner.json --json").out);
    EXPECT_DOUBLE_EQ(result["step_time_s"]["median"].get<double>(), plan["fastest"]["step_time_s"].get<double>());
}

TEST(Plan, TheCommandUnderLookCloserRuns) {
    const WorkDir dir;
    const std::string text = dir.ringside(kGpt2).out;
    const std::size_t at = text.find("Look closer: ");
    ASSERT_NE(at, std::string::npos) << text;
    const ProgramRun run = dir.shell(text.substr(at + 13, text.find('\n', at) - at - 13) + " --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(json::parse(run.out)["scenario"]["training"]["global_batch"], 64);
}

TEST(Plan, SaysTheVerdictFirstAndFitsTheScreen) {
    const WorkDir dir;
    for (const char* goal : {"--tokens 1e9", "--tokens 1e9 --deadline-days 100", "--target-tokens-per-s 1e12", "", "--steps 1000"}) {
        const ProgramRun run = dir.ringside(kGpt2 + goal);
        EXPECT_LE(run.exitCode, 1) << run.err;
        EXPECT_EQ(run.err, "") << "no progress where nobody watches";
        std::istringstream lines(run.out);
        std::string line;
        std::vector<std::string> all;
        while (std::getline(lines, line)) {
            all.push_back(line);
            const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
            if (!line.starts_with("Look closer")) {
                EXPECT_LE(columns, 110) << line;
            }
        }
        ASSERT_GT(all.size(), 3U);
        EXPECT_TRUE(all[2].starts_with("Cheapest") || all[2].starts_with("Best") || all[2].starts_with("Nothing tried meets")) << all[2];
        EXPECT_THAT(run.out, HasSubstr("Why the others lose"));
        EXPECT_THAT(run.out, HasSubstr("Rests on"));
    }
}

TEST(Plan, ExitCodeIsOneWhenNothingMeetsTheGoalAndTheNearestMissIsShown) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside(kGpt2 + "--tokens 1e12 --deadline-days 0.1");
    EXPECT_EQ(run.exitCode, 1);
    EXPECT_THAT(run.out, HasSubstr("Nothing tried meets the goal"));
    EXPECT_THAT(run.out, HasSubstr("Nearest"));
    EXPECT_THAT(run.out, HasSubstr("misses the deadline by"));
    const ProgramRun asJson = dir.ringside(kGpt2 + "--tokens 1e12 --deadline-days 0.1 --json");
    EXPECT_EQ(asJson.exitCode, 1);
    EXPECT_TRUE(json::parse(asJson.out)["cheapest"].is_null());
    EXPECT_FALSE(json::parse(asJson.out)["nearest_miss"].is_null());
}

TEST(Plan, APriceFileChangesWhatIsCheapest) {
    const WorkDir dir;
    dir.write("mine.json", R"({"h100": 0.01, "a100-80gb-sxm": 9})");
    EXPECT_EQ(json::parse(dir.ringside(kGpt2 + "--prices mine.json --json").out)["cheapest"]["device"], "h100-sxm");
    EXPECT_EQ(json::parse(dir.ringside(kGpt2 + "--prices mine.json --price h100-sxm=1000 --json").out)["cheapest"]["device"], "a100-80gb-sxm") << "a flag wins over the file";
}

TEST(Plan, MoreFailuresAndDearerCheckpointsLowerGoodput) {
    const WorkDir dir;
    const auto goodput = [&](const std::string& flags) { return json::parse(dir.ringside(kGpt2 + flags + " --json").out)["fastest"]["goodput"].get<double>(); };
    const double usual = goodput("");
    EXPECT_LT(goodput("--mtbf-hours 100"), usual);
    EXPECT_LT(goodput("--checkpoint-seconds 600"), usual);
    EXPECT_LT(goodput("--restart-minutes 600"), usual);
    EXPECT_LT(goodput("--checkpoint-gb-per-s 0.01"), usual);
    EXPECT_GT(goodput("--checkpoint-gb-per-s 0.01 --async-checkpoint"), goodput("--checkpoint-gb-per-s 0.01"));
}

TEST(Plan, AScenarioFileGivesModelHardwareAndBatch) {
    const WorkDir dir;
    dir.write("scenario.json", R"({"model": "gpt2", "device": "h100-sxm", "devices": 8, "training": {"global_batch": 32, "seq_len": 256, "precision": "bf16"}})");
    const json plan = json::parse(dir.ringside("plan scenario.json --devices 8 --json").out);
    EXPECT_EQ(plan["global_batch"], 32);
    EXPECT_EQ(plan["seq_len"], 256);
    EXPECT_EQ(plan["fastest"]["device"], "h100-sxm");
    EXPECT_EQ(plan["fastest"]["scenario"]["training"]["precision"], "bf16");
}

TEST(Plan, AClusterIsNamedAsHardware) {
    const WorkDir dir;
    const json plan = json::parse(dir.ringside("plan --model gpt2 --seq-len 512 --global-batch 64 --hardware dgx-a100-2 --strategies ddp --json").out);
    EXPECT_EQ(plan["fastest"]["hardware"], "dgx-a100-2");
    EXPECT_EQ(plan["fastest"]["devices"], 16);
}

struct Refusal {
    std::string flags;
    int exitCode;
    std::string says;
};
class PlanRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(PlanRefuses, WithTheFlagAndARemedy) {
    const WorkDir dir;
    dir.write("eur.json", R"({"currency": "EUR", "prices": []})");
    const ProgramRun run = dir.ringside("plan " + GetParam().flags);
    EXPECT_EQ(run.exitCode, GetParam().exitCode) << run.out << run.err;
    EXPECT_THAT(run.err, HasSubstr(GetParam().says));
    EXPECT_EQ(run.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Cli, PlanRefuses,
    testing::Values(Refusal{"--model gpt2", 3, "--hardware"}, Refusal{"--hardware h100-sxm", 3, "no model given"}, Refusal{"--model gpt2 --hardware h100-smx", 3, "h100-sxm"},
                    Refusal{"--model gpt2 --hardware h100-sxm --tokens lots", 3, "--tokens: 'lots'"}, Refusal{"--model gpt2 --hardware h100-sxm --tokens -5", 3, "--tokens"},
                    Refusal{"--model gpt2 --hardware h100-sxm --deadline-days 3", 2, "--tokens"}, Refusal{"--model gpt2 --hardware h100-sxm --devices 8 --max-devices 8", 2, "--max-devices"},
                    Refusal{"--model gpt2 --hardware h100-sxm --devices 8,x", 3, "--devices: 'x'"}, Refusal{"--model gpt2 --hardware h100-sxm --devices 1.5", 3, "whole number"},
                    Refusal{"--model gpt2 --hardware h100-sxm --price 3", 2, "DEVICE=USD"}, Refusal{"--model gpt2 --hardware h100-sxm --price h10=3", 3, "--price"},
                    Refusal{"--model gpt2 --hardware h100-sxm --price h100-sxm=free", 3, "'free'"}, Refusal{"--model gpt2 --hardware h100-sxm --prices eur.json", 3, "EUR"},
                    Refusal{"--model gpt2 --hardware h100-sxm --prices none.json", 3, "none.json"}, Refusal{"--model gpt2 --hardware mi250x --devices 8", 3, "--price mi250x=USD"},
                    Refusal{"--model gpt2 --hardware h100-sxm --pue 0.5", 3, "--pue"}, Refusal{"--model gpt2 --hardware h100-sxm --mtbf-hours 0", 3, "--mtbf-hours"},
                    Refusal{"--model gpt2 --hardware h100-sxm --strategies dpp", 3, "ddp"}, Refusal{"--model gpt2 --hardware h100-sxm --commitment spot", 2, "--commitment"},
                    Refusal{"--model resnet-50 --hardware h100-sxm --tokens 1e9", 3, "reads no tokens"}, Refusal{"--model gpt2 --hardware h100-sxm --micro-batch x", 3, "micro_batch"},
                    Refusal{"--model gpt2 --hardware h100-sxm --recompute some", 3, "recompute"}, Refusal{"--model gpt2 --hardware h100-sxm --set training.global_batch=1.5", 3, "global_batch"}));

}  // namespace
}  // namespace ringside
