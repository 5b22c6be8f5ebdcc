// Statistics of predictions against published measurements. Pure functions; docs/guides/published.md says what each figure means.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringside {

/// One prediction beside its measurement, in the same unit.
struct Judgement {
    double predicted = 0, measured = 0;
    std::optional<double> p10, p90;        ///< the predicted band, where there is one
    std::string sweep;                     ///< rows of one sweep are ordered against each other; "": of none
    std::string configuration;             ///< rows of one configuration are repeats, which nothing can order; "": a configuration of its own
    double predictedCost = 0, measuredCost = 0;  ///< what is ordered in a sweep: less is better

    double error() const { return predicted / measured - 1; }
    std::optional<bool> inBand() const {
        if (!p10 || !p90) return std::nullopt;
        return measured >= *p10 && measured <= *p90;
    }
};

struct GroupSummary {
    std::size_t n = 0;
    double mape = 0;    ///< mean |error|
    double median = 0;  ///< of |error|
    double p90 = 0;     ///< of |error|, interpolated
    double worst = 0;   ///< largest |error|
    double bias = 0;    ///< mean error
    std::optional<double> spearman;  ///< mean over the sweeps of at least three configurations, by their number; nothing without such a sweep
    std::size_t pairs = 0;           ///< of configurations of one sweep whose measurements are further apart than repeats of one configuration are
    std::optional<double> ordered;   ///< share of them that is predicted in the right order; nothing without such a pair
    std::optional<double> coverage;  ///< share of the rows with a band that lie in it; nothing without a band
};

/// REQUIRES: at least one row.
GroupSummary summaryOf(std::span<const Judgement* const> rows);

/// Spearman's rank correlation; equal values share their mean rank. Nothing where one side does not vary.
/// REQUIRES: as many of one as of the other, at least two.
std::optional<double> spearman(std::span<const double> a, std::span<const double> b);

/// The value below which a share of them lies, interpolated between neighbours. REQUIRES: some values, 0 ≤ share ≤ 1.
double quantile(std::vector<double> values, double share);

}  // namespace ringside
