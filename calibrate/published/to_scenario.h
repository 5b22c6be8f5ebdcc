// A published record as a Scenario: which model, which cluster, how it was trained. What the source leaves open is taken from what
// its kind of code does by default, and said in `assumed`; nothing is chosen by looking at the measured figure.
// Rules: docs/guides/published.md.
#pragma once

#include <string>
#include <vector>

#include "calibrate/published/records.h"
#include "sim/scenario.h"

namespace ringside {

struct MappedRecord {
    Json document;                     ///< a scenario file that gives the same
    Scenario scenario;
    std::string strategy;              ///< "ddp", "fsdp1", "megatron", …
    std::vector<std::string> assumed;  ///< "heads not stated: 24 of size 64"
    bool recomputeOpen = false;        ///< the source does not say whether activations are computed again: none was taken
    bool microBatchOpen = false;  ///< the source is silent on the micro-batch, and one was taken
};

/// REQUIRES: a training or a memory record. Errors (bad input) say why it cannot be predicted; their message alone is a reason to show.
Result<MappedRecord> toScenario(const PublishedRecord& record, const Catalogs& catalogs);

/// Computes activations again where the source is silent on it; `why` completes "recompute not stated: full, as …". REQUIRES: recomputeOpen.
void takeFullRecompute(MappedRecord& mapped, const std::string& why);

/// The measured step, in seconds: as the source gives it, else from its throughput, else from its FLOPs rate by the convention in its
/// notes (6N + 12·L·h·s per token, half of the second term where attention is said to be counted as causal).
/// REQUIRES: a training record and its own scenario.
Result<double> measuredStepSeconds(const PublishedRecord& record, const Scenario& scenario);

}  // namespace ringside
