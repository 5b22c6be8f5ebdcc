// ringside validate --published: records of a file are judged, what is off is said with its place.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"
#include "tests/cli/schema_check.h"

namespace ringside {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

json readJson(const fs::path& path) {
    std::ifstream file(path);
    return json::parse(file);
}
const fs::path kRoot = RINGSIDE_SOURCE_DIR;

constexpr const char* kRecords = R"j([
  {"id": "small", "family": "mine", "source": {"repo": "a/b"}, "hardware": {"gpu": "A100-80GB-SXM", "n_gpus": 8, "gpus_per_node": 8, "nodes": 1},
   "model": {"name": "gpt2", "layers": 12, "hidden": 768, "heads": 12, "vocab": 50257, "seq_len": 1024},
   "strategy": {"kind": "ddp", "micro_batch": 8, "grad_accum": 1, "precision": "bf16 amp", "act_ckpt": "none"}, "measured": {"tokens_per_s": 900000}},
  {"id": "odd", "family": "mine", "source": {"repo": "a/b"}, "hardware": {"gpu": "A100-80GB-SXM", "n_gpus": 8}, "model": {"name": "Mask R-CNN"},
   "strategy": {"kind": "ddp", "micro_batch": 8}, "measured": {"samples_per_s": 10}},
  {"id": "table", "source": {"repo": "c/d"}, "gpu": "H200", "nodes": 1, "gpus_per_node": 8, "n_ranks": 8, "fabric": "NVLink4", "op": "all_gather", "columns": ["bytes", "time_us"], "table": [[1048576, 40]]}
])j";

class Published : public testing::Test {
protected:
    Published() { dir_.write("mine.json", kRecords); }
    WorkDir dir_;
};

