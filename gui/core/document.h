// Document: what is open. A trace that never changes, what its reader could not use, and, where it was predicted, from what.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/timeline/counter_geometry.h"
#include "gui/timeline/flow_index.h"
#include "gui/timeline/slice_index.h"
#include "gui/timeline/time_range.h"
#include "model/base/result.h"
#include "sim/prediction.h"
#include "sim/scenario.h"
#include "traces/import/read_trace.h"
#include "traces/trace.h"

namespace ringside::gui {

/// Always held as shared_ptr<const Document>: any thread may read it.
struct Document {
    Trace trace;
    ImportNotes notes;
    std::string title;  ///< "gpt2-xl under ddp on 16 ranks (predicted)", or the file's name
    std::string path;   ///< empty where it was never a file
    std::shared_ptr<const ImportedTrace> imported; ///< what a file said beside its trace, and the args of its slices; null where predicted
    std::shared_ptr<const Scenario> scenario;      ///< null for a trace from elsewhere
    Json scenarioAsGiven;  ///< what the scenario was resolved from, defaults left out; null for a trace from elsewhere
    std::shared_ptr<const Prediction> prediction;  ///< null for a trace from elsewhere; made with memoryTimeline
    Bytes capacity = 0;  ///< of a device's memory; 0 where not known

    // Made by makeDocument.
    TimeRange range;     ///< from the first start to the last end
    SliceIndex index;
    FlowIndex flows;
    std::vector<CounterIndex> counters;  ///< one per Trace::counters
    std::vector<Phase> phases;
};

using DocumentPtr = std::shared_ptr<const Document>;

/// Fills in what follows from the trace (range, index, …). O(slices log slices).
DocumentPtr makeDocument(Document parts);

/// Predicts and opens the answer. Fails as predict() does. `asGiven` null: the scenario in full.
Result<DocumentPtr> predictDocument(std::shared_ptr<const Scenario> scenario, std::string path = {}, Json asGiven = {});

/// Told how far opening a file is, 0 to 1; any thread.
using OpenProgress = std::function<void(double)>;

/// Opens a scenario (predicts it) or any trace that Ringside reads, told by content. `catalogs` names what a scenario names. Several
/// paths are the ranks of one run: their clocks are brought together, and the notes say how. Gives up with "was cancelled" soon after
/// a stop is requested. REQUIRES: at least one path.
Result<DocumentPtr> openDocument(const std::vector<std::string>& paths, const Catalogs& catalogs, const OpenProgress& progress = {}, std::stop_token stop = {});

/// Which files belong into one document: all, if each says in its first 64 KiB that it is another rank of a run of the same size (as
/// PyTorch's profiler does); else each is one of its own.
std::vector<std::vector<std::string>> asDocuments(const std::vector<std::string>& paths);

}  // namespace ringside::gui
