#include "calibrate/published/judge.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "calibrate/published/collective_rows.h"
#include "calibrate/published/published_cluster.h"
#include "calibrate/published/to_scenario.h"
#include "model/base/check.h"
#include "model/base/names.h"
#include "model/cost/profile.h"

namespace ringside {
namespace {

constexpr double kP90 = 1.2815515655446004;  // of the normal distribution, in standard deviations
constexpr Bytes kLarge = 1 << 20;

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

/// What one record gives: rows, or a reason.
struct Outcome {
    std::vector<JudgedRow> rows;
    std::string reason;
    bool falseFits = false, falseOutOfMemory = false;
};

JudgedRow rowOf(const PublishedRecord& record) {
    JudgedRow row;
    row.id = record.id;
    row.kind = record.kind;
    row.family = record.family;
    row.source = record.source;
    row.repository = record.repository;
    row.model = record.model.name;
    row.group = record.kind == RecordKind::Collective ? std::string() : classOf(record);
    return row;
}

/// Rows of one source, model and device kind: what differs between them are the knobs.
std::string sweepOf(const PublishedRecord& record, const std::string& device) {
    return fmt::format("{}|{}|{}|{}|{}|{}", nameOf(record.kind), record.source, record.model.name, record.model.layers.value_or(0), record.model.hidden.value_or(0), device);
}

/// A source's own doubt about a figure.
bool isDoubted(const PublishedRecord& record) { return !record.flag.empty(); }

Result<Outcome> judgeTraining(const PublishedRecord& record, const MappedRecord& mapped, const PredictedRun& prediction) {
    Outcome out;
    JudgedRow row = rowOf(record);
    TRY(row.measured, measuredStepSeconds(record, mapped.scenario));
    row.predicted = prediction.stepSeconds;
    if (const PeakCheck check = peakCheck(prediction, row.measured); !check.believable)
        return badInput("", fmt::format("the measured figure is {:.2f} times the device's peak for this precision; it cannot be right", check.mfu));
    row.p10 = prediction.p10Seconds;
    row.p90 = prediction.p90Seconds;
    row.device = mapped.scenario.cluster.nodes.front().kind.device.name;
    row.strategy = mapped.strategy;
    row.assumed = mapped.assumed;
    row.predictedOutOfMemory = prediction.outOfMemory;
    row.causes = prediction.causes;
    row.sweep = sweepOf(record, row.device);
    row.configuration = mapped.document.dump();
    // Device-seconds per token (or image): what one pays for, so that rows of different batches can be ordered.
    const double work = static_cast<double>(mapped.scenario.globalBatch()) * static_cast<double>(std::max<std::int64_t>(1, mapped.scenario.training.seqLen));
    const double share = static_cast<double>(mapped.scenario.cluster.deviceCount()) / work;
    row.predictedCost = row.predicted * share;
    row.measuredCost = row.measured * share;
    out.falseOutOfMemory = row.predictedOutOfMemory;
    out.rows.push_back(std::move(row));
    return out;
}

/// Standard deviation of a predicted peak, bytes. State is arithmetic; activations depend on what a program fuses: one tensor more or less of a
/// block's (an eager norm's fp32 copy, act(gate)) is a tenth to a quarter of them. Context and NCCL spread as their profile says, and what the
/// model itself is off by is a share of the whole.
double memorySpread(const Profile& profile, const PredictedRun& prediction, double predicted, bool wholeDevice) {
    constexpr double kActivations = 0.15;
    const auto at = [&](MemoryCategory category) { return static_cast<double>(prediction.atPeak[static_cast<std::size_t>(category)]); };
    double variance = std::pow(kActivations * (at(MemoryCategory::Activations) + at(MemoryCategory::Workspace)), 2) + std::pow(profile.modelSpreadMemory.value * predicted, 2);
    if (wholeDevice) {
        variance += std::pow(at(MemoryCategory::Context) * profile.contextBytes.relativeSpread, 2) + std::pow(at(MemoryCategory::Nccl) * profile.ncclBytes.relativeSpread, 2);
    }
    return std::sqrt(variance);
}

Result<Outcome> judgeMemory(const PublishedRecord& record, const MappedRecord& mapped, const PredictedRun& prediction, const PublishedFigures& figures) {
    Outcome out;
    if (record.peak.bytes == 0 && !record.peak.outOfMemory) return badInput("", "no peak is given in a unit that is known (peak_mem_gib, peak_mem_mib, peak_mem_gb, nvml_used_mib)");
    if (mapped.microBatchOpen) return badInput("", "the micro-batch, which decides how much is kept for backward, is not stated");
    JudgedRow row = rowOf(record);
    using Of = PublishedPeak::Of;
    row.predicted = static_cast<double>(record.peak.of == Of::Device ? prediction.peakDevice : record.peak.of == Of::Reserved ? prediction.peakReserved : prediction.peakAllocated);
    row.measured = record.peak.bytes;
    // No run holds less than what its own parameters and optimizer take.
    const auto state = static_cast<double>(prediction.atPeak[static_cast<std::size_t>(MemoryCategory::Parameters)] + prediction.atPeak[static_cast<std::size_t>(MemoryCategory::OptimizerState)]);
    if (!record.peak.outOfMemory && record.peak.bytes < state)
        return badInput("", fmt::format("the measured peak is {:.2f} times what parameters and optimizer state take by themselves; it cannot be this configuration's", record.peak.bytes / state));
    row.allocated = static_cast<double>(prediction.peakAllocated);
    row.reserved = static_cast<double>(prediction.peakReserved);
    const Device& device = mapped.scenario.cluster.nodes.front().kind.device;
    const double spread = kP90 * memorySpread(datasheetProfile(device, figures), prediction, row.predicted, record.peak.of == Of::Device);
    row.p10 = row.predicted - spread;
    row.p90 = row.predicted + spread;
    row.device = device.name;
    row.strategy = mapped.strategy;
    row.assumed = mapped.assumed;
    row.predictedOutOfMemory = prediction.outOfMemory;
    row.sweep = sweepOf(record, row.device);
    row.predictedCost = row.predicted;
    row.measuredCost = row.measured;
    if (record.peak.outOfMemory) {
        out.falseFits = !row.predictedOutOfMemory;
        out.reason = fmt::format("ran out of memory, so there is no peak to compare; predicted {}to fit", out.falseFits ? "" : "not ");
        return out;
    }
    out.falseOutOfMemory = row.predictedOutOfMemory;
    out.rows.push_back(std::move(row));
    return out;
}

Result<Outcome> judgeCollective(const PublishedRecord& record, const PublishedFigures& figures) {
    TRY(const CollectiveCase one, collectiveCase(record.json, figures));
    const Device& device = one.cluster.nodes[one.shape.nodeKind].kind.device;
    const Profile profile = datasheetProfile(device, figures);
    Outcome out;
    for (const CollectiveSample& sample : record.table) {
        JudgedRow row = rowOf(record);
        row.id = fmt::format("{}/{}", record.id, sample.bytes);
        row.group = classOf(record, sample.bytes);
        row.device = device.name;
        row.strategy = record.strategy.kind;
        row.predicted = predictCollectiveSeconds(one, sample.bytes);
        row.measured = sample.seconds;
        // Small messages rest on latency, large ones on bandwidth.
        const double spread = kP90 * (sample.bytes >= kLarge ? profile.collectiveBandwidth : profile.collectiveLatency).relativeSpread;
        row.p10 = row.predicted * std::exp(-spread);
        row.p90 = row.predicted * std::exp(spread);
        row.sweep = record.id;
        row.predictedCost = row.predicted;
        row.measuredCost = row.measured;
        out.rows.push_back(std::move(row));
    }
    return out;
}

/// `figures` null: the shipped ones, which the run was predicted with already.
Result<Outcome> outcomeOf(const PublishedRecord& record, const PublishedRun& run, const PublishedFigures* figures) {
    if (!record.unreadable.empty()) return badInput("", "cannot be read: " + record.unreadable);
    if (isDoubted(record)) return badInput("", fmt::format("flagged: {}", record.flag));
    if (record.kind == RecordKind::Kernel) return badInput("", "kernel tables are what profiles are fitted on; they are no runs");
    if (record.kind == RecordKind::Collective) return judgeCollective(record, figures ? *figures : shippedFigures());
    if (!run.reason.empty()) return badInput("", run.reason);
    PredictedRun predicted = run.predicted;
    if (figures) {
        TRY(predicted, predictRun(run.mapped.scenario, *figures));
    }
    return record.kind == RecordKind::Training ? judgeTraining(record, run.mapped, predicted) : judgeMemory(record, run.mapped, predicted, figures ? *figures : shippedFigures());
}

Outcome judgeOne(const PublishedRecord& record, const PublishedRun& run, const PublishedFigures* figures) {
    Result<Outcome> result = outcomeOf(record, run, figures);
    if (result) return std::move(*result);
    Outcome failed;
    failed.reason = result.error().message;
    return failed;
}

PublishedVerdict verdictOf(const std::vector<PublishedRecord>& records, std::vector<Outcome> outcomes) {
    PublishedVerdict verdict;
    verdict.records = records.size();
    for (std::size_t i = 0; i < records.size(); ++i) {
        Outcome& outcome = outcomes[i];
        if (outcome.rows.empty()) verdict.skipped.push_back({records[i].id, records[i].family, outcome.reason, records[i].kind});
        for (JudgedRow& row : outcome.rows) verdict.rows.push_back(std::move(row));
        verdict.falseFits += outcome.falseFits ? 1 : 0;
        verdict.falseOutOfMemory += outcome.falseOutOfMemory ? 1 : 0;
    }
    return verdict;
}

}  // namespace

/// A source that compares frameworks names each in its notes: "framework MXNet (not PyTorch DDP unless named)". Their kernels, schedules and
/// collectives are their own; the scenario is PyTorch's.
bool otherFramework(const PublishedRecord& record) {
    const std::string notes = lower(record.notes);
    const std::size_t named = notes.find("framework "), end = notes.find('(', named == std::string::npos ? 0 : named);
    return named != std::string::npos && end != std::string::npos && notes.substr(named, end - named).find("pytorch") == std::string::npos;
}

std::string classOf(const PublishedRecord& record, Bytes bytes) {
    if (record.kind == RecordKind::Collective) return bytes >= kLarge ? "collectives >= 1 MiB" : "collectives < 1 MiB";
    if (record.kind != RecordKind::Training) return std::string(nameOf(record.kind));
    if (!record.simulated.empty()) return kSimulated;
    const PublishedStrategy& strategy = record.strategy;
    if (strategy.tp * strategy.pp * strategy.cp > 1) return "hybrid (tp/pp/cp)";
    if (record.hardware.gpus == 1) return "single device";
    if (otherFramework(record)) return "data parallel of other frameworks";
    return record.hardware.nodes.value_or(1) > 1 ? "multi-node data parallel" : "single-node data parallel";
}

Result<RecordFilter> recordFilter(const std::string& text) {
    static const std::vector<std::string> keys = {"kind", "class", "family", "device", "strategy", "model", "source", "id"};
    const std::size_t equals = text.find('=');
    RecordFilter filter{equals == std::string::npos ? "" : text.substr(0, equals), lower(equals == std::string::npos ? text : text.substr(equals + 1))};
    if (filter.value.empty()) return failure(ErrorCode::Usage, "--filter", fmt::format("'{}' has no value; expected text, or key=text", text));
    if (!filter.key.empty() && std::find(keys.begin(), keys.end(), filter.key) == keys.end()) return failure(ErrorCode::Usage, "--filter", unknownName("key", filter.key, keys));
    return filter;
}

bool matches(const PublishedRecord& record, const std::vector<RecordFilter>& filters) {
    const bool collective = record.kind == RecordKind::Collective;
    const std::string& gpu = record.hardware.gpu;
    const std::pair<const char*, std::string> fields[] = {
        {"kind", std::string(nameOf(record.kind))}, {"class", collective ? "collectives" : classOf(record)}, {"family", record.family},
        {"device", gpu + " " + deviceNameOf(gpu)},  {"strategy", record.strategy.kind},
        {"model", record.model.name},               {"source", record.source},
        {"id", record.id}};
    return std::all_of(filters.begin(), filters.end(), [&](const RecordFilter& filter) {
        return std::any_of(std::begin(fields), std::end(fields), [&](const auto& field) {
            return (filter.key.empty() || filter.key == field.first) && lower(field.second).find(filter.value) != std::string::npos;
        });
    });
}

PublishedVerdict judgeRuns(const std::vector<PublishedRecord>& records, const std::vector<PublishedRun>& runs) {
    std::vector<Outcome> outcomes(records.size());
    forEachOnThreads(records.size(), 0, [&](std::size_t i) { outcomes[i] = judgeOne(records[i], runs[i], nullptr); });
    return verdictOf(records, std::move(outcomes));
}

PublishedVerdict judgeRuns(const std::vector<PublishedRecord>& records, const std::vector<PublishedRun>& runs, const FiguresOf& figures, int threads,
                           const std::function<void(std::size_t)>& progress) {
    std::vector<Outcome> outcomes(records.size());
    forEachOnThreads(records.size(), threads, [&](std::size_t i) { outcomes[i] = judgeOne(records[i], runs[i], &figures(records[i])); }, progress);
    return verdictOf(records, std::move(outcomes));
}

PublishedVerdict judge(const std::vector<PublishedRecord>& records, const Catalogs& catalogs, int threads, const std::function<void(std::size_t)>& progress) {
    return judgeRuns(records, prepareRuns(records, catalogs, threads, progress));
}

void addHeldOut(PublishedVerdict& verdict, const PublishedVerdict& heldOut) {
    CHECK(verdict.rows.size() == heldOut.rows.size());
    for (std::size_t i = 0; i < verdict.rows.size(); ++i) {
        CHECK(verdict.rows[i].id == heldOut.rows[i].id);
        verdict.rows[i].heldOut = static_cast<const Judgement&>(heldOut.rows[i]);
    }
}

}  // namespace ringside
