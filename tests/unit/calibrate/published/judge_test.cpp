// The verdict: rows, what was skipped and why, in every form in which it is shown.
#include "calibrate/published/judge.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/published/collective_rows.h"
#include "calibrate/published/fit_rows.h"
#include "calibrate/published/report.h"

namespace ringside {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Catalogs& catalogs() {
    static const Catalogs all = Catalogs::builtin().value();
    return all;
}

std::vector<PublishedRecord> someRecords() {
    return recordsFromJson(Json::parse(R"([
        {"id": "dp-2", "family": "one", "source": {"repo": "a/b"}, "hardware": {"gpu": "A100-80GB-SXM", "gpus_per_node": 2, "nodes": 1, "n_gpus": 2}, "model": {"name": "gpt2-medium", "seq_len": 1024},
         "strategy": {"kind": "ddp", "micro_batch": 4, "grad_accum": 1, "precision": "bf16 amp", "act_ckpt": "none"}, "measured": {"step_time_s": 0.1}},
        {"id": "dp-16", "family": "one", "source": {"repo": "a/b"}, "hardware": {"gpu": "A100-80GB-SXM", "gpus_per_node": 8, "nodes": 2, "n_gpus": 16}, "model": {"name": "gpt2-medium", "seq_len": 1024},
         "strategy": {"kind": "ddp", "micro_batch": 4, "grad_accum": 1, "precision": "bf16 amp", "act_ckpt": "none"}, "measured": {"step_time_s": 0.1}},
        {"id": "alone", "family": "two", "source": {"repo": "a/c"}, "hardware": {"gpu": "A100-80GB-SXM", "n_gpus": 1}, "model": {"name": "ResNet-50"},
         "strategy": {"kind": "single", "micro_batch": 64, "grad_accum": 1, "precision": "fp16 amp", "act_ckpt": "none"}, "measured": {"samples_per_s": 2000}},
        {"id": "typo, \"doubted\"", "family": "two", "source": {"repo": "a/c"}, "hardware": {"gpu": "A100-80GB-SXM", "n_gpus": 1}, "model": {"name": "ResNet-50"},
         "strategy": {"kind": "single", "micro_batch": 64, "grad_accum": 1, "precision": "fp16 amp"}, "measured": {"samples_per_s": 9}, "flag": "a slip of the source"},
        {"id": "too-fast", "family": "two", "source": {"repo": "a/c"}, "hardware": {"gpu": "A100-80GB-SXM", "n_gpus": 1}, "model": {"name": "ResNet-50"},
         "strategy": {"kind": "single", "micro_batch": 64, "grad_accum": 1, "precision": "fp16 amp"}, "measured": {"samples_per_s": 1e6}},
        {"id": "peak", "source": {"repo": "owner/c"}, "hardware": {"gpu": "A100-80GB-SXM", "n_gpus": 1}, "model": {"name": "gpt2-medium", "seq_len": 1024},
         "strategy": {"kind": "single", "micro_batch": 4, "grad_accum": 1, "precision": "fp32", "act_ckpt": "none"}, "peak": {"peak_mem_gib": 20}},
        {"id": "did-not-fit", "source": {"repo": "owner/c"}, "hardware": {"gpu": "A100-80GB-SXM", "n_gpus": 1}, "model": {"name": "gpt2-medium", "seq_len": 1024},
         "strategy": {"kind": "single", "micro_batch": 4, "grad_accum": 1, "precision": "fp32", "act_ckpt": "none"}, "peak": {"oom": true}},
        {"id": "table", "source": {"repo": "owner/d"}, "gpu": "H200", "nodes": 1, "gpus_per_node": 8, "n_ranks": 8, "fabric": "NVLink4 NVSwitch", "op": "all_reduce", "dtype": "float",
         "columns": ["bytes", "time_us", "busbw_GBps"], "table": [[1024, 20, 0], [1048576, 40, 0], [1073741824, 4500, 0]]},
        {"id": "one-rank", "source": {"repo": "owner/d"}, "gpu": "H200", "n_ranks": 1, "op": "all_reduce", "columns": ["bytes", "time_us"], "table": [[1024, 20]]},
        {"id": "gemm", "kind": "gemm", "source": {"repo": "owner/e"}}
    ])"), "some.json").value();
}

PublishedVerdict someVerdict() { return judge(someRecords(), catalogs(), 2); }

std::string reasonOf(const PublishedVerdict& verdict, const std::string& id) {
    for (const SkippedRecord& one : verdict.skipped)
        if (one.id == id) return one.reason;
    return "not skipped";
}

TEST(PublishedVerdictTest, HoldsARowOrAReasonForEveryRecord) {
    const PublishedVerdict verdict = someVerdict();
    EXPECT_EQ(verdict.records, 10U);
    std::vector<std::string> rows;
    for (const JudgedRow& row : verdict.rows) rows.push_back(row.id);
    EXPECT_THAT(rows, ElementsAre("dp-2", "dp-16", "alone", "peak", "table/1024", "table/1048576", "table/1073741824"));
    EXPECT_EQ(verdict.skipped.size(), 5U);
    EXPECT_THAT(reasonOf(verdict, "typo, \"doubted\""), HasSubstr("flagged: a slip of the source"));
    EXPECT_THAT(reasonOf(verdict, "too-fast"), HasSubstr("times the device's peak"));
    EXPECT_THAT(reasonOf(verdict, "one-rank"), HasSubstr("not a collective"));
    EXPECT_THAT(reasonOf(verdict, "gemm"), HasSubstr("kernel tables"));
}

TEST(PublishedVerdictTest, SaysWhatARecordLacks) {
    const auto records = recordsFromJson(Json::parse(R"([
        {"id": "no-speed", "source": {}, "hardware": {"gpu": "A100", "n_gpus": 1}, "model": {"name": "ResNet-50"}, "strategy": {"kind": "single", "micro_batch": 8, "precision": "fp32"}, "measured": {"loss": 3}},
        {"id": "no-peak", "source": {}, "hardware": {"gpu": "A100", "n_gpus": 1}, "model": {"name": "ResNet-50"}, "strategy": {"kind": "single", "micro_batch": 8, "precision": "fp32"}, "peak": {"stones": 3}},
        {"id": "no-device", "gpu": null, "n_ranks": 8, "op": "all_reduce", "columns": ["bytes", "time_us"], "table": [[8, 8]]}])"), "f").value();
    const PublishedVerdict verdict = judge(records, catalogs(), 1);
    EXPECT_THAT(reasonOf(verdict, "no-speed"), HasSubstr("neither a step time nor a throughput"));
    EXPECT_THAT(reasonOf(verdict, "no-peak"), HasSubstr("no peak is given"));
    EXPECT_THAT(reasonOf(verdict, "no-device"), HasSubstr("the device is not stated"));
}

TEST(PublishedVerdictTest, CountsRunsThatDidNotFitThoughPredictedTo) {
    const PublishedVerdict verdict = someVerdict();
    EXPECT_THAT(reasonOf(verdict, "did-not-fit"), HasSubstr("predicted to fit"));
    EXPECT_EQ(verdict.falseFits, 1U);
    EXPECT_EQ(verdict.falseOutOfMemory, 0U);
}

TEST(PublishedVerdictTest, PutsEachRowInItsClass) {
    std::vector<std::string> classes;
    for (const JudgedRow& row : someVerdict().rows) classes.push_back(row.group);
    EXPECT_THAT(classes, ElementsAre("single-node data parallel", "multi-node data parallel", "single device", "memory", "collectives < 1 MiB", "collectives >= 1 MiB", "collectives >= 1 MiB"));
}

TEST(PublishedVerdictTest, KeepsFrameworksWhoseKernelsAreTheirOwnApart) {
    const auto classOfNotes = [](const char* notes) {
        Json json = Json::parse(R"([{"id": "a", "source": {}, "hardware": {"gpu": "V100-SXM2-16GB", "nodes": 2, "gpus_per_node": 8, "n_gpus": 16}, "model": {"name": "ResNet-50"},
            "strategy": {"kind": "ddp", "micro_batch": 8, "precision": "fp32"}, "measured": {"samples_per_s": 3}}])");
        json[0]["notes"] = notes;
        return classOf(recordsFromJson(json, "f").value().front());
    };
    EXPECT_EQ(classOfNotes("framework NGC MXNet (not PyTorch DDP unless named); weak scaling"), "data parallel of other frameworks");
    EXPECT_EQ(classOfNotes("framework PyTorch (not PyTorch DDP unless named); weak scaling"), "multi-node data parallel");
    EXPECT_EQ(classOfNotes("framework overhead is included"), "multi-node data parallel");
}

