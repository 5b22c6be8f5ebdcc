// ringside scale and compare as people and scripts use them.
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

const std::string kScale = "scale --model gpt2 --device a100-80gb-sxm --micro-batch 4 ";

std::size_t widest(const std::string& text) {
    std::size_t most = 0;
    std::istringstream in(text);
    std::string line;
    while (std::getline(in, line))
        most = std::max(most, static_cast<std::size_t>(
                                  std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; })));
    return most;
}

TEST(Scale, PrintsPointsWithTheirKeys) {
    const WorkDir dir;
    const json study = json::parse(dir.ringside(kScale + "--devices 1,2,8 --strategies ddp,naive --json").out);
    EXPECT_EQ(study["format"], "ringside-scaling");
    EXPECT_EQ(study["mode"], "weak");
    EXPECT_EQ(study["baseline"]["devices"], 1);
    EXPECT_THAT(study["skipped"], IsEmpty());
    ASSERT_EQ(study["points"].size(), 6U);
    for (const json& point : study["points"])
        for (const char* key : {"devices", "strategy", "step_time_s", "samples_per_s", "tokens_per_s", "speedup", "efficiency",
                                "exposed_communication_s", "peak_memory_bytes", "verdict", "mfu", "micro_batch", "grad_accum", "global_batch"})
            EXPECT_TRUE(point.contains(key)) << key;
    // Weak: E = T1/T8.
    const json &one = study["points"][0], &eight = study["points"][2];
    EXPECT_DOUBLE_EQ(eight["efficiency"].get<double>(), one["step_time_s"].get<double>() / eight["step_time_s"].get<double>());
}

TEST(Scale, TextAndCsvHoldALineForEveryPoint) {
    const WorkDir dir;
    const ProgramRun text = dir.ringside(kScale + "--devices 1,8,12");
    EXPECT_EQ(text.exitCode, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("Baseline: 1 device"));
    EXPECT_THAT(text.out, HasSubstr("100.0 %"));
    EXPECT_THAT(text.out, HasSubstr("skipped: 12 devices do not fill nodes of 8"));
    const ProgramRun csv = dir.ringside(kScale + "--devices 1,8 --format csv");
    EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 3);
    EXPECT_TRUE(csv.out.starts_with("mode,baseline_devices,devices,strategy,step_time_s,")) << csv.out;
}

TEST(Scale, DrawsAChart) {
    const WorkDir dir;
    EXPECT_EQ(dir.ringside(kScale + "--devices 1,2,8 --strategies ddp,naive --plot weak.svg").exitCode, 0);
    const std::string svg = dir.read("weak.svg");
    EXPECT_TRUE(svg.starts_with("<svg "));
    for (const char* words : {"Weak scaling of gpt2", "A100", ">ddp</text>", ">naive</text>", ">ideal</text>", "scaling efficiency"})
        EXPECT_THAT(svg, HasSubstr(words));
    EXPECT_EQ(dir.ringside(kScale + "--devices 1,8 --plot speedup.svg --plot-figure speedup").exitCode, 0);
    EXPECT_THAT(dir.read("speedup.svg"), HasSubstr("speed-up"));
}

TEST(Scale, StartsFromAResultToo) {
    const WorkDir dir;
    dir.write("result.json", dir.ringside("predict --model gpt2 --device a100-80gb-sxm --devices 8 --micro-batch 4 --json").out);
    const json fromResult = json::parse(dir.ringside("scale result.json --devices 8,16 --json").out);
    const json fromFlags = json::parse(dir.ringside(kScale + "--devices 8,16 --json").out);
    EXPECT_EQ(fromResult["points"], fromFlags["points"]);
}

TEST(Scale, EndsWithOneWhereNothingFits) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside("scale --model llama-3-8b --device a100-80gb-sxm --devices 8,16");
    EXPECT_EQ(run.exitCode, 1);
    EXPECT_THAT(run.out, HasSubstr("does not fit"));
}

struct Refusal {
    std::string arguments;
    std::vector<std::string> says;
    int exitCode;
};

TEST(Studies, RefuseWhatTheyCannotUnderstand) {
    for (const Refusal& refusal :
         {Refusal{kScale, {"--devices", "is missing"}, 2}, Refusal{kScale + "--devices 1,two", {"--devices", "'two' is not a device count"}, 3},
          Refusal{kScale + "--devices 1,,2", {"--devices", "'' is not a device count"}, 3},
          Refusal{kScale + "--devices 1 --baseline 0", {"--baseline"}, 3}, Refusal{kScale + "--devices 1 --mode big", {"--mode"}, 2},
          Refusal{kScale + "--devices 1,2 --strategies ddpp", {"--strategies", "did you mean 'ddp'?"}, 3},
          Refusal{kScale + "--devices 12", {"do not fill nodes of 8"}, 3},
          Refusal{"scale --model gtp2 --device a100-80gb-sxm --devices 1", {"--model", "did you mean 'gpt2'?"}, 3},
          Refusal{"compare", {"nothing to compare"}, 2}, Refusal{"compare none.json", {"--set-b"}, 2},
          Refusal{"compare none.json other.json", {"none.json", "cannot open"}, 3}}) {
        const WorkDir dir;
        const ProgramRun run = dir.ringside(refusal.arguments);
        EXPECT_EQ(run.exitCode, refusal.exitCode) << refusal.arguments << run.err;
        EXPECT_EQ(run.out, "") << refusal.arguments;
        for (const std::string& words : refusal.says) EXPECT_THAT(run.err, HasSubstr(words)) << refusal.arguments;
        EXPECT_THAT(dir.files(), IsEmpty()) << refusal.arguments;
    }
}

