// Hugging Face config.json → ModelSpec. The catalogue's entries use the same keys, so that one reader serves both.
//
// Keys nobody needs are ignored (a config.json holds many). A key that is missing takes the default of its configuration class
// (transformers, src/transformers/models/*/configuration_*.py); null means "derive" where the class derives it (head_dim,
// num_key_value_heads, n_inner) and "missing" elsewhere. A multimodal file is read from its text_config.
#pragma once

#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/workload/model_spec.h"

namespace ringside {

/// The error says which key is off, or lists the supported model types. The name is "name", "_name_or_path" or the model type.
Result<ModelSpec> modelFromHfConfig(const JsonCursor& config);

/// Values of "model_type" that can be read: those of transformers, and "vgg" and "mlp" of our own.
std::vector<std::string> supportedModelTypes();

}  // namespace ringside
