// Pairing: which ranks, steps and tasks of two traces are the same thing. What every comparison of traces goes by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "traces/analysis/steps.h"
#include "traces/trace.h"

namespace ringside {

/// Of A and of B.
using RankPairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Ranks that both have, ascending; where there is none, the first of each. Empty only if a trace has no rank.
RankPairs pairedRanks(const Trace& a, const Trace& b);

/// Whether task ids join the two: each schedule numbers its tasks for itself, so both sides must have the same ids and each of them be
/// the same kind of work (predicted and measured, whatever they call it), or nine of ten ids carry the same name. O(n log n).
bool areOfOneSchedule(const Trace& a, const Trace& b, const RankPairs& ranks);

/// Places of steps that belong together: of the same number if both are marked and share some, else from the first on.
std::vector<std::pair<std::size_t, std::size_t>> alignedSteps(const Steps& a, const Steps& b);

}  // namespace ringside
