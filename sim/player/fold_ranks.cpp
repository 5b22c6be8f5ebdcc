#include "sim/player/fold_ranks.h"

namespace ringside {

Schedule unfoldRanks(const Schedule& schedule) {
    Schedule unfolded = schedule;
    unfolded.classes.clear();
    for (const RankClass& rankClass : schedule.classes)
        for (std::int64_t i = 0; i < rankClass.ranks.count; ++i) {
            RankClass alone = rankClass;
            alone.ranks = {rankClass.ranks.at(i), 1, 1};
            unfolded.classes.push_back(alone);
        }
    return unfolded;
}

Schedule isolateRank(const Schedule& schedule, std::int64_t rank) {
    Schedule isolated = schedule;
    isolated.classes.clear();
    for (const RankClass& rankClass : schedule.classes) {
        if (!rankClass.ranks.contains(rank)) {
            isolated.classes.push_back(rankClass);
            continue;
        }
        const RankSet& all = rankClass.ranks;
        const std::int64_t before = (rank - all.first) / all.stride;
        for (const RankSet& piece : {RankSet{all.first, all.stride, before}, RankSet{rank, 1, 1}, RankSet{rank + all.stride, all.stride, all.count - before - 1}}) {
            if (piece.count == 0) continue;
            RankClass part = rankClass;
            part.ranks = piece;
            isolated.classes.push_back(part);
        }
    }
    return isolated;
}

}  // namespace ringside
