// playAsync: a Schedule whose servers let workers go at their own pace. The program is played once to learn when its messages
// get ready, all workers are simulated for many iterations (async_workers.h), and the program is played again with the mean
// times of its messages, to be looked at.
#pragma once

#include "sim/player/player.h"

namespace ringside {

/// REQUIRES: the schedule has servers whose discipline is not Sync.
Result<Timeline> playAsync(const Schedule& schedule, const Prices& prices, const PlayOptions& options);

}  // namespace ringside
