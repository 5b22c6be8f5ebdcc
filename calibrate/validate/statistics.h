// Statistics of a validation: how far predictions are from measurements, and how far measurements are from each other.
// Pure functions; docs/guides/validate.md says what each figure means.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "traces/trace.h"

namespace ringside {

/// One quantity, in seconds.
struct Compared {
    std::string name;
    double predicted = 0, measured = 0;

    /// predicted / measured − 1; nothing where nothing was measured.
    std::optional<double> error() const;
};

/// One scenario, predicted and run.
struct ValidationRow {
    std::string strategy, model;
    int ranks = 1;
    double predicted = 0, p10 = 0, p90 = 0;  ///< step, seconds
    double measured = 0;                     ///< median over rounds of a round's median step (its mean, where steps take turns)
    double noiseFloor = 0;                   ///< relative
    std::vector<double> rounds;              ///< each round's
    int steps = 0;                           ///< measured in each round
    Compared exposed, communication;         ///< of the rank that ends last
    std::vector<Compared> phases;            ///< device time on compute streams, mean over ranks
    std::vector<Compared> classes;           ///< kernels by name, collectives by operation; mean over ranks, largest first
    Bytes predictedPeak = 0, measuredPeak = 0;  ///< 0: not measured
    Trace predictedTrace, measuredTrace;     ///< of the round in the middle

    double error() const { return predicted / measured - 1; }
    bool inBand() const { return measured >= p10 && measured <= p90; }
};

/// Half of the range of repeated measurements, relative to their median. 0 for fewer than two.
double relativeHalfWidth(std::span<const double> repeats);

/// Repeats of one measurement: the rounds' figures; of one round alone, the medians of its even and of its odd steps.
double noiseFloorOf(const std::vector<std::vector<double>>& stepsOfRounds, std::span<const double> rounds);

/// Pairs of one model whose measurements differ by more than both noise floors together, and how many of them were predicted in
/// the same order.
struct OrderCount {
    int pairs = 0, right = 0;
};

struct ValidationSummary {
    std::size_t rows = 0;
    double mape = 0;        ///< mean |error|
    double bias = 0;        ///< mean error
    double worst = 0;       ///< largest |error|
    double noiseFloor = 0;  ///< median over the rows
    double coverage = 0;    ///< share of rows in their band
    OrderCount order;
};
/// REQUIRES: some rows.
ValidationSummary summaryOf(std::span<const ValidationRow* const> rows);

/// The summary of all, and of each strategy in order of appearance.
struct ValidationSummaries {
    ValidationSummary all;
    std::vector<std::pair<std::string, ValidationSummary>> strategies;
};
ValidationSummaries summariesOf(const std::vector<ValidationRow>& rows);

}  // namespace ringside
