// Validation against PyTorch, where it is installed: the same cases, but the run is the framework's own.
//
// Compute is calibrated by one single-process run of the same model at another batch size: one factor between PyTorch's kernels and
// the profile's. Communication is predicted from the profile; a reduce-scatter is an all-reduce, as PyTorch's Gloo does it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/validate/step_validation.h"

namespace ringside {

/// The version of the torch that python3 imports. Fails (missing capability) where there is none, saying what to install.
Result<std::string> torchVersion();

/// What PyTorch has of our strategies: DDP with three bucket sizes, FSDP2, ZeroRedundancyOptimizer.
std::vector<std::string> torchStrategies();

/// Rows without phases and memory; `communication` is the sum of `gloo:*` events of a step of rank 0, waiting for peers included.
/// Cases other than GPT-2-like models and MLPs, or of other strategies, are skipped. Fails as torchVersion and validateSteps do.
/// REQUIRES: options.ranks.localRanks > 0.
Result<StepValidation> validateAgainstTorch(const std::vector<ValidationCase>& cases, const StepValidationOptions& options, const Catalogs& catalogs, const ValidationProgress& progress);

}  // namespace ringside
