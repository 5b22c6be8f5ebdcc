// Memory events: PyTorch's "[memory]" instants as counters and as allocations with their lifetimes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/trace.h"

namespace ringside {

struct MemoryEvent {
    Time at;
    std::uint32_t track = 0;
    std::int64_t address = 0;
    Bytes bytes = 0;             ///< negative: freed
    Bytes allocated = -1, reserved = -1;  ///< in total afterwards; −1 if not said
    std::int32_t deviceType = 0, deviceId = -1;  ///< type 0 is the host
    bool hasAddress = false;
};

MemoryEvent memoryEventFromArgs(std::string_view args);

/// Adds to the trace, for each device, counters "memory allocated" and "memory reserved" ("host memory …" for the host), and one
/// Allocation per pair of events with the same address, named after the operator that asked for it. What was allocated before
/// the trace is not known by address and is left out. `events` come in any order. Returns frees of unknown addresses.
std::int64_t addMemoryEvents(Trace& trace, std::int64_t rank, std::vector<MemoryEvent> events);

}  // namespace ringside
