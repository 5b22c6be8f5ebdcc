#include "calibrate/validate/statistics.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/robust.h"
#include "model/base/check.h"

namespace ringside {

std::optional<double> Compared::error() const { return measured > 0 ? std::optional(predicted / measured - 1) : std::nullopt; }

double relativeHalfWidth(std::span<const double> repeats) {
    if (repeats.size() < 2) return 0;
    const auto [least, most] = std::minmax_element(repeats.begin(), repeats.end());
    return (*most - *least) / 2 / median({repeats.begin(), repeats.end()});
}

double noiseFloorOf(const std::vector<std::vector<double>>& stepsOfRounds, std::span<const double> rounds) {
    if (rounds.size() != 1) return relativeHalfWidth(rounds);
    const std::vector<double>& steps = stepsOfRounds.front();
    if (steps.size() < 2) return 0;
    std::vector<double> halves[2];
    for (std::size_t s = 0; s < steps.size(); ++s) halves[s % 2].push_back(steps[s]);
    const double medians[] = {median(halves[0]), median(halves[1])};
    return relativeHalfWidth(medians);
}

namespace {

OrderCount orderOf(std::span<const ValidationRow* const> rows) {
    OrderCount count;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            const ValidationRow &a = *rows[i], &b = *rows[j];
            if (a.model != b.model || a.ranks != b.ranks) continue;
            if (std::abs(a.measured - b.measured) <= a.noiseFloor * a.measured + b.noiseFloor * b.measured) continue;
            ++count.pairs;
            if ((a.predicted < b.predicted) == (a.measured < b.measured)) ++count.right;
        }
    return count;
}

}  // namespace

ValidationSummary summaryOf(std::span<const ValidationRow* const> rows) {
    CHECK(!rows.empty());
    ValidationSummary summary;
    summary.rows = rows.size();
    std::vector<double> floors;
    const auto n = static_cast<double>(rows.size());
    for (const ValidationRow* row : rows) {
        summary.mape += std::abs(row->error()) / n;
        summary.bias += row->error() / n;
        summary.worst = std::max(summary.worst, std::abs(row->error()));
        summary.coverage += row->inBand() ? 1 / n : 0;
        floors.push_back(row->noiseFloor);
    }
    summary.noiseFloor = median(floors);
    summary.order = orderOf(rows);
    return summary;
}

ValidationSummaries summariesOf(const std::vector<ValidationRow>& rows) {
    std::vector<const ValidationRow*> all;
    std::vector<std::pair<std::string, std::vector<const ValidationRow*>>> byStrategy;
    for (const ValidationRow& row : rows) {
        all.push_back(&row);
        auto own = std::find_if(byStrategy.begin(), byStrategy.end(), [&](const auto& entry) { return entry.first == row.strategy; });
        if (own == byStrategy.end()) own = byStrategy.insert(byStrategy.end(), {row.strategy, {}});
        own->second.push_back(&row);
    }
    ValidationSummaries out{summaryOf(all), {}};
    for (const auto& [strategy, own] : byStrategy) out.strategies.emplace_back(strategy, summaryOf(own));
    return out;
}

}  // namespace ringside
