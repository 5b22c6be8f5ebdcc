#include "gui/compare/deltas.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "traces/analysis/layer_names.h"
#include "traces/analysis/pairing.h"

namespace ringside::gui {
namespace {

bool counts(const Trace& trace, std::size_t i, const TimeRange& range) {
    return trace.category[i] != SliceCategory::Wait && trace.category[i] != SliceCategory::Marker && range.contains(trace.start[i]);
}

}  // namespace

Deltas deltasOf(const Trace& upper, const TimeRange& upperRange, const Trace& lower, const TimeRange& lowerRange, bool layersTogether) {
    Deltas deltas;
    const RankPairs ranks = pairedRanks(upper, lower);
    const bool oneSchedule = areOfOneSchedule(upper, lower, ranks);
    std::map<std::int64_t, std::size_t> placeAbove, placeBelow;  // of ranks, among the pairs
    for (std::size_t p = 0; p < ranks.size(); ++p) {
        placeAbove[ranks[p].first] = placeBelow[ranks[p].second] = p;
        if (ranks[p].first == ranks[p].second) deltas.ranks.push_back(ranks[p].first);
    }
    std::unordered_map<std::string, std::size_t> rowOf;
    const auto shownNames = [&](const Trace& trace) {
        std::vector<std::string> names = trace.names;
        if (layersTogether)
            for (std::string& name : names) name = withoutNumbers(name);
        return names;
    };
    const std::vector<std::string> upperNames = shownNames(upper), lowerNames = shownNames(lower);
    const auto rowNamed = [&](const std::string& name, SliceCategory category) {
        const auto [at, isNew] = rowOf.try_emplace(name, deltas.rows.size());
        if (isNew) deltas.rows.push_back({name, category, {}, {}, {}, {}});
        return at->second;
    };
    std::map<std::pair<std::size_t, std::int64_t>, std::size_t> byTask;  // (place of the rank, task) → row
    for (std::size_t i = 0; i < upper.size(); ++i) {
        const auto place = placeAbove.find(upper.tracks[upper.track[i]].rank);
        if (place == placeAbove.end() || !counts(upper, i, upperRange)) continue;
        const std::size_t row = rowNamed(upperNames[upper.name[i]], upper.category[i]);
        deltas.rows[row].upper.push_back(upper.duration[i]);
        deltas.rows[row].before += upper.duration[i];
        if (oneSchedule && upper.task[i] >= 0) byTask[{place->second, upper.task[i]}] = row;
    }
    for (std::size_t i = 0; i < lower.size(); ++i) {
        const auto place = placeBelow.find(lower.tracks[lower.track[i]].rank);
        if (place == placeBelow.end() || !counts(lower, i, lowerRange)) continue;
        const auto task = lower.task[i] < 0 ? byTask.end() : byTask.find({place->second, lower.task[i]});
        if (task != byTask.end()) ++deltas.joinedByTask;
        const std::size_t row = task != byTask.end() ? task->second : rowNamed(lowerNames[lower.name[i]], lower.category[i]);
        deltas.rows[row].lower.push_back(lower.duration[i]);
        deltas.rows[row].after += lower.duration[i];
    }
    std::stable_sort(deltas.rows.begin(), deltas.rows.end(), [](const DeltaRow& a, const DeltaRow& b) {
        return std::abs(a.change().picoseconds()) > std::abs(b.change().picoseconds());
    });
    return deltas;
}

TimeRange stepRange(const Trace& trace, std::int64_t rank, std::size_t index) {
    const Steps steps = stepsOf(trace, rank);
    if (steps.steps.empty()) return {Time(), trace.end()};
    const Step& step = steps.steps[std::min(index, steps.steps.size() - 1)];
    return {step.begin, step.end};
}

PairedHistogram pairedHistogram(const DeltaRow& row, std::size_t bins) {
    PairedHistogram histogram;
    histogram.upper.assign(bins, 0);
    histogram.lower.assign(bins, 0);
    if (row.upper.empty() && row.lower.empty()) return histogram;
    histogram.least = Time::max();
    for (const std::vector<Time>* side : {&row.upper, &row.lower})
        for (const Time duration : *side) {
            histogram.least = std::min(histogram.least, duration);
            histogram.most = std::max(histogram.most, duration);
        }
    const double width = std::max(1.0, static_cast<double>((histogram.most - histogram.least).picoseconds()) / static_cast<double>(bins));
    const auto fill = [&](const std::vector<Time>& side, std::vector<std::int64_t>& into) {
        for (const Time duration : side)
            ++into[std::min(bins - 1, static_cast<std::size_t>(static_cast<double>((duration - histogram.least).picoseconds()) / width))];
    };
    fill(row.upper, histogram.upper);
    fill(row.lower, histogram.lower);
    return histogram;
}

}  // namespace ringside::gui
