#include "calibrate/published/fit_rows.h"

#include <map>

namespace ringside {
namespace {

/// Passes of a block that a step writes out: an interleaved pipeline comes to no steady state, so each of its micro-batches counts.
constexpr std::int64_t kMostPasses = 4000;
bool isQuickToPredict(const Scenario& scenario) {
    if (scenario.parallel.pp == 1 || scenario.parallel.pipelineSchedule != "interleaved") return true;
    const auto* spec = std::get_if<TransformerSpec>(&scenario.model.architecture);
    return spec == nullptr || spec->layers * scenario.training.gradAccum <= kMostPasses;
}

void addTraining(std::vector<FitRow>& rows, const PublishedRecord& record, const PublishedRun& run) {
    const auto measured = measuredStepSeconds(record, run.mapped.scenario);
    if (!measured || !peakCheck(run.predicted, *measured).believable || !isQuickToPredict(run.mapped.scenario)) return;
    FitRow row{record.id, record.repository, FitRows::Training, run.mapped.scenario.cluster.nodes.front().kind.device, *measured, {}};
    const Scenario* scenario = &run.mapped.scenario;
    row.predict = [scenario](const PublishedFigures& figures) -> Result<double> {
        TRY(const PredictedRun predicted, predictRun(*scenario, figures, false));
        return predicted.stepSeconds;
    };
    rows.push_back(std::move(row));
}

/// The allocator's figures are counted, not fitted: only what stands beside it on the device is.
void addMemory(std::vector<FitRow>& rows, const PublishedRecord& record, const PublishedRun& run) {
    if (record.peak.of != PublishedPeak::Of::Device || record.peak.bytes <= 0) return;
    FitRow row{record.id, record.repository, FitRows::Memory, run.mapped.scenario.cluster.nodes.front().kind.device, record.peak.bytes, {}};
    const Scenario* scenario = &run.mapped.scenario;
    row.predict = [scenario](const PublishedFigures& figures) -> Result<double> {
        TRY(const PredictedRun predicted, predictRun(*scenario, figures));
        return static_cast<double>(predicted.peakDevice);
    };
    rows.push_back(std::move(row));
}

/// At most so many of each source and kind, evenly over its list.
std::vector<FitRow> thinned(std::vector<FitRow> rows, std::size_t most) {
    std::map<std::pair<std::string, FitRows>, std::size_t> all, seen;
    for (const FitRow& row : rows) ++all[{row.repository, row.kind}];
    std::vector<FitRow> kept;
    for (FitRow& row : rows) {
        const std::pair key{row.repository, row.kind};
        const std::size_t i = seen[key]++, n = all[key];
        if (n > most && (i * most) / n == ((i + 1) * most) / n) continue;
        kept.push_back(std::move(row));
    }
    return kept;
}

}  // namespace

std::vector<FitRow> fitRows(const std::vector<PublishedRecord>& records, const std::vector<PublishedRun>& runs, const Catalogs& catalogs, std::size_t mostPerSource) {
    std::vector<FitRow> rows;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const PublishedRecord& record = records[i];
        if (!record.unreadable.empty() || !record.flag.empty() || !record.simulated.empty() || !runs[i].reason.empty()) continue;
        if (record.kind == RecordKind::Training) addTraining(rows, record, runs[i]);
        if (record.kind == RecordKind::Memory) addMemory(rows, record, runs[i]);
        if (record.kind == RecordKind::Kernel)
            for (FitRow& row : kernelRows(record, catalogs)) rows.push_back(std::move(row));
    }
    return thinned(std::move(rows), mostPerSource);
}

}  // namespace ringside
