// Scaling: the same training on more and more devices, against a stated baseline (docs/models/scaling-efficiency.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/prediction.h"
#include "sim/study/svg_chart.h"

namespace ringside {

/// Weak: the batch per device stays. Strong: the global batch stays.
enum class ScalingMode : std::uint8_t { Weak, Strong };
std::string_view nameOf(ScalingMode mode);  ///< "weak", "strong"

struct SpeedUp {
    double speedup = 0;     ///< throughput over the baseline's; with a fixed global batch that is T_base / T
    double efficiency = 0;  ///< speedup over (devices / baseline devices); weak: T_base / T
};
/// REQUIRES: all arguments positive. The batch per step is what `mode` says.
SpeedUp speedUpOf(ScalingMode mode, std::int64_t baselineDevices, double baselineStepSeconds, std::int64_t devices, double stepSeconds);

struct BatchSplit {
    std::int64_t microBatch = 1, gradAccum = 1;
};
/// micro-batch × accumulation × replicas = global batch, with the micro-batch wanted if it divides, else the largest smaller
/// one that does. Empty if the global batch is no multiple of the replicas. REQUIRES: all arguments ≥ 1. O(wanted).
std::optional<BatchSplit> splitBatch(std::int64_t globalBatch, std::int64_t replicas, std::int64_t wantedMicroBatch);

struct ScalingRequest {
    Json scenario;                        ///< device count left open
    std::string source = "command line";  ///< names the scenario in errors
    ScalingMode mode = ScalingMode::Weak;
    std::vector<std::int64_t> devices;     ///< any order; each is taken once
    std::vector<std::string> strategies;   ///< empty: the scenario's
    std::optional<std::int64_t> baseline;  ///< empty: 1 if asked for, else the fewest
    int threads = 0;                       ///< 0: all cores
    std::function<bool()> stop = {};       ///< asked before every point, by any thread: end without an answer
    std::function<void(std::size_t done, std::size_t all)> progress = {};  ///< after every point; one thread at a time
};

struct ScalingPoint {
    std::int64_t devices = 0;
    std::string strategy;
    double stepSeconds = 0, samplesPerSecond = 0, tokensPerSecond = 0;  ///< tokens: 0 for models without
    std::optional<SpeedUp> speedUp;                                     ///< empty where the baseline could not be predicted
    double exposedSeconds = 0, mfu = 0;
    Bytes peakBytes = 0;
    MemoryVerdict verdict = MemoryVerdict::Fits;
    std::int64_t microBatch = 0, gradAccum = 0, globalBatch = 0;
};

struct SkippedPoint {
    std::int64_t devices = 0;
    std::string strategy, reason;
};

struct ScalingStudy {
    ScalingMode mode = ScalingMode::Weak;
    std::int64_t baseline = 1;
    std::string model, device;            ///< names, for titles
    std::vector<ScalingPoint> points;     ///< by strategy in the order asked for, then by devices
    std::vector<SkippedPoint> skipped;    ///< in the same order
    std::vector<ScalingPoint> baselines;  ///< one per strategy that has one; also where the baseline was not asked for
};

/// Predicts all points, in parallel; the answer does not depend on the number of threads. Fails where the request is off;
/// a single point that cannot be predicted is skipped with its reason. Stopped, it fails with RuntimeFailure "stopped".
Result<ScalingStudy> studyScaling(const ScalingRequest& request, const Catalogs& catalogs);

Json toJson(const ScalingStudy& study);
std::string toCsv(const ScalingStudy& study);

enum class ScalingFigure : std::uint8_t { Efficiency, SpeedUp };
/// Devices on a log₂ axis, a line per strategy, the ideal dashed, what does not fit hollow.
Chart chartOf(const ScalingStudy& study, ScalingFigure figure);

}  // namespace ringside
