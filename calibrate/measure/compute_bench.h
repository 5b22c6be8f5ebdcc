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
/// Repetitions of a collective as it stands in a step: with what it is made of, where it has just been computed.
struct StepCollective {
    CollectiveOp op = CollectiveOp::AllReduce;
    Bytes bytes = 0;
    std::vector<double> seconds;
};

struct StepTimings {
    std::vector<KernelTimings> kernels;   ///< repetitions of equal kernels taken together
    std::vector<StepCollective> collectives;  ///< of the first rank's entry only: those beside which no kernel ran
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

/// A step of several ranks; kernels beside which a collective ran do not count.
Result<std::vector<StepTimings>> benchStrategy(const Scenario& scenario, const RunRanksOptions& ranks, const ComputeBenchOptions& options);

Json toJson(const KernelWork& work);
KernelWork kernelWorkFrom(const Json& json);

}  // namespace ringside
