// Curve fit: from repeated timings per size to a curve that never falls.
//
// More work is not faster: where noise says otherwise, neighbours are pooled (isotonic regression). docs/models/fits.md.
#pragma once

#include <span>
#include <vector>

#include "calibrate/fit/robust.h"
#include "model/base/result.h"
#include "model/base/units.h"

namespace ringside {

/// Timings of one size.
struct SizeSeries {
    double size = 0;
    std::vector<double> seconds;
};

/// `estimate.value` is the monotone one; spread and interval are those of the timings (the interval widened to hold the value).
struct CurvePoint {
    double size = 0;
    Estimate estimate;
};

/// By size, ascending. Series of one size are taken together. Fails (bad input) on none, on an empty series and on times that are not
/// finite or not above 0.
Result<std::vector<CurvePoint>> fitCurve(std::span<const SizeSeries> series);

}  // namespace ringside
