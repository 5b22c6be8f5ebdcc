// Robust statistics: what a handful of timings says when some of them are wrong.
#pragma once

#include <span>
#include <vector>

namespace ringside {

struct ConfidenceInterval {
    double low = 0, high = 0;

    bool contains(double x) const { return x >= low && x <= high; }
    bool operator==(const ConfidenceInterval&) const = default;
};

/// The median of some timings, their spread relative to it (from the median absolute deviation, scaled to a standard deviation)
/// and where the true median lies with 99.9 % confidence (or the whole range, if there are too few to say).
struct Estimate {
    double value = 0;
    double relativeSpread = 0;
    ConfidenceInterval interval;
    int samples = 0;
};

/// Means of (at most) `blocks` runs of neighbours: where times are of two kinds (a message that waits for the scheduler's tick, and one
/// that does not), their median is one kind or the other, and only the mean adds up to what a step takes. The slowest fiftieth is left
/// out first. REQUIRES: not empty.
std::vector<double> blockMeans(const std::vector<double>& values, int blocks = 7);

double median(std::vector<double> values);  ///< REQUIRES: not empty
/// 1.4826 × median |x − median|: the standard deviation of a normal distribution, whatever a minority of the values is.
double scaledMad(std::span<const double> values);
/// The interval is distribution-free: order statistics around the middle.
Estimate robustEstimate(std::span<const double> samples);  ///< REQUIRES: not empty

/// Smallest x such that half of the weight is at or below it. REQUIRES: not empty, weights > 0.
struct Weighted {
    double value, weight;
};
double weightedMedian(std::vector<Weighted> values);

}  // namespace ringside
