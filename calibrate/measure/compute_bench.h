// Compute bench: times kernels where they stand, in training steps that run for real. A kernel finds the caches as the kernels
// before it left them, which no loop over one kernel does.
#pragma once

#include <string>
#include <vector>

#include "calibrate/execute/run_ranks.h"
#include "calibrate/fit/assemble_profile.h"
#include "calibrate/measure/calibration_models.h"
#include "model/base/result.h"

namespace ringside {

/// What one model's steps gave, on one rank.
struct StepTimings {
    std::vector<KernelTimings> kernels;   ///< repetitions of equal kernels taken together
    std::vector<double> copyBytesPerSecond;
    std::vector<double> stepSeconds;
    double overheadSeconds = 0;           ///< of a step, outside its tasks on the device
    int tasks = 0;                        ///< on the device, in a step
};

struct ComputeBenchOptions {
    int warmUp = 2, minSteps = 6, maxSteps = 60;
    double seconds = 0.8;                 ///< of measured steps per model
};

/// One model on all ranks at once: ranks of a host share caches and memory, so they are measured together. One entry per rank.
Result<std::vector<StepTimings>> benchSteps(const Scenario& scenario, const RunRanksOptions& ranks, const ComputeBenchOptions& options);

/// A step of several ranks: only its kernels that belong to no op of the model and to no optimizer count.
/// `all`: every kernel counts.
Result<std::vector<StepTimings>> benchStrategy(const Scenario& scenario, const RunRanksOptions& ranks, const ComputeBenchOptions& options, bool all = false);

Json toJson(const KernelWork& work);
KernelWork kernelWorkFrom(const Json& json);

}  // namespace ringside
