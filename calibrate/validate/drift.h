// Drift: how fast the machine is now, against when its profile was measured. On a shared machine neighbours come and go, and within an
// hour the same kernels take 15 % longer or less; a prediction for the machine as it was says little about a run on it as it is.
//
// The steps that a calibration has kept (Profile::steps) are run again, between the rounds of a validation. None of them is validated.
#pragma once

#include <span>
#include <vector>

#include "calibrate/execute/run_ranks.h"
#include "model/base/result.h"
#include "model/cost/profile.h"
#include "sim/scenario.h"

namespace ringside {

/// One probe: by how much longer each of the profile's steps takes now, in the order of `steps`. Empty where there is nothing to compare
/// with (an older profile, or one that was measured with another number of ranks), and in a process
/// that is not rank 0.
Result<std::vector<double>> probeDrift(std::span<const ReferenceStep> steps, const RunRanksOptions& ranks, const Catalogs& catalogs);

/// Pure: the factor on kernels that all probes together say; 1 without any. Each probe has one entry per step.
double driftOf(std::span<const std::vector<double>> probes);

}  // namespace ringside
