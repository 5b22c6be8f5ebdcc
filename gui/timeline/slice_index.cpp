#include "gui/timeline/slice_index.h"

#include <algorithm>
#include <array>
#include <utility>

#include "traces/analysis/lanes.h"

namespace ringside::gui {
namespace {

/// First i in [0, n) for which `after(i)` holds, or n; `after` is monotonic.
template <class Predicate>
std::size_t firstWhere(std::size_t n, Predicate after) {
    std::size_t low = 0, high = n;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (after(middle)) high = middle;
        else low = middle + 1;
    }
    return low;
}

constexpr std::size_t kCategories = 7;

/// Sums up to kFan pieces, each (begin, end, covered, category, name), into one group.
template <class Piece>
SliceGroup sumUp(std::size_t first, std::size_t last, Piece piece) {
    std::array<std::int64_t, kCategories> covered{};
    std::array<std::pair<std::int64_t, std::uint32_t>, kCategories> longest{};
    SliceGroup group;
    for (std::size_t i = first; i < last; ++i) {
        const SliceGroup part = piece(i);
        if (i == first) group.begin = part.begin;
        group.end = std::max(group.end, part.end);
        group.covered += part.covered;
        const auto c = static_cast<std::size_t>(part.category);
        covered[c] += part.covered.picoseconds() + 1;  // an instant is more than nothing
        if (part.covered.picoseconds() >= longest[c].first) longest[c] = {part.covered.picoseconds(), part.name};
    }
    const auto most = static_cast<std::size_t>(std::max_element(covered.begin(), covered.end()) - covered.begin());
    group.category = static_cast<SliceCategory>(most);
    group.name = longest[most].second;
    return group;
}

}  // namespace

SliceRow::SliceRow(const Trace& trace, std::uint32_t first, std::uint32_t count) : first_(first), count_(count) { buildPyramid(trace); }

SliceRow::SliceRow(const Trace& trace, std::vector<std::uint32_t> slices) : count_(static_cast<std::uint32_t>(slices.size())), slices_(std::move(slices)) { buildPyramid(trace); }

void SliceRow::buildPyramid(const Trace& trace) {
    std::size_t below = count_;
    while (below > kFan) {
        const std::size_t groups = (below + kFan - 1) / kFan;
        std::vector<SliceGroup> level(groups);
        for (std::size_t g = 0; g < groups; ++g) {
            const std::size_t first = g * kFan, last = std::min(first + kFan, below);
            if (levels_.empty())
                level[g] = sumUp(first, last, [&](std::size_t i) {
                    const std::uint32_t s = slice(i);
                    return SliceGroup{trace.start[s], trace.start[s] + trace.duration[s], trace.duration[s], trace.category[s], trace.name[s]};
                });
            else level[g] = sumUp(first, last, [&](std::size_t i) { return levels_.back()[i]; });
        }
        levels_.push_back(std::move(level));
        below = groups;
    }
}

std::size_t SliceRow::firstEndingAfter(const Trace& trace, Time t) const {
    return firstWhere(count_, [&](std::size_t i) { return trace.start[slice(i)] + trace.duration[slice(i)] > t; });
}

std::size_t SliceRow::firstStartingFrom(const Trace& trace, Time t) const {
    return firstWhere(count_, [&](std::size_t i) { return trace.start[slice(i)] >= t; });
}

std::optional<std::size_t> SliceRow::positionOf(std::uint32_t wanted) const {
    if (slices_.empty()) return wanted >= first_ && wanted - first_ < count_ ? std::optional<std::size_t>(wanted - first_) : std::nullopt;
    const auto it = std::lower_bound(slices_.begin(), slices_.end(), wanted);
    if (it == slices_.end() || *it != wanted) return std::nullopt;
    return static_cast<std::size_t>(it - slices_.begin());
}

SliceIndex::SliceIndex(const Trace& trace) {
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        const auto first = static_cast<std::uint32_t>(trace.firstSlice(t)), last = static_cast<std::uint32_t>(trace.firstSlice(t + 1));
        bool flat = true;
        for (std::uint32_t i = first + 1; i < last && flat; ++i) flat = trace.start[i - 1] + trace.duration[i - 1] <= trace.start[i];
        if (flat) {
            rows_.emplace_back(trace, first, last - first);
        } else {
            const std::vector<std::uint32_t> lanes = nestingLanes(trace, t);
            // Per lane: the ends of the slices around the current instant; how many there are is the depth.
            std::vector<std::vector<Time>> open;
            std::vector<std::vector<std::vector<std::uint32_t>>> rows;
            for (std::uint32_t i = first; i < last; ++i) {
                const std::size_t lane = lanes[i - first];
                if (lane >= open.size()) open.resize(lane + 1), rows.resize(lane + 1);
                std::vector<Time>& ends = open[lane];
                while (!ends.empty() && ends.back() <= trace.start[i]) ends.pop_back();
                const std::size_t depth = ends.size();
                if (depth >= rows[lane].size()) rows[lane].resize(depth + 1);
                rows[lane][depth].push_back(i);
                ends.push_back(trace.start[i] + trace.duration[i]);
            }
            for (std::vector<std::vector<std::uint32_t>>& lane : rows)
                for (std::vector<std::uint32_t>& slices : lane)
                    if (!slices.empty()) rows_.emplace_back(trace, std::move(slices));
        }
        firstRow_.push_back(rows_.size());
    }
}

std::size_t SliceIndex::rowOf(const Trace& trace, std::uint32_t slice) const {
    const std::span<const SliceRow> all = rows(trace.track[slice]);
    for (std::size_t r = 0; r < all.size(); ++r)
        if (all[r].positionOf(slice)) return r;
    return 0;
}

}  // namespace ringside::gui
