// Folds: five-fold cross-validation by source. Each fold holds some repositories out and keeps the figures that a fit without them gives
// (model/catalog/published/folds.json), so that every record can be predicted by figures that have not seen its source.
#pragma once

#include <string>
#include <vector>

#include "calibrate/published/records.h"
#include "model/cost/published_figures.h"

namespace ringside {

struct Fold {
    std::vector<std::string> heldOut;  ///< repositories
    PublishedFigures figures;          ///< fitted to all others

    bool holdsOut(const std::string& repository) const;
};

/// Repositories dealt to at most `folds` folds: those with most records first, each to the fold with the fewest; records of one repository
/// stay together. Figures are empty.
std::vector<Fold> dealFolds(const std::vector<PublishedRecord>& records, std::size_t folds = 5);

/// Those that the program ships. Parsed once.
const std::vector<Fold>& shippedFolds();

/// Figures that have not seen the repository: its fold's; the shipped ones where no fit has seen it.
const PublishedFigures& heldOutFigures(const std::string& repository, const std::vector<Fold>& folds = shippedFolds());

Result<std::vector<Fold>> foldsFromJson(const JsonCursor& cursor);
Json toJson(const std::vector<Fold>& folds);

}  // namespace ringside
