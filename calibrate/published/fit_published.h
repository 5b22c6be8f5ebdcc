// Fit published: the figures of the fit table from published measurements, and the same five times more with some sources held out.
//
// Stages: kernel tables, collective tables (fitCollectives), training runs, memory peaks; each on top of the one before. Then the spreads of
// the model itself, from what is left on sources that were held out. docs/models/published-fit.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/published/fit_rows.h"
#include "calibrate/published/folds.h"
#include "calibrate/published/judge.h"
#include "calibrate/published/records.h"

namespace ringside {

struct PublishedFit {
    PublishedFigures figures;     ///< of all sources
    std::vector<Fold> folds;      ///< of all sources but some
    std::size_t rows = 0;         ///< measurements that the fit used; collectives count tables' sizes
    std::size_t constants = 0;    ///< fitted: figures that rows speak for, of collectives too, and spreads
    PublishedVerdict verdict;     ///< in sample, each row with its held-out judgement
};

struct PublishedFitOptions {
    int threads = 0;
    std::size_t mostPerSource = 120;  ///< rows of one repository and kind in the fit; all are judged
    std::size_t folds = 5;
    std::function<void(double share, const std::string& doing)> progress;  ///< may be empty
};

/// Error (bad input): no record can be used. Minutes.
Result<PublishedFit> fitPublished(const std::vector<PublishedRecord>& records, const Catalogs& catalogs, const PublishedFitOptions& options = {});

/// The least σ such that four fifths of the rows lie in T·e^(±1.2816·√(spread² + σ²)); rows of one source weigh the root of their number
/// together. REQUIRES: as many of each.
double coveringSpread(const std::vector<double>& logErrors, const std::vector<double>& spreads, const std::vector<std::string>& sources);

}  // namespace ringside
