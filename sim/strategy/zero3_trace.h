// The parameter trace of ZeRO stage 3: which parameters each submodule gathers, prefetches and releases, worked out once from
// the recorded order of forward and backward (deepspeed/runtime/zero/partitioned_param_coordinator.py). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringside {

/// A submodule with parameters of its own, about to run forward or backward.
struct Zero3Visit {
    std::vector<std::uint32_t> parameters;  ///< each once
};

struct Zero3TraceOptions {
    bool traced = true;  ///< from the third pass on; before, nothing is prefetched and everything is released after use
    std::int64_t prefetchElements = 0, maxLiveElements = 0, maxReuseElements = 0;
};

struct Zero3VisitPlan {
    std::vector<std::uint32_t> fetch;     ///< gathered now, because nobody prefetched them
    std::vector<std::uint32_t> prefetch;  ///< then sent on their way for submodules to come
    std::vector<std::uint32_t> release;   ///< after the submodule
};

/// One plan per visit. `sizes`: elements of each parameter; `persistent`: it is always there. O(visits + uses).
std::vector<Zero3VisitPlan> planZero3Pass(std::span<const Zero3Visit> visits, std::span<const std::int64_t> sizes, const std::vector<bool>& persistent,
                                          const Zero3TraceOptions& options);

}  // namespace ringside
