#include "calibrate/published/records.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringside {
namespace {

constexpr double kLeast = 1e-12, kMost = 1e18;  // a measurement is a positive number
constexpr std::int64_t kMostCount = std::int64_t{1} << 40;

/// A number written as text: "8", "1,024", "0.25". Nothing for other text ("82M", "4x8": for people).
std::optional<double> numberIn(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, fault] = std::from_chars(text.data(), end, value);
    return fault == std::errc() && rest == end && !text.empty() ? std::optional(value) : std::nullopt;
}

/// A whole number that a source may have left open. Text that is no number counts as open.
Result<void> readCount(const JsonCursor& object, const char* key, std::optional<std::int64_t>& into) {
    const auto found = object.find(key);
    if (!found) return {};
    if (found->value().is_string()) {
        const auto number = numberIn(found->value().get<std::string>());
        if (!number) return {};
        const Json value = *number;
        TRY(into, JsonCursor(value, found->place()).asInt(1, kMostCount));
        return {};
    }
    TRY(into, found->asInt(1, kMostCount));
    return {};
}

Result<void> readCount(const JsonCursor& object, const char* key, std::int64_t& into) {
    std::optional<std::int64_t> value;
    TRY_VOID(readCount(object, key, value));
    if (value) into = *value;
    return {};
}

/// Text, or whatever else stands there as text; "" where nothing does.
std::string textOf(const JsonCursor& object, const char* key) {
    const auto found = object.find(key);
    if (!found) return {};
    return found->value().is_string() ? found->value().get<std::string>() : found->value().dump();
}

/// A measured figure: a positive finite number.
Result<void> readMeasured(const JsonCursor& object, const char* key, std::optional<double>& into) {
    const auto found = object.find(key);
    if (!found) return {};
    if (found->value().is_string())
        if (const auto number = numberIn(found->value().get<std::string>())) {
            const Json value = *number;
            TRY(into, JsonCursor(value, found->place()).asNumber(kLeast, kMost));
            return {};
        }
    TRY(into, found->asNumber(kLeast, kMost));
    return {};
}

/// The object under `key`. Errors say so where it is something else.
Result<JsonCursor> objectAt(const JsonCursor& record, const char* key) {
    TRY(const JsonCursor found, record.at(key));
    if (!found.value().is_object()) return found.error(fmt::format("expected an object, found {}", found.value().type_name()));
    return found;
}

Result<PublishedHardware> readHardware(const JsonCursor& json) {
    PublishedHardware hardware;
    hardware.gpu = textOf(json, "gpu");
    hardware.interconnect = textOf(json, "interconnect");
    TRY_VOID(readCount(json, "nodes", hardware.nodes));
    TRY_VOID(readCount(json, "gpus_per_node", hardware.gpusPerNode));
    std::optional<std::int64_t> total;
    TRY_VOID(readCount(json, "n_gpus", total));
    constexpr std::int64_t kUsual = 8;  // devices of a node, where only a total is given
    if (!hardware.gpusPerNode && !hardware.nodes && total.value_or(1) > kUsual && *total % kUsual == 0) hardware.gpusPerNode = kUsual;
    if (total && !hardware.nodes && hardware.gpusPerNode && *total % *hardware.gpusPerNode == 0) hardware.nodes = *total / *hardware.gpusPerNode;
    const std::int64_t product = hardware.nodes.value_or(1) * hardware.gpusPerNode.value_or(total.value_or(1));
    hardware.gpus = total.value_or(product);
    return hardware;
}

Result<PublishedModel> readModel(const JsonCursor& json) {
    PublishedModel model;
    model.name = textOf(json, "name");
    TRY_VOID(readCount(json, "layers", model.layers));
    TRY_VOID(readCount(json, "hidden", model.hidden));
    TRY_VOID(readCount(json, "heads", model.heads));
    TRY_VOID(readCount(json, "kv_heads", model.kvHeads));
    TRY_VOID(readCount(json, "ffn", model.ffn));
    TRY_VOID(readCount(json, "vocab", model.vocab));
    TRY_VOID(readCount(json, "seq_len", model.seqLen));
    return model;
}

/// "0.5M" → 524288: tokens are counted in powers of two.
std::optional<double> tokensOf(const std::string& text) {
    std::size_t end = 0;
    double value = 0;
    try {
        value = std::stod(text, &end);
    } catch (const std::exception&) {
        return std::nullopt;
    }
    if (end < text.size() && (text[end] == 'M' || text[end] == 'm')) value *= 1 << 20;
    if (end < text.size() && (text[end] == 'K' || text[end] == 'k')) value *= 1 << 10;
    return value;
}

