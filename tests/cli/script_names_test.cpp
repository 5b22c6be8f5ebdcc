// Names that scripts rely on: flags, JSON keys, catalogue names. Renaming one breaks somebody's script, so it breaks this test.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace ringside {
namespace {

using nlohmann::json;

void expectKeys(const json& object, const std::vector<std::string>& keys, const std::string& where) {
    ASSERT_TRUE(object.is_object()) << where;
    for (const std::string& key : keys) EXPECT_TRUE(object.contains(key)) << where << " lacks " << key;
}

json predicted() {
    const WorkDir dir;
    const ProgramRun run = dir.ringside(
        "predict --model gpt2-xl --device a100-80gb-sxm --devices 16 --devices-per-node 8 --network ib-hdr --strategy ddp --seq-len 1024 --micro-batch 4 "
        "--grad-accum 2 --precision bf16-autocast --optimizer adamw --recompute none --bucket-mb 25 --set dropout=false --json");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    return json::parse(run.out);
}

TEST(ScriptNames, AResultHasItsKeys) {
    const json result = predicted();
    EXPECT_EQ(result["format"], "ringside-result");
    EXPECT_EQ(result["version"], 1);
    expectKeys(result, {"scenario", "step_time_s", "throughput", "mfu", "hfu", "breakdown_s", "memory", "communication", "critical_path", "sensitivity", "rests_on", "warnings"},
               "the result");
    expectKeys(result["step_time_s"], {"median", "p10", "p90"}, "step_time_s");
    expectKeys(result["throughput"], {"samples_per_s", "tokens_per_s", "samples_per_s_per_device", "tokens_per_s_per_device"}, "throughput");
    expectKeys(result["breakdown_s"], {"compute", "communication_hidden", "communication_exposed", "host", "optimizer", "idle"}, "breakdown_s");
    expectKeys(result["memory"], {"peak_allocated_bytes", "peak_reserved_bytes", "capacity_bytes", "by_category", "verdict", "peak_task"}, "memory");
    expectKeys(result["memory"]["by_category"], {"parameters", "gradients", "optimizer_state", "activations", "buckets", "workspace"}, "memory.by_category");
    expectKeys(result["communication"], {"bytes_sent_per_rank", "collectives"}, "communication");
    ASSERT_FALSE(result["communication"]["collectives"].empty());
    for (const json& collective : result["communication"]["collectives"])
        expectKeys(collective, {"op", "elements", "dtype", "bytes", "algorithm", "protocol", "start_s", "duration_s", "group_size"}, "a collective");
}

TEST(ScriptNames, AResultIsConsistentWithItself) {
    const json result = predicted();
    const double step = result["step_time_s"]["median"];
    EXPECT_LT(result["step_time_s"]["p10"].get<double>(), step);
    EXPECT_GT(result["step_time_s"]["p90"].get<double>(), step);
    // 4 samples × 2 micro-steps × 16 ranks = 128 samples, each 1,024 tokens.
    EXPECT_NEAR(result["throughput"]["samples_per_s"].get<double>() * step, 128, 1e-6);
    EXPECT_NEAR(result["throughput"]["tokens_per_s"].get<double>() * step, 128 * 1024, 1e-3);
    EXPECT_NEAR(result["throughput"]["samples_per_s_per_device"].get<double>() * step, 8, 1e-6);
    // Hidden communication runs beside compute; the other five fill the step.
    const json& b = result["breakdown_s"];
    EXPECT_NEAR(b["compute"].get<double>() + b["communication_exposed"].get<double>() + b["host"].get<double>() + b["optimizer"].get<double>() + b["idle"].get<double>(), step,
                1e-9);
    // fp32 gradients of 1,557,611,200 parameters: 2·15/16 of 4 bytes each leave every rank, once in the step.
    std::int64_t elements = 0;
    for (const json& collective : result["communication"]["collectives"]) elements += collective["elements"].get<std::int64_t>();
    EXPECT_EQ(elements, 1557611200);
    EXPECT_NEAR(result["communication"]["bytes_sent_per_rank"].get<double>(), 1557611200.0 * 4 * 2 * 15 / 16, 1e4);
}

TEST(ScriptNames, TokensAreNullForAModelThatReadsNone) {
    const WorkDir dir;
    const json result = json::parse(dir.ringside("predict --model resnet-50 --device v100-sxm --devices 8 --micro-batch 64 --json").out);
    EXPECT_TRUE(result["throughput"]["tokens_per_s"].is_null());
    EXPECT_GT(result["throughput"]["samples_per_s"].get<double>(), 0);
}

TEST(ScriptNames, ACollectivePrintsRowsWithTheirKeysForDoublingSizesAndForAList) {
    const WorkDir dir;
    const json doubling = json::parse(dir.ringside("collective --op all_reduce --device a100-80gb-sxm --devices 8 --sizes 1M:1G --json").out);
    ASSERT_EQ(doubling["rows"].size(), 11U);  // 2^20 … 2^30
    EXPECT_EQ(doubling["rows"][0]["bytes"], 1 << 20);
    EXPECT_EQ(doubling["rows"][10]["bytes"], 1 << 30);
    for (const json& row : doubling["rows"]) {
        expectKeys(row, {"bytes", "time_us", "algbw_gb_per_s", "busbw_gb_per_s", "algorithm", "protocol"}, "a row");
        // busbw = algbw · 2(N−1)/N = 1.75 · algbw for 8 ranks.
        EXPECT_NEAR(row["busbw_gb_per_s"].get<double>(), 1.75 * row["algbw_gb_per_s"].get<double>(), 1e-9);
    }
    const json list = json::parse(dir.ringside("collective --op all_reduce --device a100-80gb-sxm --devices 8 --sizes 25M,1G --json").out);
    ASSERT_EQ(list["rows"].size(), 2U);
    EXPECT_EQ(list["rows"][0]["bytes"], 25 << 20);
}

TEST(ScriptNames, TheCatalogueHoldsThePromisedNames) {
    const WorkDir dir;
    const auto namesIn = [&](const std::string& list) {
        const json catalog = json::parse(dir.ringside("catalog " + list + " --json").out);
        std::set<std::string> names;
        for (const json& row : catalog[list]) names.insert(row["name"].get<std::string>());
        return names;
    };
    const std::set<std::string> devices = namesIn("devices"), models = namesIn("models"), strategies = namesIn("strategies");
    for (const char* name : {"v100-sxm", "a100-40gb-sxm", "a100-80gb-sxm", "a100-80gb-pcie", "h100-sxm", "h100-pcie", "h200", "b200", "gb200", "rtx-4090", "l4"})
        EXPECT_TRUE(devices.contains(name)) << name;
    for (const char* name : {"gpt2", "gpt2-xl", "llama-2-7b", "llama-3-8b", "llama-3.2-1b", "mistral-7b", "qwen2.5-7b", "mixtral-8x7b", "bert-large", "resnet-50", "vgg-16", "mlp"})
        EXPECT_TRUE(models.contains(name)) << name;
    for (const char* name : {"single", "naive", "ddp", "picotron"}) EXPECT_TRUE(strategies.contains(name)) << name;
    for (const char* list : {"clusters", "nodes", "networks", "profiles"}) EXPECT_FALSE(namesIn(list).empty()) << list;
    const json catalog = json::parse(dir.ringside("catalog models --json").out);
    for (const json& model : catalog["models"]) expectKeys(model, {"name", "parameters", "layers"}, "a model");
}

TEST(ScriptNames, EveryCatalogueListIsAlsoText) {
    const WorkDir dir;
    for (const char* list : {"models", "devices", "clusters", "nodes", "networks", "strategies", "profiles"}) {
        const ProgramRun run = dir.ringside(std::string("catalog ") + list);
        EXPECT_EQ(run.exitCode, 0) << list;
        EXPECT_GE(std::count(run.out.begin(), run.out.end(), '\n'), 2) << list;
    }
}

TEST(ScriptNames, TheFirstStepIsAnotherThanTheSteadyOne) {
    const WorkDir dir;
    const std::string line = "predict --model gpt2 --device a100-80gb-sxm --devices 8 --json";
    const json steady = json::parse(dir.ringside(line).out), first = json::parse(dir.ringside(line + " --first-step").out);
    EXPECT_EQ(steady["scenario"]["step"], "steady");
    EXPECT_EQ(first["scenario"]["step"], "first");
    EXPECT_EQ(first["communication"]["collectives"].size(), 1U);  // one bucket, before the reducer has seen an order
    EXPECT_GT(steady["communication"]["collectives"].size(), 1U);
}

}  // namespace
}  // namespace ringside