TEST(PublishedVerdictTest, CountsFiguresThatASimulatorMadeInAClassOfTheirOwnOnly) {
    Json json = Json::parse(R"([{"id": "a", "family": "one", "source": {"repo": "a/b"}, "hardware": {"gpu": "A100-80GB-SXM", "gpus_per_node": 2, "nodes": 1, "n_gpus": 2},
        "model": {"name": "gpt2-medium", "seq_len": 1024}, "strategy": {"kind": "ddp", "micro_batch": 4, "precision": "bf16 amp", "act_ckpt": "none"}, "measured": {"step_time_s": 0.1}}])");
    json.push_back(json[0]);
    json[1]["id"] = "b";
    json[1]["simulated"] = "its predictor's output";
    const std::vector<PublishedRecord> records = recordsFromJson(json, "f").value();
    const PublishedVerdict verdict = judge(records, catalogs(), 1);
    ASSERT_EQ(verdict.rows.size(), 2U) << "predicted all the same";
    EXPECT_EQ(verdict.rows[1].group, kSimulated);
    std::map<std::string, std::size_t> counts;
    for (const auto& [name, summary] : groupsOf(verdict)) counts[name] = summary.n;
    EXPECT_EQ(counts["all training"], 1U);
    EXPECT_EQ(counts["family:one"], 1U);
    EXPECT_EQ(counts[std::string("class:") + kSimulated], 1U);
    EXPECT_EQ(counts["class:single-node data parallel"], 1U);
    // Nor does a figure of the profiles rest on it.
    const std::vector<PublishedRun> runs = prepareRuns(records, catalogs(), 1);
    EXPECT_EQ(fitRows(records, runs, catalogs(), 120).size(), 1U);
}

