// Records from elsewhere: keys missing, null, of another type, devices under other names. Each gives a row or a reason, and nothing falls over.
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/published/judge.h"
#include "calibrate/published/published_cluster.h"

namespace ringside {
namespace {

const Catalogs& catalogs() {
    static const Catalogs all = Catalogs::builtin().value();
    return all;
}

Json publishedList(const char* name) { return readJsonFile(std::string(RINGSIDE_SOURCE_DIR "/tests/data/published/") + name).value(); }

/// One change to one value of the record: gone, null, text, negative, huge, a list, another name.
void disturb(Json& record, std::mt19937& random) {
    std::vector<Json*> objects{&record};
    for (auto& [key, value] : record.items())
        if (value.is_object()) objects.push_back(&value);
    Json& object = *objects[random() % objects.size()];
    if (object.empty()) return;
    auto at = object.begin();
    std::advance(at, static_cast<long>(random() % object.size()));
    const std::string key = at.key();
    if (key == "id") return;
    static const Json values[] = {nullptr, "8", "0.5M", "n/a", -1, 0, 1.5, 1e30, Json::array({1, 2}), Json::object({{"x", 1}}), true, "NVIDIA H100 80GB HBM3", "99999999999999999999x99999999999999999999Gb/s"};
    const std::size_t which = random() % (std::size(values) + 2);
    if (which < std::size(values)) object[key] = values[which];
    else if (which == std::size(values)) object.erase(key);
    else if (object[key].is_number()) object[key] = object[key].dump();
}

TEST(ForeignRecords, GiveARowOrAReasonEachWhateverTheyHold) {
    std::mt19937 random(1609);
    Json list = Json::array();
    for (const char* name : {"training.json", "memory.json", "collectives.json"}) {
        const Json own = publishedList(name);
        for (int i = 0; i < 150; ++i) {
            Json record = own[random() % own.size()];
            if (record.contains("table") && record["table"].is_array() && record["table"].size() > 5) record["table"].erase(record["table"].begin() + 5, record["table"].end());
            record["id"] = fmt::format("{}-{}", name, i);
            for (int change = 0; change <= i % 3; ++change) disturb(record, random);
            list.push_back(std::move(record));
        }
    }
    const auto records = recordsFromJson(list, "foreign.json");
    ASSERT_TRUE(records) << records.error().toString();
    ASSERT_EQ(records->size(), list.size());
    const PublishedVerdict verdict = judge(*records, catalogs());
    std::set<std::string> seen;
    for (const JudgedRow& row : verdict.rows) {
        EXPECT_TRUE(std::isfinite(row.predicted) && row.predicted > 0) << row.id;
        seen.insert(row.kind == RecordKind::Collective ? row.sweep : row.id);
    }
    for (const SkippedRecord& one : verdict.skipped) {
        EXPECT_NE(one.reason, "") << one.id;
        EXPECT_TRUE(seen.insert(one.id).second) << one.id << " is both";
    }
    EXPECT_EQ(seen.size(), list.size());
}

TEST(ForeignRecords, NameDevicesInManyWays) {
    const std::pair<const char*, const char*> names[] = {
        {"A100-SXM4-80GB", "a100-80gb-sxm"}, {"NVIDIA A100-SXM4-40GB", "a100-40gb-sxm"}, {"NVIDIA A100 80GB PCIe", "a100-80gb-pcie"}, {"NVIDIA H100 80GB HBM3", "h100-sxm"}, {"NVIDIA H200", "h200"},
        {"Tesla V100-SXM2-32GB", "v100-sxm"}, {"RTX A6000", "rtx-a6000"}, {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"}, {"NVIDIA GeForce RTX 3090", "rtx-3090"}, {"AMD Instinct MI300X", "mi300x"},
        {"NVIDIA L4", "l4"}, {"NVIDIA A10G", "a10g"}, {"GB200 NVL72", "gb200"}, {"NVIDIA B200", "b200"}};
    for (const auto& [gpu, device] : names) {
        EXPECT_EQ(deviceNameOf(gpu), device);
        EXPECT_TRUE(catalogs().hardware.findDevice(deviceNameOf(gpu))) << gpu;
    }
}

// A step that is predicted not to fit is still predicted: it ran, so the memory model is what is off.
TEST(ForeignRecords, ThatArePredictedNotToFitAreStillTimed) {
    const Json record = Json::parse(R"({"id": "too-large", "source": {"repo": "a/b"}, "hardware": {"gpu": "A100-SXM4-40GB", "n_gpus": 1}, "model": {"name": "gpt", "layers": 32, "hidden": 4096, "heads": 32, "vocab": 50304, "seq_len": 2048},
        "strategy": {"kind": "single", "micro_batch": 4, "precision": "fp32", "act_ckpt": "none"}, "measured": {"step_time_s": 40}})");
    const PublishedVerdict verdict = judge(recordsFromJson(Json::array({record}), "f").value(), catalogs());
    ASSERT_EQ(verdict.rows.size(), 1U);
    EXPECT_TRUE(verdict.rows[0].predictedOutOfMemory);
    EXPECT_GT(verdict.rows[0].predicted, 0.5);
}

}  // namespace
}  // namespace ringside
