#include "traces/analysis/pairing.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace ringside {
namespace {

struct TaskWork {
    SliceCategory category;
    std::string_view name;
};
/// (place of the rank among the pairs, task) → what it is.
using Tasks = std::map<std::pair<std::size_t, std::int64_t>, TaskWork>;

Tasks tasksOf(const Trace& trace, const RankPairs& ranks, std::int64_t std::pair<std::int64_t, std::int64_t>::*side) {
    std::map<std::int64_t, std::size_t> places;
    for (std::size_t p = 0; p < ranks.size(); ++p) places[ranks[p].*side] = p;
    Tasks tasks;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        if (trace.task[i] < 0) continue;
        const auto place = places.find(trace.tracks[trace.track[i]].rank);
        if (place != places.end()) tasks.insert_or_assign({place->second, trace.task[i]}, TaskWork{trace.category[i], trace.names[trace.name[i]]});
    }
    return tasks;
}

}  // namespace

RankPairs pairedRanks(const Trace& a, const Trace& b) {
    const std::vector<std::int64_t> ofA = ranksOf(a), ofB = ranksOf(b);
    RankPairs pairs;
    for (const std::int64_t rank : ofA)
        if (std::binary_search(ofB.begin(), ofB.end(), rank)) pairs.emplace_back(rank, rank);
    if (pairs.empty() && !ofA.empty() && !ofB.empty()) pairs.emplace_back(ofA.front(), ofB.front());
    return pairs;
}

bool areOfOneSchedule(const Trace& a, const Trace& b, const RankPairs& ranks) {
    const Tasks ofA = tasksOf(a, ranks, &RankPairs::value_type::first), ofB = tasksOf(b, ranks, &RankPairs::value_type::second);
    std::size_t sameWork = 0, sameName = 0;
    for (const auto& [task, work] : ofA) {
        const auto other = ofB.find(task);
        if (other == ofB.end()) continue;
        sameWork += work.category == other->second.category;
        sameName += work.name == other->second.name;
    }
    const std::size_t most = std::max(ofA.size(), ofB.size());
    return most > 0 && (sameWork == most || 10 * sameName >= 9 * most);
}

std::vector<std::pair<std::size_t, std::size_t>> alignedSteps(const Steps& a, const Steps& b) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    if (a.source == StepSource::Marks && b.source == StepSource::Marks)
        for (std::size_t i = 0; i < a.steps.size(); ++i)
            for (std::size_t k = 0; k < b.steps.size(); ++k)
                if (a.steps[i].number == b.steps[k].number) pairs.emplace_back(i, k);
    if (pairs.empty())
        for (std::size_t k = 0; k < std::min(a.steps.size(), b.steps.size()); ++k) pairs.emplace_back(k, k);
    return pairs;
}

}  // namespace ringside
