// Validation models: small models that a CPU core steps in 20 to 400 ms, none of them one that calibration measures
// (calibrate/measure/calibration_models.h): a prediction of what was fitted would prove nothing.
#pragma once

#include <string>
#include <vector>

#include "model/base/json_cursor.h"

namespace ringside {

struct ValidationModel {
    std::string name;  ///< "gpt-320x3-s160-b3"
    Json document;     ///< a scenario without hardware and strategy
};

/// For one rank: several sizes each of MLP, transformer and ResNet.
std::vector<ValidationModel> singleRankModels();
/// For several ranks: fewer, with enough parameters that communication shows.
std::vector<ValidationModel> severalRankModels();
/// All of both, each once.
std::vector<ValidationModel> validationModels();

/// What is validated by default: "single" on one rank; elsewhere every strategy that averages gradients in each step, some with
/// settings ("ddp:bucket_mb=1").
std::vector<std::string> validationStrategies(int ranks);

}  // namespace ringside
