// Pareto front of time and money: what no other choice beats in one without losing in the other.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ringside {

/// Both are better when smaller; the units are the caller's.
struct Tradeoff {
    double time = 0, cost = 0;

    bool operator==(const Tradeoff&) const = default;
};

/// `a` is at least as good as `b` in both and better in one.
constexpr bool dominates(const Tradeoff& a, const Tradeoff& b) { return a.time <= b.time && a.cost <= b.cost && (a.time < b.time || a.cost < b.cost); }

/// Indices of the points that no other dominates, by time, then cost, then index. Equal points do not dominate each other:
/// all of them stay. O(n log n). REQUIRES: no NaN.
std::vector<std::size_t> paretoFront(std::span<const Tradeoff> points);

}  // namespace ringside
