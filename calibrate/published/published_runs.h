// Published runs: training and memory records as scenarios whose open questions are settled, and what is predicted for them with any
// figures. Made once, predicted many times: by the verdict, by the held-out verdict, by every round of a fit.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/published/cause.h"
#include "calibrate/published/records.h"
#include "calibrate/published/to_scenario.h"
#include "model/cost/published_figures.h"
#include "sim/scenario.h"

namespace ringside {

/// What a judgement needs of a prediction.
struct PredictedRun {
    double stepSeconds = 0, p10Seconds = 0, p90Seconds = 0, mfu = 0;
    CauseShares causes{};
    Bytes peakAllocated = 0, peakReserved = 0, peakDevice = 0;  ///< 0 where memory was not asked for
    std::array<Bytes, kMemoryCategories> atPeak{};              ///< by MemoryCategory, likewise
    bool outOfMemory = false;
};

/// Predicts with these figures in the place of the shipped ones; what the scenario sets by hand stays as it is.
Result<PredictedRun> predictRun(const Scenario& scenario, const PublishedFigures& figures, bool memory = true);

/// No device does more than its peak: a measured step that would is another quantity than it says. (A little more is allowed for: parameters
/// that only look up count as FLOPs too.) `mfu` of the measured step, for the message.
struct PeakCheck {
    double mfu = 0;
    bool believable = true;
};
PeakCheck peakCheck(const PredictedRun& predicted, double measuredSeconds);

struct PublishedRun {
    std::string reason;      ///< why there is none; "": there is
    MappedRecord mapped;     ///< recompute is settled
    PredictedRun predicted;  ///< with the shipped figures
};

/// One for each record, in their order. Where a source is silent on recompute and the run, which was real, would not fit without, it had
/// it; so had then the other runs of that source with a model of that name on that device. Collective and kernel tables are no runs.
/// `threads` 0: all cores; `progress` (may be empty) is called with the number done, one call at a time.
std::vector<PublishedRun> prepareRuns(const std::vector<PublishedRecord>& records, const Catalogs& catalogs, int threads = 0,
                                      const std::function<void(std::size_t)>& progress = {});

/// Calls work(i) for i in [0, count) on `threads` threads; `progress` as above.
void forEachOnThreads(std::size_t count, int threads, const std::function<void(std::size_t)>& work, const std::function<void(std::size_t)>& progress = {});

}  // namespace ringside
