// A comparison as text for people: the sentence first, then what was changed and what came of it.
#pragma once

#include <string>

#include "sim/study/comparison.h"

namespace ringside {

/// `a` and `b` name the two sides.
std::string comparisonText(const Comparison& comparison, const std::string& a, const std::string& b, bool color);

}  // namespace ringside
