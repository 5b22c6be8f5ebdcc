// Broadcast from rank 0: pipelined along the ring (NCCL), or a binomial tree of whole buffers (Gloo), whose ranks have a port each.
//
// Ring: C chunks of c bytes pass n − 1 hops.      T = (n − 1)·(α + c/B) + (C − 1)·c/B
// Binomial: 2^d ranks, whole buffers.             T = d·α + d·(d + 1)/2·S/B
#pragma once

#include "model/cost/binomial_broadcast.h"
#include "sim/collective/binomial_pattern.h"
#include "sim/collective/chain_pattern.h"

namespace ringside {

inline ChainPattern ringBroadcast(std::int64_t ranks, Bytes bytes, Bytes chunkBytes = kPipelineChunk) {
    return ChainPattern(ranks, bytes, chunkBytes, ChainPattern::Direction::FromRankZero);
}
inline double ringBroadcastSeconds(std::int64_t ranks, Bytes bytes, AlphaBeta link, Bytes chunkBytes = kPipelineChunk) {
    return chainSeconds(ranks, bytes, chunkBytes, link);
}

inline BinomialPattern binomialBroadcast(std::int64_t ranks, Bytes bytes) {
    return BinomialPattern(ranks, bytes, BinomialPattern::Direction::FromRankZero);
}
inline double binomialBroadcastSeconds(std::int64_t ranks, Bytes bytes, AlphaBeta link) {
    const BroadcastDepth depth = binomialBroadcastDepth(ranks);
    return depth.latencies * link.latencySeconds + depth.transfers * link.wireSeconds(static_cast<double>(bytes));
}

}  // namespace ringside
