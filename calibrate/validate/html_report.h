// The validation as one HTML page that needs nothing else: table, scatter, and for each row its two timelines and tables.
#pragma once

#include <optional>
#include <string>

#include "calibrate/validate/holdout.h"
#include "calibrate/validate/step_validation.h"

namespace ringside {

/// What the page says at its head.
struct ReportHead {
    std::string profile;  ///< its name
    std::string where;    ///< "2 ranks over loopback"
};

/// Valid HTML without scripts and outside resources; follows the reader's light or dark preference. Rows without traces come without
/// timelines. The same validation gives the same bytes.
std::string htmlReport(const ReportHead& head, const StepValidation& validation, const std::optional<Holdout>& holdout);

}  // namespace ringside
