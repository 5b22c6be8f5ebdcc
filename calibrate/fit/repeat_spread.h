// Repeat spread: what another calibration of the same machine may differ by, where repetitions within one do not show it.
// docs/models/fits.md.
#pragma once

#include <vector>

#include "model/cost/profile.h"

namespace ringside {

/// A table's points were timed by few generations of processes, two of which may agree by chance: no point's spread is below the root
/// mean square of all.
void shareSpread(std::vector<GemmSample>& table);
void shareSpread(std::vector<CollectivePoint>& curve);

/// Each kernel's time has a task's share of the step's overhead in it, known to so many seconds. It is the same share for all of them.
void addTaskSpread(Profile& profile, double seconds);

}  // namespace ringside
