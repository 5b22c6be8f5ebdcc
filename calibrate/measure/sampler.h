// Sampler: times something until enough is known, and tells clean samples from contaminated ones.
//
// Another process on the core shows as time that the thread waited in the run queue: such samples are dropped and counted. So are
// outliers and stretches during which the clock was throttled. docs/guides/measuring.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/measure/stopping.h"
#include "model/base/result.h"

namespace ringside {

/// Where time comes from; tests bring their own.
struct SampleClock {
    std::function<std::int64_t()> nowNs;      ///< steady
    std::function<std::int64_t()> waitedNs;   ///< so far in the run queue, of the thread that works
    std::function<std::int64_t()> cpuNs;      ///< processor time so far; may be empty
};
/// The steady clock, /proc/thread-self/schedstat of the calling thread (always 0 where there is none) and the processor time of
/// the whole process. REQUIRES: used on the thread that made it.
SampleClock systemClock();
/// The run-queue wait in a line of schedstat ("ran waited slices"); an error where it has another form.
Result<std::int64_t> parseSchedstat(const std::string& text);

struct SamplerOptions {
    int warmUp = 3;                  ///< calls before anything counts
    double warmUpSeconds = 0;        ///< likewise, at the least
    int minSamples = 10, maxSamples = 1000;
    double maxSeconds = 1;           ///< of one series, warm-up not counted; minSamples are taken nevertheless, up to ten times as long
    double minSampleSeconds = 20e-6; ///< shorter work is called several times per sample
    double maxWaitShare = 0.005;     ///< run-queue wait over duration
    double outlierDeviations = 6;    ///< from the median, in spreads
    double throttleFactor = 1.15;    ///< a window this much slower than the fastest was throttled
    int throttleWindow = 8;
};

/// Kept samples, per call, in order; what was left out is counted.
struct SampleSeries {
    std::vector<double> seconds;
    std::vector<double> cpuSeconds;  ///< beside each; empty without a clock for it
    int callsPerSample = 1;
    int waited = 0;                  ///< dropped: the thread waited for its core
    int outliers = 0, throttled = 0; ///< dropped
    bool contaminated = false;       ///< too few were clean: the least contaminated had to be kept
    bool converged = false;          ///< the criterion was met; else a limit was
    double noise = 0;                ///< spread over median of what was kept

    double dropped() const { return static_cast<double>(waited + outliers + throttled); }
};

/// Calls `work` until `criterion` is done or a limit is reached. At least one sample is kept. An error of `work` ends it.
Result<SampleSeries> sample(const std::function<Result<void>()>& work, StoppingCriterion& criterion, const SamplerOptions& options, const SampleClock& clock);

}  // namespace ringside