Result<PublishedStrategy> readStrategy(const JsonCursor& json) {
    PublishedStrategy strategy;
    strategy.kind = textOf(json, "kind");
    strategy.precision = textOf(json, "precision");
    strategy.actCkpt = textOf(json, "act_ckpt");
    strategy.optimizer = textOf(json, "optimizer");
    strategy.overlap = textOf(json, "overlap");
    strategy.offload = textOf(json, "offload");
    TRY_VOID(readCount(json, "tp", strategy.tp));
    TRY_VOID(readCount(json, "pp", strategy.pp));
    TRY_VOID(readCount(json, "cp", strategy.cp));
    TRY_VOID(readCount(json, "ep", strategy.ep));
    TRY_VOID(readCount(json, "vp", strategy.vp));
    TRY_VOID(readCount(json, "dp", strategy.dp));
    TRY_VOID(readCount(json, "micro_batch", strategy.microBatch));
    TRY_VOID(readCount(json, "grad_accum", strategy.gradAccum));
    TRY_VOID(readCount(json, "global_batch", strategy.globalBatch));
    TRY_VOID(readCount(json, "batch_per_dp", strategy.batchPerDp));
    if (json.has("global_batch_tokens")) strategy.globalBatchTokens = tokensOf(textOf(json, "global_batch_tokens"));
    if (const auto clip = json.find("grad_clip"); clip && clip->value().is_number() && clip->value().get<double>() > 0) strategy.gradClip = clip->value().get<double>();
    return strategy;
}

Result<PublishedSpeed> readSpeed(const JsonCursor& json) {
    PublishedSpeed speed;
    TRY_VOID(readMeasured(json, "step_time_s", speed.stepSeconds));
    TRY_VOID(readMeasured(json, "samples_per_s", speed.samplesPerSecond));
    TRY_VOID(readMeasured(json, "tokens_per_s", speed.tokensPerSecond));
    TRY_VOID(readMeasured(json, "tokens_per_s_per_gpu", speed.tokensPerSecondPerGpu));
    TRY_VOID(readMeasured(json, "tflops_per_gpu", speed.tflopsPerGpu));
    TRY_VOID(readMeasured(json, "mfu", speed.mfu));
    return speed;
}

Result<PublishedPeak> readPeak(const JsonCursor& json, const std::string& notes) {
    struct Unit {
        const char* key;
        double bytes;
        PublishedPeak::Of of;
    };
    using Of = PublishedPeak::Of;
    // A source that says "reserved" means the allocator's pool; NVML sees everything on the device.
    const Of said = notes.find("reserved") != std::string::npos ? Of::Reserved : Of::Allocated;
    const Unit units[] = {{"peak_mem_gib", 0x1p30, said}, {"peak_mem_mib", 0x1p20, said}, {"peak_mem_gb", 1e9, said}, {"peak_mem_bytes", 1, said},
                          {"peak_allocated_gib", 0x1p30, Of::Allocated}, {"peak_reserved_gib", 0x1p30, Of::Reserved},
                          {"nvml_used_mib", 0x1p20, Of::Device}, {"nvml_used_gib", 0x1p30, Of::Device}};
    TRY(const bool outOfMemory, json.boolOr("oom", false));
    if (outOfMemory) return PublishedPeak{Of::Device, 0, true};
    for (const Unit& unit : units) {
        std::optional<double> value;
        TRY_VOID(readMeasured(json, unit.key, value));
        if (value) return PublishedPeak{unit.of, *value * unit.bytes, false};
    }
    return PublishedPeak{};
}

Result<std::vector<CollectiveSample>> readTable(const JsonCursor& record) {
    TRY(const JsonCursor names, record.at("columns"));
    TRY(const std::vector<JsonCursor> columns, names.items());
    std::optional<std::size_t> bytes, time;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        TRY(const std::string name, columns[c].asString());
        if (name == "bytes") bytes = c;
        if (name == "time_us") time = c;
    }
    if (!bytes || !time) return names.error(fmt::format("expected the columns bytes and time_us, found {}", names.value().dump()));
    TRY(const JsonCursor table, record.at("table"));
    TRY(const std::vector<JsonCursor> rows, table.items());
    std::vector<CollectiveSample> samples;
    for (const JsonCursor& row : rows) {
        TRY(const std::vector<JsonCursor> cells, row.items());
        if (cells.size() != columns.size()) return row.error(fmt::format("has {} cells; expected one for each of the {} columns", cells.size(), columns.size()));
        CollectiveSample sample;
        TRY(sample.bytes, cells[*bytes].asInt(0, kMostCount));
        if (sample.bytes == 0) continue;  // nccl-tests prints a line for an empty buffer
        if (cells[*time].value().is_null()) continue;  // this size was not measured
        TRY(const double us, cells[*time].asNumber(kLeast, kMost));
        sample.seconds = us * 1e-6;
        samples.push_back(sample);
    }
    if (samples.empty()) return table.error("expected at least one row");
    return samples;
}

Result<RecordKind> kindOf(const JsonCursor& record) {
    if (record.has("table") && record.has("op")) return RecordKind::Collective;
    if (record.has("peak")) return RecordKind::Memory;
    if (record.has("measured")) return RecordKind::Training;
    if (record.has("kind")) return RecordKind::Kernel;
    return record.error("is no record: expected \"measured\" (training), \"peak\" (memory), or \"op\" with \"table\" (collectives)");
}

