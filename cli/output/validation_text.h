// A validation, for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "calibrate/validate/holdout.h"
#include "calibrate/validate/step_validation.h"

namespace ringside {

struct ValidationReport {
    const StepValidation* validation = nullptr;
    std::optional<Holdout> holdout;
    std::string profile;          ///< its file
    std::string link;             ///< "loopback", "200mbit"
    bool paced = false;
    std::optional<double> limit;  ///< of the MAPE, 0.06: 6 %
};

std::string validationText(const ValidationReport& report);
/// "format": "ringside-validation"; docs/reference/validation.schema.json.
Json validationJson(const ValidationReport& report);

}  // namespace ringside
