#include "traces/import/memory_events.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "traces/analysis/enclosing.h"
#include "traces/import/event_values.h"

namespace ringside {
namespace {

/// Operators that only hand out memory: who called them is the better name.
bool onlyAllocates(std::string_view name) {
    return name.starts_with("aten::empty") || name == "aten::resize_" || name == "aten::zeros" || name == "aten::zeros_like" || name == "aten::new_empty";
}

std::uint32_t nameIndex(Trace& trace, const std::string& name) {
    const auto it = std::find(trace.names.rbegin(), trace.names.rend(), name);
    if (it != trace.names.rend()) return static_cast<std::uint32_t>(trace.names.rend() - it - 1);
    trace.names.push_back(name);
    return static_cast<std::uint32_t>(trace.names.size() - 1);
}

}  // namespace

MemoryEvent memoryEventFromArgs(std::string_view args) {
    MemoryEvent event;
    forEachMember(args, [&](std::string_view key, const JsonToken& value) {
        const auto number = wholeNumber(value);
        if (!number) return;
        if (key == "Addr") {
            event.address = *number;
            event.hasAddress = true;
        } else if (key == "Bytes") event.bytes = *number;
        else if (key == "Total Allocated") event.allocated = *number;
        else if (key == "Total Reserved") event.reserved = *number;
        else if (key == "Device Type") event.deviceType = static_cast<std::int32_t>(*number);
        else if (key == "Device Id") event.deviceId = static_cast<std::int32_t>(*number);
    });
    return event;
}

std::int64_t addMemoryEvents(Trace& trace, std::int64_t rank, std::vector<MemoryEvent> events) {
    if (events.empty()) return 0;
    std::stable_sort(events.begin(), events.end(), [](const MemoryEvent& a, const MemoryEvent& b) { return a.at < b.at; });

    // ---- who asked
    std::vector<TrackPoint> points;
    points.reserve(events.size());
    for (const MemoryEvent& event : events) points.push_back({event.track, event.at});
    const std::vector<std::uint32_t> around = enclosingSlices(trace, points);
    std::map<std::uint32_t, std::vector<std::uint32_t>> parentsByTrack;
    const std::uint32_t unnamed = nameIndex(trace, "allocation");
    const auto askerOf = [&](std::size_t e) {
        std::uint32_t slice = around[e];
        if (slice == kNoSlice) return unnamed;
        const std::uint32_t t = trace.track[slice];
        auto [it, isNew] = parentsByTrack.try_emplace(t);
        if (isNew) it->second = parentSlices(trace, t);
        const std::size_t first = trace.firstSlice(t);
        while (onlyAllocates(trace.names[trace.name[slice]]) && it->second[slice - first] != kNoSlice) slice = it->second[slice - first];
        return trace.name[slice];
    };

    // ---- lifetimes
    using Device = std::pair<std::int32_t, std::int32_t>;
    std::map<Device, std::unordered_map<std::int64_t, std::size_t>> alive;
    std::int64_t unknownFrees = 0;
    const std::uint32_t onDevice = nameIndex(trace, "device memory"), onHost = nameIndex(trace, "host memory");
    const std::size_t firstAllocation = trace.allocations.size();
    for (std::size_t e = 0; e < events.size(); ++e) {
        const MemoryEvent& event = events[e];
        if (!event.hasAddress || event.bytes == 0) continue;
        auto& known = alive[{event.deviceType, event.deviceId}];
        const auto it = known.find(event.address);
        if (it != known.end()) {
            trace.allocations[it->second].end = event.at;
            known.erase(it);
        } else if (event.bytes < 0) {
            ++unknownFrees;
        }
        if (event.bytes > 0) {
            known.emplace(event.address, trace.allocations.size());
            trace.allocations.push_back({rank, event.at, Time::max(), event.bytes, askerOf(e), event.deviceType == 0 ? onHost : onDevice});
        }
    }
    std::stable_sort(trace.allocations.begin() + static_cast<std::ptrdiff_t>(firstAllocation), trace.allocations.end(),
                     [](const Allocation& a, const Allocation& b) { return a.begin < b.begin; });

    // ---- totals; older files have no totals, and their sums from the trace's start on are drawn instead
    std::map<Device, std::size_t> devices;
    for (const MemoryEvent& event : events) devices.try_emplace({event.deviceType, event.deviceId}, devices.size());
    std::size_t onDevices = 0;
    for (const auto& [device, index] : devices) onDevices += device.first != 0 ? 1U : 0U;
    for (const auto& [device, index] : devices) {
        CounterSeries allocated, reserved;
        const std::string prefix = device.first == 0 ? "host memory" : onDevices > 1 ? fmt::format("device {} memory", device.second) : "memory";
        allocated.rank = reserved.rank = rank;
        allocated.name = prefix + " allocated";
        allocated.series = {"allocated"};
        reserved.name = prefix + " reserved";
        reserved.series = {"reserved"};
        Bytes sum = 0;
        for (const MemoryEvent& event : events) {
            if (Device{event.deviceType, event.deviceId} != device) continue;
            sum += event.bytes;
            allocated.at.push_back(event.at);
            allocated.values.push_back(event.allocated >= 0 ? event.allocated : sum);
            if (event.reserved <= 0) continue;
            reserved.at.push_back(event.at);
            reserved.values.push_back(event.reserved);
        }
        trace.counters.push_back(std::move(allocated));
        if (!reserved.at.empty()) trace.counters.push_back(std::move(reserved));
    }
    return unknownFrees;
}

}  // namespace ringside
