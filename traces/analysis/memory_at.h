// Memory at an instant: how much of what was allocated, and which tensors were alive.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace ringside {

struct MemoryAt {
    Time at;
    std::vector<std::pair<std::string, Bytes>> categories;  ///< by the last sample of a "… by category" counter, else by the tensors
    Bytes allocated = 0;     ///< their sum, or the "allocated" counter
    Bytes reserved = 0;      ///< 0 if not known
    Bytes capacity = 0;      ///< 0 if not known
    std::vector<std::uint32_t> alive;  ///< indices into Trace::allocations, the largest first; empty if the trace has none
};

/// Of one rank's device. O(allocations + log samples).
MemoryAt memoryAt(const Trace& trace, std::int64_t rank, Time at);

/// When the rank's allocated memory was greatest: the first such sample; zero without counters. O(samples).
Time memoryPeak(const Trace& trace, std::int64_t rank);

}  // namespace ringside
