// A plan in words: the verdict, the front, and why the others lose.
#pragma once

#include <string>

#include "sim/study/plan.h"

namespace ringside {

/// No line is longer than 110 columns, apart from the command that repeats the winner.
std::string planText(const PlanQuery& query, const Plan& plan, bool color);

/// The `ringside predict` command line of a candidate, where flags can say all of it; else "" (a cluster file, inline models).
std::string predictCommand(const Candidate& candidate);

}  // namespace ringside
