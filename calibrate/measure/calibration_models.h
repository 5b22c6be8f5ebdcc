// Calibration models: small models whose training steps hold the kernels that a calibration measures, at shapes spread over what
// people run on such a machine. They are not the ones that validation uses.
#pragma once

#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "sim/scenario.h"

namespace ringside {

enum class CalibrationEffort : std::uint8_t { Quick, Normal, Thorough, Trial };  ///< Trial: a few seconds, to see that it works; poor figures

struct CalibrationModel {
    std::string name;   ///< "gpt-256x4-s128-b4"
    Json document;      ///< a scenario for one rank
};

/// Steps of `ranks` ranks, for the kernels that only strategies have: into buckets and out of them, casts, sums.
std::vector<CalibrationModel> strategyModels(int ranks);

/// A few of the models below, of each kind, whose steps tell how fast the machine is (Profile::steps).
std::vector<CalibrationModel> referenceModels();

/// More effort, more models; each list but that of Trial begins with the smaller one's.
std::vector<CalibrationModel> calibrationModels(CalibrationEffort effort);

}  // namespace ringside
