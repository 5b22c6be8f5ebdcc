#include "sim/study/pareto.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ringside {

std::vector<std::size_t> paretoFront(std::span<const Tradeoff> points) {
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::tie(points[a].time, points[a].cost, a) < std::tie(points[b].time, points[b].cost, b);
    });
    // Walking from the fastest, a point stays only if it is cheaper than every faster one (or equal to the last that stayed).
    std::vector<std::size_t> front;
    for (const std::size_t i : order)
        if (front.empty() || points[i].cost < points[front.back()].cost || points[i] == points[front.back()]) front.push_back(i);
    return front;
}

}  // namespace ringside
