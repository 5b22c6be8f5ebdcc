// Judges the model by published records: maps each to a scenario, predicts it and puts the prediction beside the measurement.
// What cannot be predicted is listed with the reason, never dropped.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/published/published_runs.h"
#include "calibrate/published/records.h"
#include "calibrate/published/statistics.h"
#include "sim/scenario.h"

namespace ringside {

struct JudgedRow : Judgement {  ///< seconds; of a memory record, bytes
    std::string id;             ///< of a collective table: "<table>/<bytes>"
    RecordKind kind = RecordKind::Training;
    std::string family, source, repository, device, strategy, model;  ///< strategy: of a collective, its operation
    std::string group;          ///< "single device", "single-node data parallel", …: classOf
    std::vector<std::string> assumed;
    bool predictedOutOfMemory = false;
    double allocated = 0, reserved = 0;  ///< of a memory record: predicted peaks of the allocator, bytes
    std::optional<CauseShares> causes;  ///< of a training run: what its predicted time is made of
    std::optional<Judgement> heldOut;   ///< the same with figures that have not seen the row's source (judgeHeldOut)
};

struct SkippedRecord {
    std::string id, family, reason;
    RecordKind kind = RecordKind::Training;
};

struct PublishedVerdict {
    std::vector<JudgedRow> rows;         ///< in the order of the records
    std::vector<SkippedRecord> skipped;
    std::size_t records = 0;             ///< each gives a row, a row for each size, or an entry of `skipped`
    std::size_t falseFits = 0;           ///< measured out of memory, predicted to fit
    std::size_t falseOutOfMemory = 0;    ///< ran, predicted not to fit
};

/// "single device", "single-node data parallel", "multi-node data parallel", "hybrid (tp/pp/cp)", "memory"; collectives by size:
/// "collectives >= 1 MiB", "collectives < 1 MiB"; kSimulated. REQUIRES: bytes given where the record is a collective table.
inline constexpr const char* kSimulated = "figures of another simulator";  ///< nobody measured them: outside every other group, and of every fit
std::string classOf(const PublishedRecord& record, Bytes bytes = 0);

/// One condition on records: "family=vtrain", "device=a100", "id=8gpu", or text that any of these contains. A value matches where it
/// is contained, whatever the case. Keys: kind, class, family, device, strategy, model, source, id.
struct RecordFilter {
    std::string key, value;  ///< key "": any
};
Result<RecordFilter> recordFilter(const std::string& text);
bool matches(const PublishedRecord& record, const std::vector<RecordFilter>& filters);  ///< all of them

/// Which figures a record is predicted with.
using FiguresOf = std::function<const PublishedFigures&(const PublishedRecord&)>;

/// Judges with the shipped figures, which `runs` (of prepareRuns, one for each record) were predicted with.
PublishedVerdict judgeRuns(const std::vector<PublishedRecord>& records, const std::vector<PublishedRun>& runs);
/// Judges with others. `threads` and `progress` as in prepareRuns; the result does not depend on the threads.
PublishedVerdict judgeRuns(const std::vector<PublishedRecord>& records, const std::vector<PublishedRun>& runs, const FiguresOf& figures, int threads = 0,
                           const std::function<void(std::size_t)>& progress = {});

/// Prepares and judges with the shipped figures.
PublishedVerdict judge(const std::vector<PublishedRecord>& records, const Catalogs& catalogs, int threads = 0,
                       const std::function<void(std::size_t)>& progress = {});

/// Gives each row its judgement by a verdict of the same records with held-out figures. REQUIRES: the same rows in the same order.
void addHeldOut(PublishedVerdict& verdict, const PublishedVerdict& heldOut);

}  // namespace ringside
