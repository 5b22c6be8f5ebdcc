// Cutting ranks: which of them run a program of their own, and where classes end.
#pragma once

#include <vector>

#include "sim/strategy/device_mesh.h"

namespace ringside {

/// No class will hold ranks on both sides of `at`.
void cutClassesAt(std::vector<ProgramPart>& parts, std::int64_t at);

/// The ranks below `end` get programs of their own, which come first.
void giveOwnPrograms(std::vector<ProgramPart>& parts, std::int64_t end);

/// Every rank gets a program of its own.
void giveEachRankAProgram(std::vector<ProgramPart>& parts);

}  // namespace ringside
