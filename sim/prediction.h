// Prediction: the answer to a scenario: time, throughput, where the time goes, memory, and what it all rests on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "sim/player/critical_path.h"
#include "sim/player/memory_tracker.h"
#include "sim/player/player.h"
#include "sim/scenario.h"
#include "traces/analysis/breakdown.h"
#include "traces/trace.h"

namespace ringside {

enum class MemoryVerdict : std::uint8_t { Fits, Tight, OutOfMemory };
std::string_view nameOf(MemoryVerdict verdict);  ///< "fits", "tight", "out_of_memory"

/// What +10 % of one resource would do.
struct Sensitivity {
    std::string resource;  ///< "compute", "network", "memory_bandwidth", "host"
    double stepSeconds = 0;
    double change = 0;     ///< relative to the step as it is; −0.05: 5 % shorter
};

/// A piece of the critical path, summed over the tasks that have one name apart from their layer.
struct PathItem {
    std::string name;
    PathKind kind = PathKind::Compute;
    double seconds = 0;
};

/// Shares of the critical path by the figures that priced it; they sum to 1.
struct PathShares {
    double gemm = 0, convolution = 0, attention = 0, memory = 0;  ///< kernels; memory: bound by bytes, copies and servers too
    double optimizer = 0, communication = 0, host = 0;
};

/// A figure the prediction stands on.
struct RestsOn {
    std::string figure, value, provenance, source;
};

/// The step times of many drawn steps (Perturbation::samples).
struct StepDistribution {
    std::vector<double> seconds;  ///< as drawn
    double mean = 0, p50 = 0, p90 = 0, p99 = 0, least = 0, most = 0;
    double undisturbed = 0;       ///< the step without jitter and pauses
};

/// Steps of two kinds that take turns: local ones, and every period-th one that also averages.
struct StepRound {
    std::int64_t period = 1;
    double localSeconds = 0, averagingSeconds = 0;
};

struct Prediction {
    double stepSeconds = 0, p10Seconds = 0, p90Seconds = 0;  ///< with a distribution: its mean; the band is the model's
    double samplesPerSecond = 0, tokensPerSecond = 0;  ///< tokens: 0 for models without
    double mfu = 0, hfu = 0;
    Breakdown breakdown;  ///< of the rank that ends last
    MemoryReport memory;  ///< of the rank with the least room
    std::size_t memoryClass = 0;  ///< into Schedule::classes: whose memory it is
    Bytes capacityBytes = 0;
    MemoryVerdict verdict = MemoryVerdict::Fits;
    Bytes bytesSentPerRank = 0;
    std::int64_t parameters = 0;
    std::vector<PathItem> criticalPath;       ///< largest first
    std::map<PathKind, double> pathSeconds;   ///< by kind; sums to the step
    PathShares shares;
    std::vector<Sensitivity> sensitivity;     ///< empty unless asked for
    std::vector<RestsOn> restsOn;
    std::optional<StepDistribution> distribution;  ///< where the scenario draws steps
    std::optional<StepRound> round;           ///< where steps are not all alike; the step is then their mean
    std::vector<std::string> warnings;

    const RankProgram& memoryProgram() const { return schedule->programs[schedule->classes[memoryClass].program]; }

    // What it was made from, for traces and tables.
    std::shared_ptr<const Schedule> schedule;
    Prices prices;
    Timeline timeline;
};

struct PredictOptions {
    bool sensitivity = true;      ///< four more plays
    bool memoryTimeline = false;  ///< keep memory samples, for a trace
    bool explain = true;          ///< critical path by name, what it rests on
    bool memory = true;           ///< without: no peak, and the verdict is "fits"
};

/// Writes the Schedule, prices it, plays it. A pure function of its arguments.
Result<Prediction> predict(const Scenario& scenario, const PredictOptions& options = {});

/// The Schedule of a scenario, validated nowhere: tests do that. `mostMicroSteps` and `exactRanks` as in StrategyInput; whoever
/// runs it for real asks for exact ranks.
Result<Schedule> writeSchedule(const Scenario& scenario, int mostMicroSteps = 0, bool exactRanks = false);

/// The document that `--json` prints.
Json toJson(const Scenario& scenario, const Prediction& prediction);
/// The full trace of a prediction made with memoryTimeline.
Trace traceOf(const Prediction& prediction);

}  // namespace ringside
