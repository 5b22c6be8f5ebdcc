// Validation against PyTorch, where it is installed: the same cases, but the run is the framework's own.
//
// Its pieces are measured apart from the steps that are validated. Compute: one single-process run of the same model at another batch size
// gives one factor between PyTorch's kernels and the profile's. Communication: its collectives by themselves over some sizes. What is
// predicted is how a step is put together from them; FSDP2 does without overlap there (fsdp2's overlap_comm).
#pragma once

#include <string>
#include <vector>

#include "calibrate/validate/step_validation.h"

namespace ringside {

/// What PyTorch has of our strategies: DDP with three bucket sizes, FSDP2, ZeroRedundancyOptimizer.
std::vector<std::string> torchStrategies();

/// Rows without phases and memory; `communication` is the sum of `gloo:*` events of a step of rank 0, waiting for peers included.
/// Cases other than GPT-2-like models and MLPs, or of other strategies, are skipped. Fails as torchVersion and validateSteps do.
/// REQUIRES: options.ranks.localRanks > 0.
Result<StepValidation> validateAgainstTorch(const std::vector<ValidationCase>& cases, const StepValidationOptions& options, const Catalogs& catalogs, const ValidationProgress& progress);

}  // namespace ringside
