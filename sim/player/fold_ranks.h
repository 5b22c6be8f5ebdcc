// Folding: ranks that cannot be told apart are played once. unfoldRanks undoes it, for the property test that both agree.
#pragma once

#include "sim/schedule/schedule.h"

namespace ringside {

/// The same Schedule with one class per rank.
Schedule unfoldRanks(const Schedule& schedule);

/// The same Schedule with `rank` in a class of its own and its former class cut in two around it. Exact where every
/// communicator spans the world; with more axes the ranks of its class wait for it as if they shared its groups.
Schedule isolateRank(const Schedule& schedule, std::int64_t rank);

}  // namespace ringside
