#include "calibrate/fit/robust.h"

#include <algorithm>
#include <cmath>

#include "model/base/check.h"

namespace ringside {

std::vector<double> blockMeans(const std::vector<double>& values, int blocks) {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double limit = sorted[sorted.size() - 1 - sorted.size() / 50];
    std::vector<double> kept;
    for (const double value : values)
        if (value <= limit) kept.push_back(value);
    const std::size_t count = std::min(kept.size(), static_cast<std::size_t>(blocks));
    std::vector<double> means(count, 0.0), sizes(count, 0.0);
    for (std::size_t i = 0; i < kept.size(); ++i) {
        means[i * count / kept.size()] += kept[i];
        sizes[i * count / kept.size()] += 1;
    }
    for (std::size_t i = 0; i < count; ++i) means[i] /= sizes[i];
    return means;
}

double median(std::vector<double> values) {
    CHECK(!values.empty());
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double scaledMad(std::span<const double> values) {
    const double middle = median({values.begin(), values.end()});
    std::vector<double> deviations;
    deviations.reserve(values.size());
    for (const double x : values) deviations.push_back(std::abs(x - middle));
    return 1.4826 * median(std::move(deviations));
}

Estimate robustEstimate(std::span<const double> samples) {
    CHECK(!samples.empty());
    std::vector<double> sorted(samples.begin(), samples.end());
    std::sort(sorted.begin(), sorted.end());
    Estimate estimate;
    estimate.samples = static_cast<int>(sorted.size());
    estimate.value = median(sorted);
    if (estimate.value > 0) estimate.relativeSpread = scaledMad(sorted) / estimate.value;
    // How many of n samples fall below the median is binomial; 3.29 standard deviations to either side hold 99.9 %.
    const double n = static_cast<double>(sorted.size());
    const double half = 3.29 * std::sqrt(n) / 2;
    const auto last = static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(std::clamp(std::floor(n / 2 - half), 0.0, last));
    const auto high = static_cast<std::size_t>(std::clamp(std::ceil(n / 2 + half) - 1, 0.0, last));
    estimate.interval = {sorted[low], sorted[high]};
    return estimate;
}

double weightedMedian(std::vector<Weighted> values) {
    CHECK(!values.empty());
    std::sort(values.begin(), values.end(), [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
    double total = 0, sum = 0;
    for (const Weighted& w : values) total += w.weight;
    for (const Weighted& w : values) {
        sum += w.weight;
        if (sum >= total / 2) return w.value;
    }
    return values.back().value;
}

}  // namespace ringside