TEST(PublishedVerdictTest, DoesNotDependOnTheThreads) {
    EXPECT_EQ(publishedJson(judge(someRecords(), catalogs(), 1)).dump(), publishedJson(judge(someRecords(), catalogs(), 4)).dump());
}

TEST(PublishedVerdictTest, AsksTheCollectiveModelForEachSize) {
    const std::vector<PublishedRecord> records = someRecords();
    const auto one = collectiveCase(records[7].json);
    ASSERT_TRUE(one) << one.error().toString();
    const PublishedVerdict verdict = someVerdict();
    EXPECT_DOUBLE_EQ(verdict.rows[4].predicted, predictCollectiveSeconds(*one, 1024));
    EXPECT_DOUBLE_EQ(verdict.rows[6].predicted, predictCollectiveSeconds(*one, 1 << 30));
    EXPECT_DOUBLE_EQ(verdict.rows[6].measured, 4.5e-3);
}

TEST(PublishedVerdictTest, TakesRecomputeForAWholeSeriesOfWhichOneRunWouldNotFitWithout) {
    const auto run = [](const char* id, const char* repo, int micro) {
        return Json{{"id", id}, {"source", {{"repo", repo}}}, {"hardware", {{"gpu", "A100-80GB-SXM"}, {"n_gpus", 8}}}, {"measured", {{"step_time_s", 5}}},
                    {"model", {{"name", "gpt"}, {"layers", 32}, {"hidden", 4096}, {"heads", 32}, {"vocab", 50304}, {"seq_len", 2048}}},
                    {"strategy", {{"kind", "zero2"}, {"micro_batch", micro}, {"precision", "bf16"}, {"act_ckpt", nullptr}}}};
    };
    const auto records = recordsFromJson(Json::array({run("large", "a/b", 16), run("small", "a/b", 1), run("elsewhere", "a/c", 1)}), "f").value();
    const PublishedVerdict verdict = judge(records, catalogs(), 2);
    ASSERT_EQ(verdict.rows.size(), 3U);
    EXPECT_THAT(verdict.rows[0].assumed, testing::Contains("recompute not stated: full, as it does not fit without"));
    EXPECT_THAT(verdict.rows[1].assumed, testing::Contains("recompute not stated: full, as other runs of this series do not fit without"));
    EXPECT_THAT(verdict.rows[2].assumed, testing::Contains("recompute not stated: none"));
    EXPECT_GT(verdict.rows[1].predicted, verdict.rows[2].predicted);
}

TEST(PublishedFilters, TakeRecordsThatContainTheText) {
    const std::vector<PublishedRecord> records = someRecords();
    const auto count = [&](std::vector<std::string> texts) {
        std::vector<RecordFilter> filters;
        for (const std::string& text : texts) filters.push_back(recordFilter(text).value());
        return std::count_if(records.begin(), records.end(), [&](const PublishedRecord& one) { return matches(one, filters); });
    };
    EXPECT_EQ(count({}), 10);
    EXPECT_EQ(count({"family=two"}), 3);
    EXPECT_EQ(count({"device=A100-80GB"}), 7);
    EXPECT_EQ(count({"kind=memory"}), 2);
    EXPECT_EQ(count({"class=multi-node"}), 1);
    EXPECT_EQ(count({"strategy=all_reduce"}), 2);
    EXPECT_EQ(count({"resnet", "id=alone"}), 1);
    EXPECT_EQ(recordFilter("familly=two").error().code, ErrorCode::Usage);
    EXPECT_THAT(recordFilter("familly=two").error().message, HasSubstr("family"));
    EXPECT_EQ(recordFilter("family=").error().code, ErrorCode::Usage);
}

