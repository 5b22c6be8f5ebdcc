// Ring reduce-scatter: every rank ends with the sum of one part.
//
// Message pattern: n − 1 steps; in each, every rank adds its own part to the one received and passes it on. `bytes` is
// the whole buffer that is reduced, as nccl-tests counts; a part is S/n. The addition is not timed here.
// Closed form: T = (n − 1) · (α + S / (n·B)).
#pragma once

#include "sim/collective/ring_pattern.h"

namespace ringside {

inline RingPattern ringReduceScatter(std::int64_t ranks, Bytes bytes, std::int64_t groups = 1) {
    return RingPattern(ranks, groups, ranks / groups - 1, partOf(bytes, ranks / groups));
}

inline double ringReduceScatterSeconds(std::int64_t ranks, Bytes bytes, AlphaBeta link) {
    return static_cast<double>(ranks - 1) * link.seconds(static_cast<double>(bytes) / static_cast<double>(ranks));
}

}  // namespace ringside
