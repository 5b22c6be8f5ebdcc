#include "calibrate/fit/efficiency_fit.h"

#include <cmath>

#include <fmt/format.h>

namespace ringside {

Result<EfficiencyFit> fitEfficiency(std::span<const GemmTimings> timings) {
    if (timings.empty()) return badInput("samples", "there are no timings of matrix products");
    EfficiencyFit fit;
    for (const GemmTimings& one : timings) {
        const GemmShape& s = one.shape;
        const std::string name = fmt::format("{} × ({} × {})·({} × {})", s.batch, s.m, s.k, s.k, s.n);
        if (s.batch < 1 || s.m < 1 || s.n < 1 || s.k < 1) return badInput("samples", fmt::format("a product of shape {}; every dimension is at least 1", name));
        if (one.seconds.empty()) return badInput("samples", fmt::format("no timings of {}", name));
        for (const double seconds : one.seconds)
            if (!(seconds > 0) || !std::isfinite(seconds)) return badInput("samples", fmt::format("a time of {} s for {}; expected a finite one above 0", seconds, name));
        const double flops = 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
        const Estimate time = robustEstimate(one.seconds);
        const Estimate rate{flops / time.value, time.relativeSpread, {flops / time.interval.high, flops / time.interval.low}, time.samples};
        fit.samples.push_back({s, rate.value / 1e12, rate.relativeSpread});
        if (rate.value > fit.best.value) fit.best = rate;
    }
    return fit;
}

}  // namespace ringside
