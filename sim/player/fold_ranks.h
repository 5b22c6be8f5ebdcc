// Folding: ranks that cannot be told apart are played once. unfoldRanks undoes it, for the property test that both agree.
#pragma once

#include "sim/schedule/schedule.h"

namespace ringside {

/// The same Schedule with one class per rank.
Schedule unfoldRanks(const Schedule& schedule);

}  // namespace ringside
