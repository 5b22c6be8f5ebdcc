#include "sim/player/fold_ranks.h"

namespace ringside {

Schedule unfoldRanks(const Schedule& schedule) {
    Schedule unfolded = schedule;
    unfolded.classes.clear();
    for (const RankClass& rankClass : schedule.classes)
        for (std::int64_t i = 0; i < rankClass.ranks.count; ++i) unfolded.classes.push_back({rankClass.program, rankClass.nodeGroup, {rankClass.ranks.at(i), 1, 1}});
    return unfolded;
}

}  // namespace ringside
