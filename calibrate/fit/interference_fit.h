// Interference fit: how much kernels and a collective slow each other down, and the processor time that a collective takes.
//
// Meaning of the figures: docs/models/cpu-interference.md.
#pragma once

#include <span>

#include "calibrate/fit/alpha_beta_fit.h"
#include "calibrate/fit/robust.h"
#include "model/base/result.h"

namespace ringside {

/// Timings of the same work alone and beside the other, in seconds.
struct OverlapTimings {
    std::span<const double> kernelAlone, kernelBeside;
    std::span<const double> collectiveAlone, collectiveBeside;
};

/// Factors, at least 1.
struct InterferenceFit {
    Estimate computeSlowdown;    ///< of a kernel while the collective runs
    Estimate slowdownByCompute;  ///< of the collective while kernels run
};

/// The interval is that of the quotient of medians. Fails (bad input) on an empty list and on times that are not finite or not above 0.
Result<InterferenceFit> fitInterference(const OverlapTimings& timings);

/// Processor time of one rank's core per collective: fixed part and per byte.
struct CpuTimeFit {
    double secondsPerCall = 0, secondsPerByte = 0;
    ConfidenceInterval callInterval, byteInterval;
};
/// `samples`: processor time by size; times of 0 (below the clock's resolution) are left out. All zero: a fit of zeros.
Result<CpuTimeFit> fitCpuTime(std::span<const SizedTime> samples);

}  // namespace ringside
