// Defaults of the configuration classes of transformers, by model type (src/transformers/models/*/configuration_*.py), together with
// what the model's code fixes: which biases exist, which norm, whether the MLP is gated.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/workload/model_spec.h"

namespace ringside {

/// Sizes that the class derives (key/value heads, head size, feed-forward size) are 0. Nothing for a type that is not supported.
std::optional<TransformerSpec> transformerDefaults(std::string_view modelType);

std::vector<std::string> transformerModelTypes();

}  // namespace ringside
