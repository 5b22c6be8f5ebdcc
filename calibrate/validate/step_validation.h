// Step validation: predicts each case with a profile, runs it for real in several rounds, and puts the two side by side.
//
// Rounds go over all cases before a case is run again, so that a machine that drifts does so for all alike.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/execute/run_ranks.h"
#include "calibrate/validate/statistics.h"
#include "calibrate/validate/validation_cases.h"
#include "model/base/result.h"
#include "model/cost/measurements.h"
#include "sim/scenario.h"

namespace ringside {

struct StepValidationOptions {
    RunRanksOptions ranks;
    std::string profile;   ///< the file
    int rounds = 3;
    int steps = 0;         ///< of a round; 0: so many that it takes about a second, from 5 to 40
    int warmUp = 1;
    bool paced = false;    ///< kernels sleep for their profiled time
    std::vector<ReferenceStep> references;  ///< of the profile: run between rounds, they tell how fast the machine is now. Empty: taken to be as it was
    bool traces = false;   ///< keep the two timelines of each row
    std::string device = "cpu";
};

/// A case that could not be compared, and why.
struct SkippedCase {
    std::string strategy, model;
    int ranks = 1;
    std::string reason;
};

struct StepValidation {
    std::vector<ValidationRow> rows;
    std::vector<SkippedCase> skipped;
    std::string device, libraries;
    std::optional<double> drift;  ///< kernels take so many times as long as when the profile was measured, and were predicted so; empty: not known
};

/// What is done and of how much, in runs.
using ValidationProgress = std::function<void(std::size_t done, std::size_t total)>;

/// Nothing in a process that is not rank 0. A strategy that refuses the scenario, or that cannot be run for real, is skipped; what
/// is wrong with the input, the profile or the machine fails. So does a validation of which no case is left (missing capability).
Result<std::optional<StepValidation>> validateSteps(const std::vector<ValidationCase>& cases, const StepValidationOptions& options, const Catalogs& catalogs, const ValidationProgress& progress);

}  // namespace ringside
