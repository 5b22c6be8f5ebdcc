// Broadcast from rank 0: pipelined along the ring (NCCL), or a binomial tree of whole buffers (Gloo).
//
// Ring: C chunks of c bytes pass n − 1 hops.      T = (n − 1)·(α + c/B) + (C − 1)·c/B
// Binomial: ⌈log2 n⌉ rounds, whole buffer each.   T = ⌈log2 n⌉·(α + S/B)
#pragma once

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
    const double rounds = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
    return rounds * link.seconds(static_cast<double>(bytes));
}

}  // namespace ringside
