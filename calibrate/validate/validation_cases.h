// Validation cases: which steps are validated: models × strategies, each a scenario of its own.
#pragma once

#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"

namespace ringside {

struct ValidationCase {
    std::string strategy;  ///< as given, with its settings: "ddp:bucket_mb=1"
    std::string model;
    int ranks = 1;
    Json document;         ///< a scenario without hardware and profile
};

/// `strategies`: names, each with settings behind colons ("ddp:bucket_mb=1:grad_accum=2"); empty: those of validationStrategies.
/// `models`: names of validation models, "single" and "several" for all of a list, or files: a model configuration or a scenario;
/// empty: the list for so many ranks. A case of the strategy "single" has one rank, others `ranks`.
/// Fails (bad input) on names that are not known and on files that cannot be read.
Result<std::vector<ValidationCase>> validationCases(const std::vector<std::string>& strategies, const std::vector<std::string>& models, int ranks);

}  // namespace ringside
