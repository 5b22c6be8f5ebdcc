// Alpha-beta fit: seconds = α + β·bytes, by size regime.
//
// Relative errors count, so that a microsecond at 1 KiB weighs as much as a millisecond at 100 MiB. Outliers do not: the start is a
// median of slopes, and what lies far off is given no weight (Tukey's biweight). docs/models/fits.md.
#pragma once

#include <span>
#include <vector>

#include "calibrate/fit/robust.h"
#include "model/base/result.h"
#include "model/base/units.h"

namespace ringside {

struct SizedTime {
    double bytes = 0;
    double seconds = 0;
};

/// Valid for fromBytes ≤ bytes ≤ toBytes (the sizes it was fitted to); neither parameter is negative.
struct AlphaBeta {
    double fromBytes = 0, toBytes = 0;
    double alpha = 0;  ///< seconds
    double beta = 0;   ///< seconds per byte
    ConfidenceInterval alphaInterval, betaInterval;  ///< six standard errors, from residuals and repetitions: what is outside is wrong
    double relativeResidual = 0;           ///< robust standard deviation of measured over fitted − 1
    int outliers = 0;                      ///< sizes that were given no weight

    double seconds(double bytes) const { return alpha + beta * bytes; }
};

struct AlphaBetaFit {
    std::vector<AlphaBeta> regimes;  ///< by size; at least one

    /// By the regime of that size; between two, the one that ends nearer; beyond the ends, the outermost.
    double seconds(double bytes) const;
};

struct AlphaBetaOptions {
    int maxRegimes = 3;
    double noise = 0.02;  ///< relative; what a regime of its own must beat, where repetitions do not show more
};

/// Several times of one size are replaced by their median first. Fails (bad input) with fewer than two sizes, or a size or time
/// that is not finite or not above 0; the error says which.
Result<AlphaBetaFit> fitAlphaBeta(std::span<const SizedTime> samples, const AlphaBetaOptions& options = {});

}  // namespace ringside