Result<void> readHead(const JsonCursor& json, PublishedRecord& record) {
    record.notes = textOf(json, "notes");
    record.flag = textOf(json, "flag");
    record.simulated = textOf(json, "simulated");
    std::string repository;
    if (const auto source = json.find("source"); source && source->value().is_object()) {
        repository = textOf(*source, "repo");
        record.source = repository + " " + textOf(*source, "path");
    } else {
        repository = record.source = textOf(json, "source");
    }
    record.repository = repository;
    record.family = textOf(json, "family");
    if (record.family.empty()) record.family = repository.substr(0, repository.find('/'));
    if (record.family.empty()) record.family = "unnamed";
    std::transform(record.family.begin(), record.family.end(), record.family.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return {};
}

Result<PublishedRecord> readRecord(const Json& json, const std::string& file, std::size_t index) {
    PublishedRecord record;
    record.file = file;
    const JsonCursor unnamed(json, file, fmt::format("[{}]", index));
    if (!json.is_object()) return unnamed.error(fmt::format("expected a record, found {}", json.type_name()));
    TRY(const JsonCursor id, unnamed.at("id"));
    TRY(record.id, id.asString());
    const JsonCursor cursor(json, record.place());
    TRY(record.kind, kindOf(cursor));
    TRY_VOID(readHead(cursor, record));
    record.json = json;
    if (record.kind == RecordKind::Kernel) return record;
    if (record.kind == RecordKind::Collective) {
        record.hardware.gpu = textOf(cursor, "gpu");
        record.hardware.interconnect = textOf(cursor, "fabric");
        record.strategy.kind = textOf(cursor, "op");
        TRY(record.table, readTable(cursor));
        return record;
    }
    TRY(const JsonCursor hardware, objectAt(cursor, "hardware"));
    TRY(record.hardware, readHardware(hardware));
    TRY(const JsonCursor model, objectAt(cursor, "model"));
    TRY(record.model, readModel(model));
    TRY(const JsonCursor strategy, objectAt(cursor, "strategy"));
    TRY(record.strategy, readStrategy(strategy));
    if (record.kind == RecordKind::Memory) {
        TRY(const JsonCursor peak, objectAt(cursor, "peak"));
        TRY(record.peak, readPeak(peak, record.notes));
        return record;
    }
    TRY(const JsonCursor measured, objectAt(cursor, "measured"));
    TRY(record.speed, readSpeed(measured));
    return record;
}

}  // namespace

std::string_view nameOf(RecordKind kind) {
    switch (kind) {
        case RecordKind::Training: return "training";
        case RecordKind::Collective: return "collectives";
        case RecordKind::Memory: return "memory";
        case RecordKind::Kernel: return "kernels";
    }
    return "?";
}

Result<std::vector<PublishedRecord>> recordsFromJson(const Json& document, const std::string& file) {
    const bool inObject = document.is_object() && document.contains("records");
    const Json& list = inObject ? document.at("records") : document;
    if (!list.is_array()) return badInput(file, fmt::format("expected a list of records, found {}", list.type_name()));
    std::vector<PublishedRecord> records;
    records.reserve(list.size());
    std::optional<Error> first;
    bool readable = list.empty();
    for (std::size_t i = 0; i < list.size(); ++i) {
        Result<PublishedRecord> record = readRecord(list[i], file, i);
        if (record) {
            records.push_back(std::move(*record));
            readable = true;
            continue;
        }
        if (!first) first = record.error();
        PublishedRecord bad;
        bad.file = file;
        const bool named = list[i].is_object() && list[i].contains("id") && list[i]["id"].is_string();
        bad.id = named ? list[i]["id"].get<std::string>() : fmt::format("[{}]", i);
        bad.family = "unnamed";
        bad.unreadable = record.error().toString();
        records.push_back(std::move(bad));
    }
    if (!readable) return tl::unexpected<Error>(*first);
    return records;
}

Result<std::vector<PublishedRecord>> readRecords(const std::string& path) {
    TRY(const Json document, readJsonFile(path));
    return recordsFromJson(document, path);
}

Result<std::vector<std::string>> ownRecordFiles(bool kernels) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    const std::vector<fs::path> places = {(program.parent_path() / ".." / RINGSIDE_PUBLISHED_SHARE).lexically_normal(), RINGSIDE_PUBLISHED_SOURCE};
    for (const fs::path& place : places) {
        std::vector<std::string> files;
        for (const char* name : {"training.json", "collectives.json", "memory.json", "kernels.json"})
            if ((kernels || std::string_view(name) != "kernels.json") && fs::exists(place / name, ignored)) files.push_back((place / name).string());
        if (files.size() == (kernels ? 4U : 3U)) return files;
    }
    return failure(ErrorCode::MissingCapability, "--published",
                   fmt::format("the project's own records are not there: looked in {} and {}. Name a file: --published FILE.json", places[0].string(), places[1].string()));
}

}  // namespace ringside
