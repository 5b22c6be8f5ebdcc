// Records are read with errors that name file, record, key, what was found and what was expected.
#include "calibrate/published/records.h"

#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringside {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Json run(const std::string& changes = "{}") {
    Json record = Json::parse(R"({"id": "run-1", "family": "Some", "source": {"repo": "a/b", "path": "README.md"},
        "hardware": {"gpu": "A100-80GB-SXM", "gpus_per_node": 8, "nodes": 2, "n_gpus": 16, "interconnect": "8x200Gb/s HDR"},
        "model": {"name": "gpt", "layers": 12, "hidden": 768, "heads": 12, "params": "82M", "seq_len": 1024},
        "strategy": {"kind": "ddp", "tp": 1, "micro_batch": 4, "grad_accum": null, "precision": "bf16", "something": [1]},
        "measured": {"step_time_s": 0.5}, "notes": "n", "anything": {"else": 1}})");
    record.merge_patch(Json::parse(changes));
    return record;
}

std::string errorOf(const Json& record) {
    const auto records = recordsFromJson(Json::array({record}), "file.json");
    return records ? "none" : records.error().toString();
}

TEST(PublishedRecords, KeepARecordThatCannotBeReadWithTheReasonAndReadTheOthers) {
    const auto records = recordsFromJson(Json::array({run(R"({"measured": {"step_time_s": -1}})"), run(), Json(3)}), "file.json");
    ASSERT_TRUE(records) << records.error().toString();
    ASSERT_EQ(records->size(), 3U);
    EXPECT_THAT((*records)[0].unreadable, AllOf(HasSubstr("run-1"), HasSubstr("step_time_s")));
    EXPECT_EQ((*records)[1].unreadable, "");
    EXPECT_EQ((*records)[2].id, "[2]");
}

TEST(PublishedRecords, TakeNumbersWrittenAsText) {
    const auto records = recordsFromJson(Json{{"records", {run(R"({"strategy": {"micro_batch": "2", "global_batch": "1,024", "global_batch_tokens": "0.5M"}, "measured": {"step_time_s": "0.25"}})")}}}, "file.json");
    ASSERT_TRUE(records) << records.error().toString();
    const PublishedRecord& record = records->front();
    EXPECT_EQ(record.strategy.microBatch, 2);
    EXPECT_EQ(record.strategy.globalBatch, 1024);
    EXPECT_EQ(record.strategy.globalBatchTokens, 524288);
    EXPECT_EQ(record.speed.stepSeconds, 0.25);
}

TEST(PublishedRecords, KeepWhatTheSourceSaysAndLeaveTheRestOpen) {
    const auto records = recordsFromJson(Json::array({run()}), "file.json");
    ASSERT_TRUE(records) << records.error().toString();
    const PublishedRecord& record = records->front();
    EXPECT_EQ(record.kind, RecordKind::Training);
    EXPECT_EQ(record.family, "some");
    EXPECT_EQ(record.source, "a/b README.md");
    EXPECT_EQ(record.hardware.gpus, 16);
    EXPECT_EQ(record.model.layers, 12);
    EXPECT_FALSE(record.model.ffn);
    EXPECT_EQ(record.strategy.microBatch, 4);
    EXPECT_FALSE(record.strategy.gradAccum);
    EXPECT_EQ(record.speed.stepSeconds, 0.5);
    EXPECT_EQ(record.flag, "");
}

TEST(PublishedRecords, TellTheirKindFromTheirKeys) {
    const Json memory = run(R"({"measured": null, "peak": {"peak_mem_mib": 1024}})");
    const Json table = Json::parse(R"({"id": "t", "gpu": "A100", "op": "all_reduce", "columns": ["bytes", "time_us"], "table": [[0, 0], [1024, 50], [2048, 60]]})");
    const Json kernel = Json::parse(R"({"id": "k", "kind": "gemm", "table": []})");
    const auto records = recordsFromJson(Json::array({run(), memory, table, kernel}), "file.json");
    ASSERT_TRUE(records) << records.error().toString();
    EXPECT_EQ((*records)[0].kind, RecordKind::Training);
    EXPECT_EQ((*records)[1].kind, RecordKind::Memory);
    EXPECT_EQ((*records)[1].peak.bytes, 1024.0 * 1024 * 1024);
    EXPECT_EQ((*records)[2].kind, RecordKind::Collective);
    ASSERT_EQ((*records)[2].table.size(), 2U);  // the empty buffer is left out
    EXPECT_EQ((*records)[2].table[1].bytes, 2048);
    EXPECT_NEAR((*records)[2].table[1].seconds, 60e-6, 1e-15);
    EXPECT_EQ((*records)[3].kind, RecordKind::Kernel);
}

