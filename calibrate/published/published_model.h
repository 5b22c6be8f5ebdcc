// Published models: a source's model (a name, or its sizes) as the model of a scenario.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/published/records.h"
#include "model/base/json_cursor.h"
#include "model/base/result.h"

namespace ringside {

/// What kind of code trains it: this decides optimizer, dropout and the attention kernel where a source does not say.
enum class ModelStyle : std::uint8_t { ConvNet, Bert, Gpt, Mpt, Llama };

struct MappedModel {
    Json model;  ///< for "model" of a scenario: a catalogue name or a configuration
    ModelStyle style = ModelStyle::Llama;
    std::vector<std::string> assumed;  ///< what the source leaves open, and what was taken
};

/// Errors (bad input): the model is not supported, or a size is missing. Their message alone is a reason to show.
Result<MappedModel> modelOf(const PublishedModel& model);

}  // namespace ringside
