// A prediction as text for people: one screen, in plain words.
#pragma once

#include <string>

#include "sim/prediction.h"

namespace ringside {

std::string predictionText(const Scenario& scenario, const Prediction& prediction, bool color);
std::string memoryText(const Scenario& scenario, const Prediction& prediction, bool color);

}  // namespace ringside
