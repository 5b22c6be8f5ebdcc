// A multi-layer perceptron as a workload: linear layers with an activation between them and a cross-entropy at the end.
#pragma once

#include "model/workload/model_spec.h"

namespace ringside {

Result<void> validate(const MlpSpec& spec, const std::string& name);
/// REQUIRES: validate(spec) holds. Layers of one shape share a type, except the first, whose input needs no gradient.
Workload buildMlp(const MlpSpec& spec, const TrainingConfig& training);

}  // namespace ringside
