// A run for real, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/execute/real_run.h"
#include "sim/prediction.h"

namespace ringside {

struct RunReport {
    const Scenario* scenario = nullptr;
    const RealRun* run = nullptr;
    const Prediction* prediction = nullptr;  ///< null where there is no profile to predict with
    std::optional<double> differenceFromSingle;
    bool paced = false;
    std::vector<std::string> notes;          ///< what to know before trusting the figures
};

std::string runText(const RunReport& report);
/// "format": "ringside-run".
Json runJson(const RunReport& report);

}  // namespace ringside