TEST(PublishedReport, IsJsonWithTheKeysThatScriptsRelyOn) {
    const Json json = publishedJson(someVerdict());
    EXPECT_EQ(json["format"], "ringside-published");
    EXPECT_EQ(json["records"], 10);
    for (const char* group : {"all training", "class:single device", "family:one", "device:a100-80gb-sxm", "strategy:ddp", "all collectives", "class:collectives >= 1 MiB", "collectives op:all_reduce", "all memory",
                              "memory family:owner"}) {
        ASSERT_TRUE(json["summary"].contains(group)) << group;
        for (const char* key : {"n", "mape", "median", "p90", "worst", "bias", "spearman", "coverage"}) EXPECT_TRUE(json["summary"][group].contains(key)) << group << " " << key;
    }
    EXPECT_EQ(json["summary"]["all training"]["n"], 3);
    EXPECT_TRUE(json["summary"]["all memory"]["coverage"].is_number());
    for (const Json& row : json["rows"]) {
        EXPECT_NEAR(row["error"].get<double>(), row["predicted"].get<double>() / row["measured"].get<double>() - 1, 1e-12);
        EXPECT_TRUE(row["in_band"].is_boolean());
        EXPECT_EQ(row.contains("predicted_allocated") && row.contains("predicted_reserved"), row["unit"] == "bytes");
    }
    EXPECT_EQ(json["skipped"].size(), 5U);
    EXPECT_EQ(json["memory"]["false_fits"], 1);
}

TEST(PublishedReport, IsCsvWithOneLineForEachRowAndSkippedRecord) {
    const std::string csv = publishedCsv(someVerdict());
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 7 + 5);
    EXPECT_THAT(csv, HasSubstr("\"typo, \"\"doubted\"\"\",training,,two,"));
    EXPECT_THAT(csv, HasSubstr("alone,training,single device,two,a100-80gb-sxm,single,ResNet-50,"));
}

TEST(PublishedReport, IsTextWithTablesWorstRowsAndReasons) {
    const std::string text = publishedText(someVerdict());
    EXPECT_THAT(text, AllOf(HasSubstr("training: 3 of 5 records predicted (one 2/2, two 1/3)"), HasSubstr("collectives: 1 of 2"), HasSubstr("class:single device"), HasSubstr("Worst rows, training"),
                            HasSubstr("Skipped: 5 records"), HasSubstr("flagged: a slip of the source")));
}

TEST(PublishedReport, DrawsTheTrainingRowsWithTheirLimits) {
    const std::string svg = publishedScatter(someVerdict());
    EXPECT_THAT(svg, AllOf(HasSubstr("<svg"), HasSubstr("single device"), HasSubstr("±10 %"), HasSubstr("dp-16"), Not(HasSubstr("table/1024"))));
}

TEST(PublishedReport, WritesBetweenItsMarkersOnly) {
    const std::string begin = "<!-- published: begin (make validation writes this section) -->\n", end = "<!-- published: end -->";
    const auto written = withSection("before\n" + begin + "old\n" + end + "\nafter\n", "new\n", "page.md");
    ASSERT_TRUE(written);
    EXPECT_EQ(*written, "before\n" + begin + "new\n" + end + "\nafter\n");
    EXPECT_THAT(withSection("nothing", "new", "page.md").error().toString(), AllOf(HasSubstr("page.md"), HasSubstr("published: begin")));
}

TEST(PublishedSet, IsJudgedWhole) {
    std::vector<PublishedRecord> records;
    const auto files = ownRecordFiles();
    ASSERT_TRUE(files) << files.error().toString();
    for (const std::string& file : *files) {
        auto read = readRecords(file);
        ASSERT_TRUE(read) << read.error().toString();
        for (PublishedRecord& record : *read) records.push_back(std::move(record));
    }
    const PublishedVerdict verdict = judge(records, catalogs());
    EXPECT_EQ(verdict.records, records.size());
    // Each record gives a row, the rows of a table, or a reason.
    std::size_t rows = 0;
    std::string last;
    for (const JudgedRow& row : verdict.rows) {
        const bool sameTable = row.kind == RecordKind::Collective && row.sweep == last;
        last = row.kind == RecordKind::Collective ? row.sweep : "";
        rows += sameTable ? 0 : 1;
        EXPECT_GT(row.predicted, 0) << row.id;
        EXPECT_GT(row.measured, 0) << row.id;
    }
    EXPECT_EQ(rows + verdict.skipped.size(), records.size());
    for (const SkippedRecord& one : verdict.skipped) EXPECT_NE(one.reason, "") << one.id;
    EXPECT_GT(verdict.rows.size(), 8000U);
}

}  // namespace
}  // namespace ringside
