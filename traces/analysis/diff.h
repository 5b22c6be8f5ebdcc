// Diff: two traces side by side: steps aligned, slices joined, what got longer and what shorter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/analysis/breakdown.h"
#include "traces/analysis/steps.h"
#include "traces/trace.h"

namespace ringside {

enum class DiffJoin : std::uint8_t {
    Tasks,  ///< of one schedule: predicted against measured, or the same step on other hardware
    Names,  ///< by track kind, name and which of them in its step it is
};
std::string_view nameOf(DiffJoin join);

/// All slices of one name in the aligned steps, per step and rank: totals are means.
struct NameDelta {
    std::string name;
    SliceCategory category = SliceCategory::Host;
    double countA = 0, countB = 0;      ///< per step and rank
    double secondsA = 0, secondsB = 0;  ///< per step and rank
    double seconds() const { return secondsB - secondsA; }
    /// Of A; +∞ where A had none.
    double percent() const;
};

/// Two slices that are the same thing.
struct SlicePair {
    std::uint32_t a = 0, b = 0;  ///< slices
    Time delta;                  ///< B − A
};

struct TraceDiff {
    DiffJoin join = DiffJoin::Names;
    std::vector<std::pair<Step, Step>> steps;  ///< aligned, of the first rank that both have
    Time shift;                                ///< added to B's times, its first aligned step begins with A's
    double stepSecondsA = 0, stepSecondsB = 0;  ///< means
    double stepPercent() const;                ///< (B − A) / A
    Breakdown breakdownA, breakdownB;          ///< means over aligned steps and ranks
    std::vector<NameDelta> names;              ///< the greatest difference first
    std::vector<SlicePair> pairs;              ///< by a
    std::int64_t onlyA = 0, onlyB = 0;         ///< slices of the aligned steps without a partner
    std::vector<std::int64_t> ranks;           ///< that both have
};

/// Ranks, steps and tasks belong together as pairing.h says; ranks that only one has are left out. Slices count to the step in which
/// they start; markers do not count. O(n log n).
TraceDiff diffTraces(const Trace& a, const Trace& b);

}  // namespace ringside
