// Two calibrations side by side, as text for people.
#pragma once

#include <string>

#include "calibrate/fit/profile_agreement.h"

namespace ringside {

/// `a` and `b` name the two sides.
std::string agreementText(const ProfileAgreement& agreement, const std::string& a, const std::string& b);

}  // namespace ringside
