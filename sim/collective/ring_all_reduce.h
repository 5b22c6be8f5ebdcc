// Ring all-reduce: reduce-scatter, then all-gather, around one ring of n ranks.
//
// Message pattern: 2(n − 1) steps; in each, every rank sends one n-th of the buffer to its successor.
// Closed form: T = 2(n − 1) · (α + S / (n·B)). A rank sends 2(n − 1)/n · S bytes.
#pragma once

#include "sim/collective/ring_pattern.h"

namespace ringside {

inline RingPattern ringAllReduce(std::int64_t ranks, Bytes bytes, std::int64_t groups = 1) {
    return RingPattern(ranks, groups, 2 * (ranks / groups - 1), partOf(bytes, ranks / groups));
}

inline double ringAllReduceSeconds(std::int64_t ranks, Bytes bytes, AlphaBeta link) {
    return 2.0 * static_cast<double>(ranks - 1) * link.seconds(static_cast<double>(bytes) / static_cast<double>(ranks));
}

}  // namespace ringside
