#include "calibrate/published/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr std::size_t kLeastSweep = 3;  // two configurations are ordered right by chance every other time

/// Published repeats of one configuration (on another host, on another day) differ by 2 to 3 %, one standard deviation: lambdal/deeplearning-benchmark on
/// seven hosts of eight H100s 2.3 to 3.2 %, NVIDIA-NeMo/Megatron-Bridge from release to release 1.9 to 3.6 %.
constexpr double kRepeatsApart = 0.03;

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
    std::size_t right = 0;
    for (const auto& [name, configurations] : sweeps) {
        std::vector<double> predicted, measured;
        for (const auto& [key, one] : configurations) {
            predicted.push_back(one.predicted);
            measured.push_back(std::exp(one.logMeasured / one.repeats));
        }
        for (std::size_t i = 0; i < measured.size(); ++i)
            for (std::size_t j = i + 1; j < measured.size(); ++j) {
                if (std::abs(std::log(measured[i] / measured[j])) <= std::log1p(kRepeatsApart)) continue;
                ++summary.pairs;
                right += (measured[i] < measured[j] ? predicted[i] < predicted[j] : predicted[i] > predicted[j]) ? 1 : 0;
            }
        if (configurations.size() < kLeastSweep) continue;
        const auto correlation = spearman(predicted, measured);
        if (!correlation) continue;
        sum += *correlation * static_cast<double>(configurations.size());
        weight += static_cast<double>(configurations.size());
    }
    if (weight > 0) summary.spearman = sum / weight;
    if (summary.pairs > 0) summary.ordered = static_cast<double>(right) / static_cast<double>(summary.pairs);
    return summary;
}

}  // namespace ringside
