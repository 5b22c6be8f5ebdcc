// Ring all-gather: every rank ends with the parts of all.
//
// Message pattern: n − 1 steps; in each, every rank passes one part on to its successor. `bytes` is the whole gathered
// buffer, as nccl-tests counts; a part is S/n.
// Closed form: T = (n − 1) · (α + S / (n·B)).
#pragma once

#include "sim/collective/ring_pattern.h"

namespace ringside {

inline RingPattern ringAllGather(std::int64_t ranks, Bytes bytes, std::int64_t groups = 1) {
    return RingPattern(ranks, groups, ranks / groups - 1, partOf(bytes, ranks / groups));
}

inline double ringAllGatherSeconds(std::int64_t ranks, Bytes bytes, AlphaBeta link) {
    return static_cast<double>(ranks - 1) * link.seconds(static_cast<double>(bytes) / static_cast<double>(ranks));
}

}  // namespace ringside
