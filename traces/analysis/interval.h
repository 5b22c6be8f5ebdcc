// Interval: sets of instants as sorted, disjoint, half-open intervals [begin, end). Pure functions; all linear but unionOf,
// which sorts if it must. Every sum of slice times goes through these, so that overlapping slices never count twice.
#pragma once

#include <span>
#include <vector>

#include "model/base/units.h"

namespace ringside {

struct Interval {
    Time begin, end;
    Time length() const { return end - begin; }
    bool operator==(const Interval&) const = default;
};

/// Sorted, disjoint, not touching, none empty.
using IntervalSet = std::vector<Interval>;

/// The union of any intervals, in any order; empty and reversed ones count as nothing.
IntervalSet unionOf(std::vector<Interval> intervals);
IntervalSet unionOf(std::span<const Interval> a, std::span<const Interval> b);

// REQUIRES, for all below: the arguments are IntervalSets.
Time lengthOf(std::span<const Interval> set);
IntervalSet intersection(std::span<const Interval> a, std::span<const Interval> b);
Time intersectionLength(std::span<const Interval> a, std::span<const Interval> b);
/// a without b.
IntervalSet difference(std::span<const Interval> a, std::span<const Interval> b);
/// What lies in [begin, end).
IntervalSet clip(std::span<const Interval> set, Time begin, Time end);

}  // namespace ringside
