// A played Schedule as a Trace, with the same task ids that the executor writes.
#pragma once

#include "sim/player/memory_tracker.h"
#include "sim/player/player.h"
#include "traces/trace.h"

namespace ringside {

/// Bare: times, tracks and categories, enough for a breakdown. Full: names, flows, launches, memory counters.
enum class TraceDetail : std::uint8_t { Bare, Full };

/// Tracks for the first rank of each class. `memory` (of `memoryClass`) may be null.
Trace traceOf(const Schedule& schedule, const Prices& prices, const Timeline& timeline, TraceDetail detail, const MemoryReport* memory = nullptr,
              std::size_t memoryClass = 0);

}  // namespace ringside
