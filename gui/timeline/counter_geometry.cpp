#include "gui/timeline/counter_geometry.h"

#include <algorithm>
#include <cmath>

namespace ringside::gui {
namespace {
constexpr std::size_t kFan = 16;
}

CounterIndex::CounterIndex(const CounterSeries& counter) {
    const std::size_t series = counter.series.size();
    sums_.resize(counter.at.size());
    for (std::size_t i = 0; i < sums_.size(); ++i) {
        for (std::size_t s = 0; s < series; ++s) sums_[i] += counter.values[i * series + s];
        largest_ = std::max(largest_, sums_[i]);
    }
    std::size_t below = sums_.size();
    while (below > kFan) {
        const std::size_t groups = (below + kFan - 1) / kFan;
        std::vector<std::uint32_t> level(groups);
        for (std::size_t g = 0; g < groups; ++g) {
            const auto at = [&](std::size_t i) { return levels_.empty() ? static_cast<std::uint32_t>(i) : levels_.back()[i]; };
            std::uint32_t best = at(g * kFan);
            for (std::size_t i = g * kFan + 1; i < std::min((g + 1) * kFan, below); ++i)
                if (sums_[at(i)] > sums_[best]) best = at(i);
            level[g] = best;
        }
        levels_.push_back(std::move(level));
        below = groups;
    }
}

std::size_t CounterIndex::largestIn(std::size_t first, std::size_t last) const {
    std::size_t best = first;
    const auto take = [&](std::size_t i) {
        if (sums_[i] > sums_[best]) best = i;
    };
    while (first < last) {
        std::size_t span = 1, level = 0;
        while (level < levels_.size() && first % (span * kFan) == 0 && first + span * kFan <= last) span *= kFan, ++level;
        take(level == 0 ? first : levels_[level - 1][first / span]);
        first += span;
    }
    return best;
}

std::int64_t sampleAt(const CounterSeries& counter, Time t) {
    return std::upper_bound(counter.at.begin(), counter.at.end(), t) - counter.at.begin() - 1;
}

void counterColumns(const CounterSeries& counter, const CounterIndex& index, const TimeAxis& axis, std::vector<std::int64_t>& out) {
    const auto width = static_cast<std::size_t>(std::ceil(axis.width()));
    out.assign(width, -1);
    std::int64_t inForce = sampleAt(counter, axis.window().begin);
    for (std::size_t x = 0; x < width; ++x) {
        const std::int64_t last = sampleAt(counter, axis.toTime(static_cast<double>(x) + 1));
        if (last > inForce) {
            const auto first = static_cast<std::size_t>(std::max<std::int64_t>(inForce, 0));
            out[x] = static_cast<std::int64_t>(index.largestIn(first, static_cast<std::size_t>(last) + 1));
        } else {
            out[x] = last;
        }
        inForce = last;
    }
}

}  // namespace ringside::gui
