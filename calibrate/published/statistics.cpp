#include "calibrate/published/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr std::size_t kLeastSweep = 3;  // two configurations are ordered right by chance every other time

std::vector<double> ranksOf(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> ranks(values.size());
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin + 1;
        while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
        for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
        begin = end;
    }
    return ranks;
}

/// What is ordered: a configuration, with the geometric mean of its repeats.
struct Configuration {
    double predicted = 0, logMeasured = 0, repeats = 0;
};

}  // namespace

std::optional<double> spearman(std::span<const double> a, std::span<const double> b) {
    CHECK(a.size() == b.size() && a.size() >= 2);
    const std::vector<double> x = ranksOf(a), y = ranksOf(b);
    const double mean = static_cast<double>(a.size() - 1) / 2;
    double xy = 0, xx = 0, yy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        xy += (x[i] - mean) * (y[i] - mean);
        xx += (x[i] - mean) * (x[i] - mean);
        yy += (y[i] - mean) * (y[i] - mean);
    }
    if (xx == 0 || yy == 0) return std::nullopt;
    return xy / std::sqrt(xx * yy);
}

double quantile(std::vector<double> values, double share) {
    CHECK(!values.empty() && share >= 0 && share <= 1);
    std::sort(values.begin(), values.end());
    const double at = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    if (below + 1 >= values.size()) return values.back();
    return values[below] + (at - static_cast<double>(below)) * (values[below + 1] - values[below]);
}

GroupSummary summaryOf(std::span<const Judgement* const> rows) {
    CHECK(!rows.empty());
    GroupSummary summary;
    summary.n = rows.size();
    std::vector<double> errors;
    std::size_t banded = 0, covered = 0;
    std::map<std::string, std::map<std::string, Configuration>> sweeps;
    for (const Judgement* row : rows) {
        errors.push_back(std::abs(row->error()));
        summary.bias += row->error() / static_cast<double>(rows.size());
        if (const auto in = row->inBand()) {
            ++banded;
            covered += *in ? 1 : 0;
        }
        if (row->sweep.empty()) continue;
        auto& sweep = sweeps[row->sweep];
        Configuration& one = sweep[row->configuration.empty() ? "#" + std::to_string(sweep.size()) : row->configuration];
        one.predicted = row->predictedCost;
        one.logMeasured += std::log(row->measuredCost);
        ++one.repeats;
    }
    summary.mape = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
    summary.worst = *std::max_element(errors.begin(), errors.end());
    summary.median = quantile(errors, 0.5);
    summary.p90 = quantile(errors, 0.9);
    if (banded > 0) summary.coverage = static_cast<double>(covered) / static_cast<double>(banded);
    double sum = 0, weight = 0;
    for (const auto& [name, configurations] : sweeps) {
        if (configurations.size() < kLeastSweep) continue;
        std::vector<double> predicted, measured;
        for (const auto& [key, one] : configurations) {
            predicted.push_back(one.predicted);
            measured.push_back(std::exp(one.logMeasured / one.repeats));
        }
        const auto correlation = spearman(predicted, measured);
        if (!correlation) continue;
        sum += *correlation * static_cast<double>(configurations.size());
        weight += static_cast<double>(configurations.size());
    }
    if (weight > 0) summary.spearman = sum / weight;
    return summary;
}

}  // namespace ringside