class Compare : public testing::Test {
protected:
    void SetUp() override {
        dir_.write("a.json", R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 16, "training": {"micro_batch": 4}})");
        dir_.write("b.json",
                   R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 16, "training": {"micro_batch": 4}, "network": "ethernet-25g"})");
    }
    WorkDir dir_;
};

TEST_F(Compare, SaysWhatDiffersAndWhereTheTimeWent) {
    const ProgramRun run = dir_.ringside("compare a.json b.json");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(run.err, "");
    EXPECT_LE(widest(run.out), 110U) << run.out;
    for (const char* words : {"B's step is", "longer", "exposed communication", "cluster.network.name", "→ ethernet-25g", "step time",
                              "memory at its peak", "On the critical path"})
        EXPECT_THAT(run.out, HasSubstr(words));
    EXPECT_THAT(run.out, Not(HasSubstr("nan")));
}

TEST_F(Compare, GivesTheFiguresOfBothPredictions) {
    const json comparison = json::parse(dir_.ringside("compare a.json b.json --json").out);
    EXPECT_EQ(comparison["format"], "ringside-comparison");
    const double a = json::parse(dir_.ringside("predict a.json --json").out)["step_time_s"]["median"],
                 b = json::parse(dir_.ringside("predict b.json --json").out)["step_time_s"]["median"];
    const json& step = comparison["figures"][0];
    EXPECT_EQ(step["name"], "step_time_s");
    EXPECT_EQ(step["a"], a);
    EXPECT_EQ(step["b"], b);
    EXPECT_DOUBLE_EQ(step["difference"].get<double>(), b - a);
    EXPECT_DOUBLE_EQ(step["change"].get<double>(), b / a - 1);
}

TEST_F(Compare, TakesChangesInsteadOfASecondFile) {
    const json twoFiles = json::parse(dir_.ringside("compare a.json b.json --json").out);
    const json oneFile = json::parse(dir_.ringside("compare a.json --set-b network=ethernet-25g --json").out);
    EXPECT_EQ(oneFile, twoFiles);
    const json nothing = json::parse(dir_.ringside("compare a.json b.json --set-a network=ethernet-25g --json").out);
    EXPECT_THAT(nothing["scenario"], IsEmpty());
    EXPECT_EQ(nothing["figures"][0]["difference"], 0.0);
    const ProgramRun strategy = dir_.ringside("compare a.json --set-a bucket_mb=10 --set-b strategy=naive");
    EXPECT_EQ(strategy.exitCode, 0) << strategy.err;
    EXPECT_THAT(strategy.out, HasSubstr("→ naive"));
}

TEST_F(Compare, TakesAResultAsItStands) {
    json result = json::parse(dir_.ringside("predict a.json --json").out);
    result["step_time_s"]["median"] = 1.5;  // of another version of the program, say
    dir_.write("old.json", result.dump());
    const json comparison = json::parse(dir_.ringside("compare old.json a.json --json").out);
    EXPECT_EQ(comparison["figures"][0]["a"], 1.5);
    const ProgramRun piped = dir_.shell("ringside predict b.json --json | ringside compare a.json -");
    EXPECT_EQ(piped.exitCode, 0) << piped.err;
    EXPECT_THAT(piped.out, HasSubstr("B  standard input"));
}

TEST_F(Compare, NamesTheFileOrTheFlagThatIsWrong) {
    dir_.write("bad.json", R"({"model": "gtp2", "device": "a100-80gb-sxm"})");
    const ProgramRun file = dir_.ringside("compare a.json bad.json");
    EXPECT_EQ(file.exitCode, 3);
    EXPECT_THAT(file.err, HasSubstr("bad.json: model: unknown model 'gtp2'"));
    const ProgramRun flag = dir_.ringside("compare a.json --set-b micro_bacth=1");
    EXPECT_EQ(flag.exitCode, 3);
    EXPECT_THAT(flag.err, HasSubstr("--set-b: unknown key 'micro_bacth'"));
    dir_.write("list.json", "[1, 2]");
    EXPECT_THAT(dir_.ringside("compare a.json list.json").err, HasSubstr("list.json: expected a JSON object"));
}

}  // namespace
}  // namespace ringside
