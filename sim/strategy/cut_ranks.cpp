#include "sim/strategy/cut_ranks.h"

#include <algorithm>

namespace ringside {
namespace {

/// How many ranks of the set are below `at`.
std::int64_t countBelow(const RankSet& ranks, std::int64_t at) {
    return at <= ranks.first ? 0 : std::min(ranks.count, (at - ranks.first + ranks.stride - 1) / ranks.stride);
}

}  // namespace

void cutClassesAt(std::vector<ProgramPart>& parts, std::int64_t at) {
    for (ProgramPart& part : parts) {
        std::vector<RankSet> cut;
        for (const RankSet& ranks : part.ranks) {
            const std::int64_t below = countBelow(ranks, at);
            if (below > 0) cut.push_back({ranks.first, ranks.stride, below});
            if (below < ranks.count) cut.push_back({ranks.at(below), ranks.stride, ranks.count - below});
        }
        part.ranks = std::move(cut);
    }
}

void giveOwnPrograms(std::vector<ProgramPart>& parts, std::int64_t end) {
    cutClassesAt(parts, end);
    std::vector<ProgramPart> apart, others;
    for (const ProgramPart& part : parts) {
        ProgramPart inside = part, outside = part;
        std::erase_if(inside.ranks, [&](const RankSet& ranks) { return ranks.first >= end; });
        std::erase_if(outside.ranks, [&](const RankSet& ranks) { return ranks.first < end; });
        if (!inside.ranks.empty()) apart.push_back(std::move(inside));
        if (!outside.ranks.empty()) others.push_back(std::move(outside));
    }
    parts = std::move(apart);
    parts.insert(parts.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
}

void giveEachRankAProgram(std::vector<ProgramPart>& parts) {
    std::vector<ProgramPart> apart;
    for (const ProgramPart& part : parts)
        for (const RankSet& ranks : part.ranks)
            for (std::int64_t i = 0; i < ranks.count; ++i) {
                apart.push_back(part);
                apart.back().ranks = {RankSet{ranks.at(i), 1, 1}};
            }
    parts = std::move(apart);
}

}  // namespace ringside
