#include "calibrate/fit/curve_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace ringside {
namespace {

/// Neighbours that were pooled because the later was faster than the earlier.
struct Pool {
    double logSum = 0, weight = 0;
    std::size_t points = 0;
    double mean() const { return logSum / weight; }
};

}  // namespace

Result<std::vector<CurvePoint>> fitCurve(std::span<const SizeSeries> series) {
    std::map<double, std::vector<double>> bySize;
    for (const SizeSeries& one : series) {
        if (one.seconds.empty()) return badInput("samples", fmt::format("no timings of size {}", one.size));
        if (!(one.size >= 0) || !std::isfinite(one.size)) return badInput("samples", fmt::format("a size of {}; expected a finite one, at least 0", one.size));
        for (const double seconds : one.seconds) {
            if (!(seconds > 0) || !std::isfinite(seconds)) return badInput("samples", fmt::format("a time of {} s at size {}; expected a finite one above 0", seconds, one.size));
            bySize[one.size].push_back(seconds);
        }
    }
    if (bySize.empty()) return badInput("samples", "there are none");
    std::vector<CurvePoint> curve;
    std::vector<Pool> pools;
    for (const auto& [size, seconds] : bySize) {
        CurvePoint point{size, robustEstimate(seconds)};
        // The variance of the median, with a floor: no timing is good to more than half a per cent.
        const double spread = std::max(0.005, point.estimate.relativeSpread);
        const double weight = static_cast<double>(seconds.size()) / (spread * spread);
        pools.push_back({weight * std::log(point.estimate.value), weight, 1});
        curve.push_back(std::move(point));
        while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
            const Pool last = pools.back();
            pools.pop_back();
            pools.back().logSum += last.logSum;
            pools.back().weight += last.weight;
            pools.back().points += last.points;
        }
    }
    std::size_t i = 0;
    for (const Pool& pool : pools)
        for (std::size_t k = 0; k < pool.points; ++k, ++i) {
            Estimate& estimate = curve[i].estimate;
            if (pool.points > 1) estimate.value = std::exp(pool.mean());
            estimate.interval = {std::min(estimate.interval.low, estimate.value), std::max(estimate.interval.high, estimate.value)};
        }
    return curve;
}

}  // namespace ringside