TEST(PublishedRecords, RefuseMeasurementsThatAreNoPositiveNumbers) {
    EXPECT_THAT(errorOf(run(R"({"measured": {"step_time_s": -0.5}})")), AllOf(HasSubstr("file.json"), HasSubstr("run-1"), HasSubstr("measured.step_time_s"), HasSubstr("-0.5")));
    EXPECT_THAT(errorOf(run(R"({"measured": {"step_time_s": 0}})")), HasSubstr("step_time_s"));
    EXPECT_THAT(errorOf(run(R"({"measured": {"step_time_s": "fast"}})")), AllOf(HasSubstr("expected a number"), HasSubstr("fast")));
    Json infinite = run();
    infinite["measured"]["step_time_s"] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THAT(errorOf(infinite), HasSubstr("step_time_s"));
}

TEST(PublishedRecords, NameTheKeyThatIsOff) {
    EXPECT_THAT(errorOf(run(R"({"hardware": null})")), AllOf(HasSubstr("run-1"), HasSubstr("'hardware'")));
    EXPECT_THAT(errorOf(run(R"({"hardware": {"nodes": 0}})")), AllOf(HasSubstr("hardware.nodes"), HasSubstr("0")));
    EXPECT_THAT(errorOf(run(R"({"strategy": {"micro_batch": 1.5}})")), AllOf(HasSubstr("strategy.micro_batch"), HasSubstr("1.5")));
    EXPECT_THAT(errorOf(run(R"({"measured": null})")), AllOf(HasSubstr("run-1"), HasSubstr("is no record")));
    EXPECT_THAT(errorOf(run(R"({"id": null})")), AllOf(HasSubstr("[0]"), HasSubstr("'id'")));
    EXPECT_THAT(errorOf(Json(3)), HasSubstr("expected a record"));
    EXPECT_THAT(recordsFromJson(Json::object(), "file.json").error().toString(), HasSubstr("expected a list of records"));
}

TEST(PublishedRecords, RefuseTablesThatAreNotWhatTheirColumnsSay) {
    const auto table = [](const char* columns, const char* rows) {
        return Json::parse(fmt::format(R"({{"id": "t", "op": "all_reduce", "columns": {}, "table": {}}})", columns, rows));
    };
    EXPECT_THAT(errorOf(table(R"(["size", "time_us"])", "[[1, 2]]")), HasSubstr("expected the columns bytes and time_us"));
    EXPECT_THAT(errorOf(table(R"(["bytes", "time_us"])", "[[1, 2], [3]]")), AllOf(HasSubstr("table[1]"), HasSubstr("has 1 cells")));
    EXPECT_THAT(errorOf(table(R"(["bytes", "time_us"])", "[[1, -2]]")), HasSubstr("table[0][1]"));
    EXPECT_THAT(errorOf(table(R"(["bytes", "time_us"])", "[]")), HasSubstr("at least one row"));
}

TEST(PublishedRecords, TakeEightDevicesPerNodeWhereOnlyATotalIsGiven) {
    const auto records = recordsFromJson(Json::array({run(R"({"hardware": {"gpus_per_node": null, "nodes": null, "n_gpus": 32}})")}), "file.json");
    ASSERT_TRUE(records) << records.error().toString();
    EXPECT_EQ(records->front().hardware.nodes, 4);
    EXPECT_EQ(records->front().hardware.gpusPerNode, 8);
}

TEST(PublishedRecords, OfTheProjectCanAllBeRead) {
    const auto files = ownRecordFiles();
    ASSERT_TRUE(files) << files.error().toString();
    ASSERT_EQ(files->size(), 3U);
    std::size_t records = 0;
    for (const std::string& file : *files) {
        const auto read = readRecords(file);
        ASSERT_TRUE(read) << read.error().toString();
        for (const PublishedRecord& record : *read) EXPECT_NE(record.source, "") << record.id << " cites nobody";
        records += read->size();
    }
    EXPECT_EQ(records, 1908U + 89 + 83);
}

}  // namespace
}  // namespace ringside
