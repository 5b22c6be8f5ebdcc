// A scenario run for real on all its ranks, and what came of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/execute/executor.h"
#include "calibrate/execute/run_ranks.h"
#include "sim/player/memory_tracker.h"
#include "sim/scenario.h"
#include "traces/trace.h"

namespace ringside {

struct RealRunOptions {
    RunRanksOptions ranks;
    int steps = 5;                ///< measured, after the warm-up
    int warmUp = 1;               ///< steps that are run but not reported
    std::string device = "cpu";   ///< cpu or cuda
    Bytes memoryLimit = 0;        ///< of a CPU rank's tensors; 0: the machine's memory, shared among local ranks
    double leastSeconds = 0;      ///< go on measuring for this long, …
    int mostSteps = 0;            ///< … but for no more than so many steps
    ExecuteOptions execute;       ///< its pace is filled in where `paced`
    bool paced = false;           ///< kernels sleep for as long as the scenario's profile says
    bool keepParameters = false;  ///< bring the parameters to rank 0
};

struct RealRank {
    std::vector<double> stepSeconds;  ///< measured steps
    std::vector<double> losses;       ///< of every step, warm-up included; mean over micro-steps
    std::vector<std::vector<TaskTimes>> tasks;  ///< per measured step
    MemoryReport memory;
    std::vector<ParameterPart> parameters;
};

struct RealRun {
    Schedule schedule;                  ///< unfolded: one class per rank
    std::vector<RealRank> ranks;
    std::vector<double> stepSeconds;    ///< per measured step: of the slowest rank
    std::vector<double> losses;         ///< per step, warm-up included: mean over ranks
    std::string deviceName, libraries;

    double medianStep() const;
    /// Of the step whose time is the median.
    Timeline timeline() const;
    Trace trace() const;
};

/// The rank whose last task ends last: it decides how long a measured step took.
std::int64_t lastRank(const Timeline& timeline);

/// Nothing in a process that is not rank 0. Fails as Executor and runRanks do.
Result<std::optional<RealRun>> runForReal(const Scenario& scenario, const RealRunOptions& options);

/// Every rank runs the whole of a schedule for one rank by itself, all at the same time: what a machine does when all its ranks
/// compute. One entry per rank; nothing in a process that is not rank 0.
Result<std::vector<RealRank>> runAlone(const Schedule& schedule, const Scenario& scenario, const RealRunOptions& options);

/// The same samples on one device, here; then the largest difference of the parameters, relative to the largest element of each
/// tensor. REQUIRES: `run` kept its parameters.
Result<double> differenceFromSingle(const Scenario& scenario, const RealRunOptions& options, const RealRun& run);

/// The largest difference between parts of two runs, likewise. Fails where some element is missing or ranks disagree.
Result<double> parameterDifference(const RealRun& one, const RealRun& other);

}  // namespace ringside
