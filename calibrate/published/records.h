// Published records: measurements of real runs by others, each with its source, as they stand in tests/data/published.
//
// A file is a JSON list of records. The kind of a record is told from its keys: "table" with "op" is a collective table, "peak" a
// memory peak, "measured" a training run, "kind" a kernel table. Keys that nobody needs are tolerated; what a source does not say is
// null or left out; numbers may stand as text ("8"). Schema: docs/reference/published-records.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/base/units.h"

namespace ringside {

enum class RecordKind : std::uint8_t { Training, Collective, Memory, Kernel };
std::string_view nameOf(RecordKind kind);  ///< "training", "collectives", "memory", "kernels"

struct PublishedHardware {
    std::string gpu, interconnect;
    std::optional<std::int64_t> nodes, gpusPerNode;
    std::int64_t gpus = 1;  ///< all of them
};

struct PublishedModel {
    std::string name;
    std::optional<std::int64_t> layers, hidden, heads, kvHeads, ffn, vocab, seqLen;
};

struct PublishedStrategy {
    std::string kind, precision, actCkpt, optimizer, overlap, offload;  ///< "" where not stated
    std::int64_t tp = 1, pp = 1, cp = 1, ep = 1, vp = 1;
    std::optional<std::int64_t> dp, microBatch, gradAccum, globalBatch, batchPerDp;
    std::optional<double> globalBatchTokens;
    std::optional<double> gradClip;
};

/// What a training run reached; a source gives some of them.
struct PublishedSpeed {
    std::optional<double> stepSeconds, samplesPerSecond, tokensPerSecond, tokensPerSecondPerGpu, tflopsPerGpu, mfu;
};

/// A memory peak, and which of an allocator's figures it is.
struct PublishedPeak {
    enum class Of : std::uint8_t { Allocated, Reserved, Device } of = Of::Allocated;
    double bytes = 0;          ///< 0: the record has none in a unit that is known
    bool outOfMemory = false;  ///< the run did not fit ("oom": true)
};

struct CollectiveSample {
    Bytes bytes = 0;
    double seconds = 0;
};

struct PublishedRecord {
    RecordKind kind = RecordKind::Training;
    std::string file, id, family, source, notes, flag, simulated;  ///< flag, simulated: why, if so; family: of a record without one, the source's owner; source: repository and path
    std::string repository;                    ///< of the source: records of one repository are not independent
    PublishedHardware hardware;                ///< of a collective table: device and fabric only
    PublishedModel model;
    PublishedStrategy strategy;                ///< of a collective table: kind is the operation
    PublishedSpeed speed;                      ///< training
    PublishedPeak peak;                        ///< memory
    std::vector<CollectiveSample> table;       ///< collectives
    Json json;                                 ///< the whole record
    std::string unreadable;                    ///< what is off where it is no record as expected, with its place; the rest is then empty

    std::string place() const { return file + ": " + id; }
};

/// Every record of one file, in its order; a list, or an object that holds one under "records". A record that cannot be read is kept with
/// the reason (file, record, key, what was found and what was expected). Errors (bad input): no list, or not one record that can be read.
Result<std::vector<PublishedRecord>> readRecords(const std::string& path);
/// The same from a parsed document; `file` names it in errors.
Result<std::vector<PublishedRecord>> recordsFromJson(const Json& document, const std::string& file);

/// Files of the project's own records (training, collectives, memory; with kernels also those, which are for fitting): of the installed share directory if the program is
/// installed, else of the source tree that it was built from. Error (missing capability): neither is there.
Result<std::vector<std::string>> ownRecordFiles(bool kernels = false);

}  // namespace ringside