TEST_F(Published, PrintsTheSummaryTheRowsAndWhatWasSkipped) {
    const ProgramRun run = dir_.ringside("validate --published mine.json --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const json result = json::parse(run.out);
    EXPECT_THAT(schemaFaults(readJson(kRoot / "docs/reference/published.schema.json"), result), IsEmpty());
    EXPECT_EQ(result["rows"].size(), 2U);
    EXPECT_EQ(result["rows"][0]["id"], "small");
    EXPECT_EQ(result["rows"][1]["id"], "table/1048576");
    ASSERT_EQ(result["skipped"].size(), 1U);
    EXPECT_EQ(result["skipped"][0]["id"], "odd");
    EXPECT_THAT(result["skipped"][0]["reason"].get<std::string>(), HasSubstr("Mask R-CNN"));
    EXPECT_EQ(result["summary"]["family:mine"]["n"], 1);
}

TEST_F(Published, PrintsTablesCsvAndAPlot) {
    const ProgramRun text = dir_.ringside("validate --published mine.json --plot scatter.svg");
    EXPECT_EQ(text.exitCode, 0) << text.err;
    EXPECT_THAT(text.out, AllOf(HasSubstr("training: 1 of 2 records predicted"), HasSubstr("class:single-node data parallel"), HasSubstr("Skipped: 1 records")));
    EXPECT_THAT(dir_.read("scatter.svg"), HasSubstr("</svg>"));
    const ProgramRun csv = dir_.ringside("validate --published mine.json --csv");
    EXPECT_EQ(csv.exitCode, 0) << csv.err;
    EXPECT_THAT(csv.out, AllOf(HasSubstr("id,kind,class,family,device,strategy"), HasSubstr("small,training,single-node data parallel,mine,a100-80gb-sxm,ddp")));
    EXPECT_EQ(dir_.ringside("validate --published mine.json --format csv").out, csv.out);
}

TEST_F(Published, TakesTheProjectsOwnRecordsWithoutAFile) {
    const ProgramRun run = dir_.ringside("validate --published --filter family=simumax --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(json::parse(run.out)["records"], 18);
}

TEST_F(Published, FindsItsRecordsWhereItIsInstalled) {
    // A program in PREFIX/bin looks in PREFIX/share first.
    const fs::path share = dir_.path() / "prefix/share/ringside/published";
    fs::create_directories(dir_.path() / "prefix/bin");
    fs::create_directories(share);
    fs::copy_file(RINGSIDE_PROGRAM, dir_.path() / "prefix/bin/ringside");
    for (const char* name : {"training.json", "collectives.json", "memory.json"}) std::ofstream(share / name) << "[]";
    const ProgramRun run = dir_.shell("prefix/bin/ringside validate --published --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    EXPECT_EQ(json::parse(run.out)["records"], 0);
}

TEST_F(Published, WritesItsSectionIntoAPage) {
    dir_.write("page.md", "# Page\n<!-- published: begin (make validation writes this section) -->\nold\n<!-- published: end -->\nend\n");
    const ProgramRun run = dir_.ringside("validate --published mine.json --markdown page.md");
    EXPECT_EQ(run.exitCode, 0) << run.err;
    EXPECT_THAT(dir_.read("page.md"), AllOf(HasSubstr("# Page\n"), HasSubstr("| class:single-node data parallel | 1 |"), HasSubstr("\nend\n"), testing::Not(HasSubstr("\nold\n"))));
    dir_.write("other.md", "# Page\n");
    const ProgramRun without = dir_.ringside("validate --published mine.json --markdown other.md");
    EXPECT_EQ(without.exitCode, 3);
    EXPECT_THAT(without.err, AllOf(HasSubstr("other.md"), HasSubstr("published: begin")));
}

TEST_F(Published, SaysWhatIsOffAndWhere) {
    dir_.write("bad.json", R"([{"id": "x-1", "source": {}, "hardware": {"gpu": "A100"}, "model": {}, "strategy": {}, "measured": {"step_time_s": -1}}])");
    const ProgramRun bad = dir_.ringside("validate --published bad.json");
    EXPECT_EQ(bad.exitCode, 3);
    EXPECT_THAT(bad.err, AllOf(HasSubstr("bad.json"), HasSubstr("x-1"), HasSubstr("measured.step_time_s"), HasSubstr("-1")));
    EXPECT_EQ(dir_.ringside("validate --published missing.json").exitCode, 3);
    EXPECT_EQ(dir_.ringside("validate --published mine.json --filter nobody").exitCode, 3);
    EXPECT_EQ(dir_.ringside("validate --published mine.json --filter colour=red").exitCode, 2);
    EXPECT_EQ(dir_.ringside("validate --published mine.json --profile here.json").exitCode, 2);
    EXPECT_EQ(dir_.ringside("validate --published mine.json --json --csv").exitCode, 2);
    EXPECT_EQ(dir_.ringside("validate --profile here.json --filter x").exitCode, 2);
}

TEST_F(Published, FitsProfilesAndWritesWhatItFound) {
    fs::create_directory(dir_.path() / "out");
    const ProgramRun run = dir_.ringside("calibrate --from-published mine.json --out out --json");
    ASSERT_EQ(run.exitCode, 0) << run.err;
    const json result = json::parse(run.out);
    EXPECT_THAT(schemaFaults(readJson(kRoot / "docs/reference/published.schema.json"), result), IsEmpty());
    EXPECT_EQ(result["folds"].size(), 2U) << "two repositories";
    const json figures = readJson(dir_.path() / "out/figures.json");
    EXPECT_THAT(schemaFaults(readJson(kRoot / "docs/reference/published-figures.schema.json"), figures), IsEmpty());
    EXPECT_EQ(figures["figures"], result["fit"]["figures"]);
    EXPECT_EQ(readJson(dir_.path() / "out/folds.json")["folds"].size(), 2U);
    const ProgramRun nowhere = dir_.ringside("calibrate --from-published mine.json --out mine.json");
    EXPECT_EQ(nowhere.exitCode, 5);
    EXPECT_THAT(nowhere.err, HasSubstr("is no directory"));
}

TEST(PublishedData, FiguresFollowTheirSchema) {
    EXPECT_THAT(schemaFaults(readJson(kRoot / "docs/reference/published-figures.schema.json"), readJson(kRoot / "model/catalog/published/figures.json")), IsEmpty());
}

TEST(PublishedData, FollowsItsSchema) {
    const json schema = readJson(kRoot / "docs/reference/published-records.schema.json");
    for (const char* name : {"training.json", "collectives.json", "memory.json", "kernels.json"}) {
        const json records = readJson(kRoot / "tests/data/published" / name);
        EXPECT_GT(records.size(), 50U) << name;
        EXPECT_THAT(schemaFaults(schema, records), IsEmpty()) << name;
    }
}

}  // namespace
}  // namespace ringside
