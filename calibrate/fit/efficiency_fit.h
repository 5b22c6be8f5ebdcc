// Efficiency fit: from timings of matrix products to the table of a profile, and the best rate among them.
#pragma once

#include <span>
#include <vector>

#include "calibrate/fit/robust.h"
#include "model/base/result.h"
#include "model/cost/profile.h"

namespace ringside {

struct GemmTimings {
    GemmShape shape;
    std::vector<double> seconds;
};

struct EfficiencyFit {
    std::vector<GemmSample> samples;  ///< in the order of the timings; rate of the median
    Estimate best;                    ///< FLOP/s of the fastest shape
};

/// Fails (bad input) on none, on an empty series, on a dimension below 1 and on times that are not finite or not above 0.
Result<EfficiencyFit> fitEfficiency(std::span<const GemmTimings> timings);

}  // namespace ringside
