// A played Schedule as a Trace, with the same task ids that the executor writes.
#pragma once

#include "sim/player/memory_tracker.h"
#include "sim/player/player.h"
#include "traces/analysis/breakdown.h"
#include "traces/trace.h"

namespace ringside {

/// Tracks for the first rank of each class. `memory` (of `memoryClass`) may be null.
Trace traceOf(const Schedule& schedule, const Prices& prices, const Timeline& timeline, const MemoryReport* memory = nullptr, std::size_t memoryClass = 0);

/// What one class did when, for its breakdown: as the trace has it, without making one.
RankActivity activityOf(const Schedule& schedule, const Prices& prices, const Timeline& timeline, std::size_t rankClass);

}  // namespace ringside
