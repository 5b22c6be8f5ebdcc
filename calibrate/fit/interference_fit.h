// Interference fit: how much kernels slow a collective down, and the processor time that it takes from them.
//
// Meaning of the figures: docs/models/cpu-interference.md.
#pragma once

#include <span>

#include "calibrate/fit/alpha_beta_fit.h"
#include "calibrate/fit/robust.h"
#include "model/base/result.h"

namespace ringside {

/// How many times as long something takes beside other work, at least 1; the interval is that of the quotient of medians. Fails (bad
/// input) on an empty list and on times that are not finite or not above 0.
Result<Estimate> fitSlowdown(std::span<const double> alone, std::span<const double> beside);

/// Processor time of one rank's core per collective: fixed part and per byte.
struct CpuTimeFit {
    double secondsPerCall = 0, secondsPerByte = 0;
    ConfidenceInterval callInterval, byteInterval;
};
/// `samples`: processor time by size; times of 0 (below the clock's resolution) are left out. All zero: a fit of zeros.
Result<CpuTimeFit> fitCpuTime(std::span<const SizedTime> samples);

}  // namespace ringside
