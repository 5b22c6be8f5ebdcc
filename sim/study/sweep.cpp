#include "sim/study/sweep.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "model/base/check.h"
#include "sim/prediction.h"
#include "sim/study/scenario_patch.h"
#include "sim/study/threads.h"

namespace ringside {
namespace {

constexpr std::size_t kMostRows = std::size_t{1} << 32;
constexpr std::size_t kBlockRows = 8;        // what a thread takes at a time: some milliseconds
constexpr std::size_t kBlocksPerThread = 4;  // under way at once: a slow row holds up nobody
constexpr std::size_t kMostChecked = 1000;   // choices tried before the first row

constexpr const char* kFigures[] = {
    "step_time_s",        "p10", "p90", "samples_per_s", "tokens_per_s", "mfu", "exposed_communication_s", "peak_memory_bytes", "verdict",
    "bytes_sent_per_rank"};

/// FNV-1a: tells grids apart, guards against nothing else.
std::uint64_t hashOf(const std::string& text) {
    std::uint64_t hash = 14695981039346656037ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return hash;
}

/// Splits at commas outside brackets and quotes.
std::vector<std::string> splitValues(const std::string& text) {
    std::vector<std::string> parts(1);
    int depth = 0;
    bool quoted = false, escaped = false;
    for (const char c : text) {
        if (c == ',' && depth == 0 && !quoted) {
            parts.emplace_back();
            continue;
        }
        if (escaped)
            escaped = false;
        else if (quoted && c == '\\')
            escaped = true;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{'))
            ++depth;
        else if (!quoted && (c == ']' || c == '}'))
            --depth;
        parts.back() += c;
    }
    return parts;
}

std::string dumped(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// One CSV field. No line ends inside: a row is a line.
std::string csvField(const Json& value) {
    if (value.is_null()) return {};
    std::string text = value.is_string() ? value.get<std::string>() : dumped(value);
    for (char& c : text)
        if (c == '\n' || c == '\r') c = ' ';
    if (text.find_first_of(",\"") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

RowOutcome outcomeOf(MemoryVerdict verdict) {
    switch (verdict) {
        case MemoryVerdict::Fits:
            return RowOutcome::Fits;
        case MemoryVerdict::Tight:
            return RowOutcome::Tight;
        case MemoryVerdict::OutOfMemory:
            return RowOutcome::OutOfMemory;
    }
    return RowOutcome::Failed;
}

}  // namespace

Result<SweepAxis> parseSweepAxis(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        return failure(ErrorCode::Usage, "--set", fmt::format("expected key=value,value,…, found '{}'", text));
    SweepAxis axis;
    axis.key = text.substr(0, equals);
    TRY(axis.path, scenarioPath(axis.key));
    for (const std::string& part : splitValues(text.substr(equals + 1))) {
        if (part.empty())
            return failure(ErrorCode::Usage, "--set " + axis.key, fmt::format("'{}' has an empty value; expected key=value,value,…", text));
        const Result<Json> parsed = parseJson(part, "--set " + axis.key);
        Json value = parsed ? *parsed : Json(part);  // a bare word is a string
        for (const Json& other : axis.values)
            if (other == value)
                return failure(ErrorCode::Usage, "--set " + axis.key,
                               fmt::format("{} is given twice; every value makes its rows once", dumped(value)));
        axis.values.push_back(std::move(value));
    }
    return axis;
}

Result<std::vector<Json>> readPatches(const std::string& file) {
    std::ifstream opened;
    if (file != "-") {
        opened.open(file, std::ios::binary);
        if (!opened) return badInput(file, "cannot open this file; check the path and its permissions");
    }
    std::istream& in = file == "-" ? std::cin : opened;
    std::vector<Json> patches;
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const std::string place = fmt::format("{}:{}", file == "-" ? "standard input" : file, number);
        TRY(Json patch, parseJson(line, place));
        TRY_VOID(patchEntries(patch, place));
        patches.push_back(std::move(patch));
    }
    if (patches.empty()) return badInput(file, "holds no scenario; expected one JSON object of scenario keys per line");
    return patches;
}

Json toJson(const SweepDefinition& definition) {
    return {{"base", definition.base}, {"source", definition.source}, {"axes", definition.axes}, {"patches", definition.patches}};
}

SweepDefinition sweepDefinitionFromJson(const Json& json) {
    return {json["base"], json["source"].get<std::string>(), json["axes"].get<std::vector<std::string>>(), json["patches"].get<std::vector<Json>>()};
}

Result<SweepPlan> SweepPlan::create(const SweepDefinition& definition, const std::string& program, const Catalogs& catalogs) {
    SweepPlan plan;
    plan.catalogs_ = &catalogs;
    plan.definition_ = definition;
    plan.program_ = program;
    if (definition.axes.empty() && definition.patches.empty())
        return failure(ErrorCode::Usage, "", "nothing to vary; give --set key=value,value,… (as often as needed) or --list FILE.jsonl");

    std::vector<std::string> listed;  // columns of the list
    for (const Json& json : definition.patches) {
        Patch patch;
        TRY(patch.entries, patchEntries(json, "--list"));
        for (const auto& [path, value] : patch.entries) {
            const std::string column = path == "strategy.name" ? "strategy" : path;
            patch.columns.emplace_back(column, value);
            if (std::find(listed.begin(), listed.end(), column) == listed.end()) listed.push_back(column);
        }
        plan.patches_.push_back(std::move(patch));
    }
    if (plan.patches_.empty()) plan.patches_.emplace_back();
    plan.columns_ = listed;
    plan.rows_ = plan.patches_.size();

    std::vector<std::string> paths;
    for (const std::string& text : definition.axes) {
        TRY(SweepAxis axis, parseSweepAxis(text));
        if (std::find(paths.begin(), paths.end(), axis.path) != paths.end())
            return failure(ErrorCode::Usage, "--set " + axis.key, "is given twice; put all its values into one --set");
        for (const Patch& patch : plan.patches_)
            for (const auto& [path, value] : patch.entries)
                if (path == axis.path) return failure(ErrorCode::Usage, "--set " + axis.key, "is also set by the list; leave one of them out");
        if (axis.values.size() > kMostRows / plan.rows_)
            return failure(ErrorCode::Usage, "--set", fmt::format("the grid has more than {} rows; vary less at once", kMostRows));
        plan.rows_ *= axis.values.size();
        paths.push_back(axis.path);
        plan.columns_.push_back(axis.key);
        plan.axes_.push_back(std::move(axis));
    }
    for (const Patch& patch : plan.patches_)
        for (const auto& [path, value] : patch.entries)
            if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);

    // The base once for every strategy that a row may name, with room for what rows set: not done again in every row.
    Json base = definition.base;
    makeRoomFor(base, paths);
    plan.bases_[""] = base;
    const auto addBase = [&](const Json& name) {
        if (!name.is_string() || plan.bases_.contains(name.get<std::string>())) return;
        Json own = base;
        setStrategy(own, name.get<std::string>());
        plan.bases_[name.get<std::string>()] = std::move(own);
    };
    for (const SweepAxis& axis : plan.axes_)
        if (axis.path == "strategy.name") std::for_each(axis.values.begin(), axis.values.end(), addBase);
    for (const Patch& patch : plan.patches_)
        for (const auto& [path, value] : patch.entries)
            if (path == "strategy.name") addBase(value);
    TRY_VOID(plan.checkChoices());
    return plan;
}

std::vector<std::size_t> SweepPlan::digits(std::size_t row) const {
    std::vector<std::size_t> digits(axes_.size() + 1);
    for (std::size_t a = axes_.size(); a > 0; --a) {
        digits[a] = row % axes_[a - 1].values.size();
        row /= axes_[a - 1].values.size();
    }
    digits[0] = row;
    return digits;
}

Result<Json> SweepPlan::documentAt(const std::vector<std::size_t>& digits) const {
    std::vector<std::pair<const std::string*, const Json*>> sets;
    for (const auto& [path, value] : patches_[digits[0]].entries) sets.emplace_back(&path, &value);
    for (std::size_t a = 0; a < axes_.size(); ++a) sets.emplace_back(&axes_[a].path, &axes_[a].values[digits[a + 1]]);
    const Json* base = &bases_.at("");
    for (const auto& [path, value] : sets)
        if (*path == "strategy.name" && value->is_string()) base = &bases_.at(value->get<std::string>());
    Json document = *base;
    for (const auto& [path, value] : sets) TRY_VOID(setScenarioKey(document, *path + "=" + dumped(*value)));
    return document;
}

Result<Json> SweepPlan::document(std::size_t row) const {
    CHECK(row < rows_);
    return documentAt(digits(row));
}

Result<Scenario> SweepPlan::scenarioAt(const std::vector<std::size_t>& digits) const {
    TRY(const Json document, documentAt(digits));
    return resolveScenario(document, definition_.source, *catalogs_);
}

Result<void> SweepPlan::checkChoices() const {
    // Every choice once, the others at their first value. Where nothing resolves at all, no row will.
    std::optional<Error> fault;
    std::size_t tried = 0;
    for (std::size_t place = 0; place <= axes_.size(); ++place) {
        const std::size_t choices = place == 0 ? patches_.size() : axes_[place - 1].values.size();
        for (std::size_t choice = 0; choice < choices && tried < kMostChecked; ++choice, ++tried) {
            std::vector<std::size_t> at(axes_.size() + 1, 0);
            at[place] = choice;
            const auto scenario = scenarioAt(at);
            if (scenario) return {};
            if (!fault) fault = scenario.error();
        }
    }
    if (tried < kMostChecked) fault->message += " (none of the grid's values gives a scenario that can be predicted)";
    return tried < kMostChecked ? Result<void>(tl::unexpected<Error>(*fault)) : Result<void>();
}

std::string SweepPlan::header(RowFormat format) const {
    const std::string grid = fmt::format("{:016x}", hashOf(dumped(toJson(definition_))));
    if (format == RowFormat::Jsonl) {
        Json json;
        json["format"] = "ringside-sweep";
        json["version"] = 1;
        json["program"] = program_;
        json["grid"] = grid;
        json["rows"] = rows_;
        json["keys"] = columns_;
        json["scenario"] = definition_.base;
        return dumped(json) + "\n";
    }
    std::string text = fmt::format("# ringside-sweep version 1, {}, grid {}, {} rows\nindex", program_, grid, rows_);
    for (const std::string& column : columns_) text += "," + csvField(column);
    for (const char* figure : kFigures) text += std::string(",") + figure;
    return text + ",error\n";
}

void SweepPlan::addRow(SweepBlock& block, std::size_t row, RowFormat format) const {
    const std::vector<std::size_t> at = digits(row);
    Json json;
    json["index"] = row;
    for (const auto& [column, value] : patches_[at[0]].columns) json[column] = value;
    for (std::size_t a = 0; a < axes_.size(); ++a) json[axes_[a].key] = axes_[a].values[at[a + 1]];

    RowOutcome outcome = RowOutcome::Failed;
    const auto fail = [&](const Error& error) {
        json["error"] = error.toString();
        if (block.firstError.empty()) block.firstError = fmt::format("row {}: {}", row, error.toString());
    };
    if (const auto scenario = scenarioAt(at); !scenario) {
        fail(scenario.error());
    } else if (const auto prediction = predict(*scenario, PredictOptions{false, false, false}); !prediction) {
        fail(prediction.error());
    } else {
        const Prediction& p = *prediction;
        const Json values[] = {p.stepSeconds,
                               p.p10Seconds,
                               p.p90Seconds,
                               p.samplesPerSecond,
                               p.tokensPerSecond > 0 ? Json(p.tokensPerSecond) : Json(nullptr),
                               p.mfu,
                               p.breakdown.communicationExposed.seconds(),
                               p.memory.peakDevice(),
                               nameOf(p.verdict),
                               p.bytesSentPerRank};
        for (std::size_t f = 0; f < std::size(kFigures); ++f) json[kFigures[f]] = values[f];
        outcome = outcomeOf(p.verdict);
    }
    ++block.outcomes[static_cast<std::size_t>(outcome)];
    ++block.count;
    if (format == RowFormat::Jsonl) {
        block.text += dumped(json) + "\n";
        return;
    }
    const auto field = [&](const std::string& column) { return json.contains(column) ? csvField(json[column]) : std::string(); };
    block.text += std::to_string(row);
    for (const std::string& column : columns_) block.text += "," + field(column);
    for (const char* figure : kFigures) block.text += "," + field(figure);
    block.text += "," + field("error") + "\n";
}

SweepBlock SweepPlan::block(std::size_t first, std::size_t count, RowFormat format) const {
    CHECK(first + count <= rows_);
    SweepBlock block;
    block.first = first;
    for (std::size_t row = first; row < first + count; ++row) addRow(block, row, format);
    return block;
}

Result<std::size_t> runSweep(const SweepPlan& plan, std::size_t first, const SweepOptions& options,
                             const std::function<Result<void>(const SweepBlock&)>& take) {
    std::size_t given = first, taken = first;
    std::atomic<bool> failed = false;
    Result<void> fault;
    onThreads(options.threads, [&] {
        // Blocks are handed out and taken back in order, and made by whoever is free in between.
        const auto handOut = [&](tbb::flow_control& control) {
            const std::size_t block = given;
            if (block >= plan.rows() || failed || options.stop())
                control.stop();
            else
                given = std::min(plan.rows(), block + kBlockRows);
            return block;
        };
        const auto make = [&](std::size_t block) { return plan.block(block, std::min(kBlockRows, plan.rows() - block), options.format); };
        const auto takeBack = [&](const SweepBlock& block) {
            if (failed) return;
            fault = take(block);
            if (!fault)
                failed = true;
            else
                taken = block.first + block.count;
        };
        tbb::parallel_pipeline(static_cast<std::size_t>(tbb::this_task_arena::max_concurrency()) * kBlocksPerThread,
                               tbb::make_filter<void, std::size_t>(tbb::filter_mode::serial_in_order, handOut) &
                                   tbb::make_filter<std::size_t, SweepBlock>(tbb::filter_mode::parallel, make) &
                                   tbb::make_filter<SweepBlock, void>(tbb::filter_mode::serial_in_order, takeBack));
    });
    if (!fault) return tl::unexpected<Error>(fault.error());
    return taken;
}

}  // namespace ringside
