#include "traces/analysis/diff.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "traces/analysis/pairing.h"

namespace ringside {
namespace {

double percentOf(double a, double b) {
    if (a == 0) return b == 0 ? 0 : std::numeric_limits<double>::infinity();
    return 100 * (b - a) / a;
}

/// The slices of one rank in one step, with the key that finds their partner.
template <class Visit>
void forEachSlice(const Trace& trace, std::int64_t rank, const Step& step, Visit visit) {
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        if (trace.tracks[t].rank != rank) continue;
        const auto from = trace.start.begin() + static_cast<std::ptrdiff_t>(trace.firstSlice(t)), to = trace.start.begin() + static_cast<std::ptrdiff_t>(trace.firstSlice(t + 1));
        for (auto it = std::lower_bound(from, to, step.begin); it != to && *it < step.end; ++it) {
            const auto i = static_cast<std::uint32_t>(it - trace.start.begin());
            if (trace.category[i] != SliceCategory::Marker) visit(i);
        }
    }
}

Breakdown plus(const Breakdown& a, const Breakdown& b) {
    return {a.step + b.step, a.compute + b.compute, a.optimizer + b.optimizer, a.communicationHidden + b.communicationHidden, a.communicationExposed + b.communicationExposed,
            a.host + b.host, a.idle + b.idle, a.copyExposed + b.copyExposed};
}

Breakdown over(const Breakdown& a, std::int64_t n) {
    const auto part = [n](Time t) { return Time::fromPicoseconds(t.picoseconds() / std::max<std::int64_t>(n, 1)); };
    return {part(a.step), part(a.compute), part(a.optimizer), part(a.communicationHidden), part(a.communicationExposed), part(a.host), part(a.idle), part(a.copyExposed)};
}

}  // namespace

std::string_view nameOf(DiffJoin join) { return join == DiffJoin::Tasks ? "task ids" : "names"; }

double NameDelta::percent() const { return percentOf(secondsA, secondsB); }
double TraceDiff::stepPercent() const { return percentOf(stepSecondsA, stepSecondsB); }

TraceDiff diffTraces(const Trace& a, const Trace& b) {
    TraceDiff diff;
    const RankPairs ranks = pairedRanks(a, b);
    if (areOfOneSchedule(a, b, ranks)) diff.join = DiffJoin::Tasks;

    // Names of both, by text.
    std::map<std::pair<std::string_view, SliceCategory>, std::size_t> rows;
    std::vector<NameDelta> names;
    const auto rowOf = [&](const Trace& trace, std::uint32_t i) -> NameDelta& {
        const auto [it, isNew] = rows.try_emplace({trace.names[trace.name[i]], trace.category[i]}, names.size());
        if (isNew) {
            names.emplace_back();
            names.back().name = trace.names[trace.name[i]];
            names.back().category = trace.category[i];
        }
        return names[it->second];
    };

    std::int64_t cells = 0;  // of steps × ranks
    for (const auto& [rankA, rankB] : ranks) {
        const Steps ofA = stepsOf(a, rankA), ofB = stepsOf(b, rankB);
        std::vector<std::pair<Step, Step>> steps;
        for (const auto& [i, k] : alignedSteps(ofA, ofB)) steps.emplace_back(ofA.steps[i], ofB.steps[k]);
        if (diff.steps.empty()) diff.steps = steps;
        diff.ranks.push_back(rankA);
        for (const auto& [stepA, stepB] : steps) {
            ++cells;
            diff.stepSecondsA += stepA.length().seconds();
            diff.stepSecondsB += stepB.length().seconds();
            diff.breakdownA = plus(diff.breakdownA, breakdownOf(a, rankA, stepA.begin, stepA.end));
            diff.breakdownB = plus(diff.breakdownB, breakdownOf(b, rankB, stepB.begin, stepB.end));
            // A's slices wait by key for B's; the n-th of a key meets the n-th.
            using Key = std::tuple<TrackKind, std::int64_t, std::string_view>;
            std::map<Key, std::vector<std::uint32_t>> waiting;
            const auto keyOf = [&](const Trace& trace, std::uint32_t i) {
                const TrackKind kind = trace.tracks[trace.track[i]].kind;
                if (diff.join == DiffJoin::Tasks && trace.task[i] >= 0) return Key{kind, trace.task[i], {}};
                return Key{kind, -1, trace.names[trace.name[i]]};
            };
            forEachSlice(a, rankA, stepA, [&](std::uint32_t i) {
                NameDelta& row = rowOf(a, i);
                row.countA += 1;
                row.secondsA += a.duration[i].seconds();
                waiting[keyOf(a, i)].push_back(i);
            });
            for (auto& [key, slices] : waiting) std::stable_sort(slices.begin(), slices.end(), [&](std::uint32_t x, std::uint32_t y) { return a.start[x] > a.start[y]; });
            std::vector<std::uint32_t> slicesOfB;
            forEachSlice(b, rankB, stepB, [&](std::uint32_t i) {
                NameDelta& row = rowOf(b, i);
                row.countB += 1;
                row.secondsB += b.duration[i].seconds();
                slicesOfB.push_back(i);
            });
            std::stable_sort(slicesOfB.begin(), slicesOfB.end(), [&](std::uint32_t x, std::uint32_t y) { return b.start[x] < b.start[y]; });
            for (const std::uint32_t i : slicesOfB) {
                const auto it = waiting.find(keyOf(b, i));
                if (it == waiting.end() || it->second.empty()) {
                    ++diff.onlyB;
                    continue;
                }
                const std::uint32_t partner = it->second.back();
                it->second.pop_back();
                diff.pairs.push_back({partner, i, b.duration[i] - a.duration[partner]});
            }
            for (const auto& [key, slices] : waiting) diff.onlyA += std::ssize(slices);
        }
    }
    if (cells > 0) {
        const double n = static_cast<double>(cells);
        diff.stepSecondsA /= n;
        diff.stepSecondsB /= n;
        diff.breakdownA = over(diff.breakdownA, cells);
        diff.breakdownB = over(diff.breakdownB, cells);
        for (NameDelta& row : names) {
            row.countA /= n;
            row.countB /= n;
            row.secondsA /= n;
            row.secondsB /= n;
        }
    }
    if (!diff.steps.empty()) diff.shift = diff.steps.front().first.begin - diff.steps.front().second.begin;
    std::stable_sort(names.begin(), names.end(), [](const NameDelta& x, const NameDelta& y) { return std::fabs(x.seconds()) > std::fabs(y.seconds()); });
    diff.names = std::move(names);
    std::sort(diff.pairs.begin(), diff.pairs.end(), [](const SlicePair& x, const SlicePair& y) { return x.a < y.a; });
    return diff;
}

}  // namespace ringside
