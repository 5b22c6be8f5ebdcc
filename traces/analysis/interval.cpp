#include "traces/analysis/interval.h"

#include <algorithm>

namespace ringside {
namespace {

/// Calls visit(begin, end) for every maximal piece of a ∩ b, in order.
template <class Visit>
void forEachCommonPiece(std::span<const Interval> a, std::span<const Interval> b, Visit visit) {
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        const Time begin = std::max(a[i].begin, b[j].begin);
        const Time end = std::min(a[i].end, b[j].end);
        if (begin < end) visit(begin, end);
        if (a[i].end < b[j].end) ++i;
        else ++j;
    }
}

}  // namespace

IntervalSet unionOf(std::vector<Interval> intervals) {
    const auto earlier = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
    if (!std::is_sorted(intervals.begin(), intervals.end(), earlier)) std::sort(intervals.begin(), intervals.end(), earlier);
    // In place: the result is never longer than what was read.
    std::size_t size = 0;
    for (const Interval interval : intervals) {
        if (interval.begin >= interval.end) continue;
        if (size > 0 && interval.begin <= intervals[size - 1].end) intervals[size - 1].end = std::max(intervals[size - 1].end, interval.end);
        else intervals[size++] = interval;
    }
    intervals.resize(size);
    return intervals;
}

IntervalSet unionOf(std::span<const Interval> a, std::span<const Interval> b) {
    std::vector<Interval> both(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin(), [](const Interval& x, const Interval& y) { return x.begin < y.begin; });
    return unionOf(std::move(both));
}

Time lengthOf(std::span<const Interval> set) {
    Time sum;
    for (const Interval& interval : set) sum += interval.length();
    return sum;
}

IntervalSet intersection(std::span<const Interval> a, std::span<const Interval> b) {
    IntervalSet result;
    forEachCommonPiece(a, b, [&](Time begin, Time end) { result.push_back({begin, end}); });
    return result;
}

Time intersectionLength(std::span<const Interval> a, std::span<const Interval> b) {
    Time sum;
    forEachCommonPiece(a, b, [&](Time begin, Time end) { sum += end - begin; });
    return sum;
}

IntervalSet difference(std::span<const Interval> a, std::span<const Interval> b) {
    IntervalSet result;
    std::size_t j = 0;
    for (const Interval& interval : a) {
        Time begin = interval.begin;
        while (j < b.size() && b[j].end <= begin) ++j;
        // b[j] may reach into the next interval of a, so a second index walks on from it.
        for (std::size_t k = j; k < b.size() && b[k].begin < interval.end; ++k) {
            if (begin < b[k].begin) result.push_back({begin, b[k].begin});
            begin = std::max(begin, b[k].end);
        }
        if (begin < interval.end) result.push_back({begin, interval.end});
    }
    return result;
}

IntervalSet clip(std::span<const Interval> set, Time begin, Time end) {
    if (begin >= end) return {};
    const Interval window{begin, end};
    return intersection(set, {&window, 1});
}

}  // namespace ringside
