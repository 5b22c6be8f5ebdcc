#include "traces/analysis/memory_at.h"

#include <algorithm>
#include <numeric>

namespace ringside {
namespace {

bool isByCategory(const CounterSeries& counter) { return counter.name == "memory by category"; }
bool isAllocated(const CounterSeries& counter) { return counter.name.ends_with("memory allocated") && !counter.name.starts_with("host"); }
bool isReserved(const CounterSeries& counter) { return counter.name.ends_with("memory reserved") && !counter.name.starts_with("host"); }

Bytes sumOf(const CounterSeries& counter, std::size_t row) {
    const auto first = counter.values.begin() + static_cast<std::ptrdiff_t>(row * counter.series.size());
    return std::accumulate(first, first + static_cast<std::ptrdiff_t>(counter.series.size()), Bytes{0});
}

}  // namespace

MemoryAt memoryAt(const Trace& trace, std::int64_t rank, Time at) {
    MemoryAt result;
    result.at = at;
    for (std::uint32_t a = 0; a < trace.allocations.size(); ++a) {
        const Allocation& allocation = trace.allocations[a];
        if (allocation.rank == rank && allocation.begin <= at && at < allocation.end && trace.names[allocation.category] != "host memory") result.alive.push_back(a);
    }
    std::stable_sort(result.alive.begin(), result.alive.end(), [&](std::uint32_t a, std::uint32_t b) { return trace.allocations[a].bytes > trace.allocations[b].bytes; });
    for (const CounterSeries& counter : trace.counters) {
        if (counter.rank != rank) continue;
        const auto after = std::upper_bound(counter.at.begin(), counter.at.end(), at);
        if (after == counter.at.begin()) continue;
        const auto row = static_cast<std::size_t>(after - counter.at.begin() - 1);
        if (isByCategory(counter)) {
            for (std::size_t s = 0; s < counter.series.size(); ++s) result.categories.emplace_back(counter.series[s], counter.values[row * counter.series.size() + s]);
            result.allocated = sumOf(counter, row);
        } else if (isAllocated(counter)) {
            result.allocated += sumOf(counter, row);
        } else if (isReserved(counter)) {
            result.reserved += sumOf(counter, row);
        } else {
            continue;
        }
        result.capacity = std::max(result.capacity, counter.limit);
    }
    if (result.categories.empty()) {
        for (const std::uint32_t a : result.alive) {
            const std::string& name = trace.names[trace.allocations[a].category];
            auto it = std::find_if(result.categories.begin(), result.categories.end(), [&](const auto& entry) { return entry.first == name; });
            if (it == result.categories.end()) it = result.categories.insert(it, {name, 0});
            it->second += trace.allocations[a].bytes;
        }
        if (result.allocated == 0)
            for (const auto& [name, bytes] : result.categories) result.allocated += bytes;
    }
    return result;
}

Time memoryPeak(const Trace& trace, std::int64_t rank) {
    Time peak;
    Bytes most = -1;
    for (const CounterSeries& counter : trace.counters) {
        if (counter.rank != rank || !(isByCategory(counter) || isAllocated(counter))) continue;
        for (std::size_t row = 0; row < counter.at.size(); ++row)
            if (sumOf(counter, row) > most) {
                most = sumOf(counter, row);
                peak = counter.at[row];
            }
    }
    return peak;
}

}  // namespace ringside
