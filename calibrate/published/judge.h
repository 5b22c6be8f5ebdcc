// Judges the model by published records: maps each to a scenario, predicts it and puts the prediction beside the measurement.
// What cannot be predicted is listed with the reason, never dropped.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/published/records.h"
#include "calibrate/published/statistics.h"
#include "sim/scenario.h"

namespace ringside {

struct JudgedRow : Judgement {  ///< seconds; of a memory record, bytes
    std::string id;             ///< of a collective table: "<table>/<bytes>"
    RecordKind kind = RecordKind::Training;
    std::string family, source, device, strategy, model;  ///< strategy: of a collective, its operation
    std::string group;          ///< "single device", "single-node data parallel", …: classOf
    std::vector<std::string> assumed;
    bool predictedOutOfMemory = false;
    double allocated = 0, reserved = 0;  ///< of a memory record: predicted peaks of the allocator, bytes
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
/// "collectives >= 1 MiB", "collectives < 1 MiB". REQUIRES: bytes given where the record is a collective table.
std::string classOf(const PublishedRecord& record, Bytes bytes = 0);

/// One condition on records: "family=vtrain", "device=a100", "id=8gpu", or text that any of these contains. A value matches where it
/// is contained, whatever the case. Keys: kind, class, family, device, strategy, model, source, id.
struct RecordFilter {
    std::string key, value;  ///< key "": any
};
Result<RecordFilter> recordFilter(const std::string& text);
bool matches(const PublishedRecord& record, const std::vector<RecordFilter>& filters);  ///< all of them

/// Predicts all records on `threads` threads (0: all cores). `progress` (may be empty) is called with the number done, one call at a
/// time. The result does not depend on the threads.
PublishedVerdict judge(const std::vector<PublishedRecord>& records, const Catalogs& catalogs, int threads = 0,
                       const std::function<void(std::size_t)>& progress = {});

}  // namespace ringside
