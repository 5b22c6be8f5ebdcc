#include "traces/analysis/lanes.h"

namespace ringside {

std::vector<std::uint32_t> nestingLanes(const Trace& trace, std::size_t t) {
    const std::size_t first = trace.firstSlice(t), last = trace.firstSlice(t + 1);
    std::vector<std::uint32_t> lanes;
    lanes.reserve(last - first);
    std::vector<std::vector<Time>> open;  // per lane: ends of the slices around the current instant, outermost first
    for (std::size_t i = first; i < last; ++i) {
        const Time begin = trace.start[i], end = begin + trace.duration[i];
        std::uint32_t lane = 0;
        for (;; ++lane) {
            if (lane == open.size()) open.emplace_back();
            std::vector<Time>& ends = open[lane];
            while (!ends.empty() && ends.back() <= begin) ends.pop_back();
            if (ends.empty() || end <= ends.back()) break;
        }
        open[lane].push_back(end);
        lanes.push_back(lane);
    }
    return lanes;
}

}  // namespace ringside
