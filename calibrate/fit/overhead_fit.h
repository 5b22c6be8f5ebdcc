// Overhead fit: what a step takes outside its kernels, as a fixed part and a part per task.
#pragma once

#include <span>

namespace ringside {

struct StepOverhead {
    double tasks = 0;    ///< in a step
    double seconds = 0;  ///< of it outside their work
};

/// Spreads are standard deviations, in seconds: how far the fit moves where other steps of the same kind are drawn.
struct OverheadFit {
    double perStep = 0, perTask = 0;              ///< seconds, at least 0
    double perStepSpread = 0, perTaskSpread = 0;
};

/// Medians: few points, some of them of steps whose kernels leave the caches cold. No points: all zero. O(n² log n) times the draws.
OverheadFit fitOverhead(std::span<const StepOverhead> steps);

}  // namespace ringside
