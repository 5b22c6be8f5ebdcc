#include "traces/analysis/enclosing.h"

#include <algorithm>
#include <numeric>

#include "model/base/check.h"

namespace ringside {

std::vector<std::uint32_t> enclosingSlices(const Trace& trace, std::span<const TrackPoint> points) {
    std::vector<std::uint32_t> order(points.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return points[a].track != points[b].track ? points[a].track < points[b].track : points[a].at < points[b].at;
    });
    std::vector<std::uint32_t> found(points.size(), kNoSlice);
    std::vector<std::uint32_t> open;  // those that may still be running, by start
    std::size_t next = 0, last = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
        const TrackPoint& point = points[order[k]];
        CHECK(point.track < trace.tracks.size());
        if (k == 0 || points[order[k - 1]].track != point.track) {
            open.clear();
            next = trace.firstSlice(point.track);
            last = trace.firstSlice(point.track + 1);
        }
        const auto endOf = [&](std::uint32_t i) { return trace.start[i] + trace.duration[i]; };
        for (; next < last && trace.start[next] <= point.at; ++next) {
            while (!open.empty() && endOf(open.back()) < trace.start[next]) open.pop_back();
            open.push_back(static_cast<std::uint32_t>(next));
        }
        while (!open.empty() && endOf(open.back()) < point.at) open.pop_back();
        // Where slices overlap without nesting, one that is over may lie below one that is not.
        for (auto it = open.rbegin(); it != open.rend() && found[order[k]] == kNoSlice; ++it)
            if (endOf(*it) >= point.at) found[order[k]] = *it;
    }
    return found;
}

std::vector<std::uint32_t> parentSlices(const Trace& trace, std::size_t t) {
    CHECK(t < trace.tracks.size());
    const std::size_t first = trace.firstSlice(t), last = trace.firstSlice(t + 1);
    std::vector<std::uint32_t> parents(last - first, kNoSlice), open;
    for (std::size_t i = first; i < last; ++i) {
        const Time end = trace.start[i] + trace.duration[i];
        while (!open.empty() && trace.start[open.back()] + trace.duration[open.back()] <= trace.start[i]) open.pop_back();
        for (auto it = open.rbegin(); it != open.rend(); ++it)
            if (trace.start[*it] + trace.duration[*it] >= end) {
                parents[i - first] = *it;
                break;
            }
        open.push_back(static_cast<std::uint32_t>(i));
    }
    return parents;
}

}  // namespace ringside
