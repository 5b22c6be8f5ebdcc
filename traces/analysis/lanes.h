// Lanes: slices of one track that overlap without nesting cannot be drawn on one row; each goes to the first row where it nests.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.h"

namespace ringside {

/// The lane of each slice of track `t`, in the slices' order; lane 0 is the track itself. On one lane any two slices are
/// disjoint or one contains the other. O(slices × lanes). REQUIRES: t < tracks.size().
std::vector<std::uint32_t> nestingLanes(const Trace& trace, std::size_t t);

}  // namespace ringside
