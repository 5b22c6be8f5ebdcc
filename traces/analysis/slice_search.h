// Slice search: slices whose name matches a regular expression. Each name is matched once, however many slices have it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/result.h"
#include "traces/trace.h"

namespace ringside {

struct SearchHits {
    std::vector<std::uint32_t> slices;  ///< by start, then track
    std::vector<std::uint32_t> names;   ///< that matched
};

/// `pattern` is an ECMAScript regular expression found anywhere in the name; letters match both cases if it has no capital. Fails
/// (usage) where it is none, with the reason. O(names + slices). An empty pattern finds nothing.
Result<SearchHits> searchSlices(const Trace& trace, const std::string& pattern);

}  // namespace ringside
