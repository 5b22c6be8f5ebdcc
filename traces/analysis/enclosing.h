// Enclosing: which slice was running on a track at an instant.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.h"

namespace ringside {

constexpr std::uint32_t kNoSlice = 0xffffffffU;

struct TrackPoint {
    std::uint32_t track = 0;
    Time at;
};

/// For each point the innermost slice of its track with start ≤ at ≤ end, the one that starts last if there are several; kNoSlice
/// if there is none. O(slices of the tracks + points log points). REQUIRES: track < trace.tracks.size().
std::vector<std::uint32_t> enclosingSlices(const Trace& trace, std::span<const TrackPoint> points);

/// For each slice of track `t` the innermost slice that contains it, or kNoSlice. Of slices that overlap without nesting none is
/// the other's parent. O(slices). REQUIRES: t < tracks.size().
std::vector<std::uint32_t> parentSlices(const Trace& trace, std::size_t t);

}  // namespace ringside
