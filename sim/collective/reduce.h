// Reduce to rank 0: pipelined along the ring (NCCL), or a binomial tree of whole buffers.
//
// Ring: C chunks of c bytes pass n − 1 hops towards rank 0, each adding its own.   T = (n − 1)·(α + c/B) + (C − 1)·c/B
// Binomial: a rank sends its whole buffer once all its children have reported. Children of one parent are not held
// apart: where every pair has a wire of its own they arrive together, so the depth counts and not the rounds.
//   T = depth·(α + S/B), depth = most one-bits of any rank below n = max(popcount(n − 1), ⌊log2(n − 1)⌋)
#pragma once

#include "sim/collective/binomial_pattern.h"
#include "sim/collective/chain_pattern.h"

namespace ringside {

inline ChainPattern ringReduce(std::int64_t ranks, Bytes bytes, Bytes chunkBytes = kPipelineChunk) {
    return ChainPattern(ranks, bytes, chunkBytes, ChainPattern::Direction::ToRankZero);
}
inline double ringReduceSeconds(std::int64_t ranks, Bytes bytes, AlphaBeta link, Bytes chunkBytes = kPipelineChunk) {
    return chainSeconds(ranks, bytes, chunkBytes, link);
}

inline BinomialPattern binomialReduce(std::int64_t ranks, Bytes bytes) {
    return BinomialPattern(ranks, bytes, BinomialPattern::Direction::ToRankZero);
}
inline double binomialReduceSeconds(std::int64_t ranks, Bytes bytes, AlphaBeta link) {
    const std::uint64_t last = static_cast<std::uint64_t>(ranks - 1);
    const int depth = std::max(std::popcount(last), static_cast<int>(std::bit_width(last)) - 1);
    return depth * link.seconds(static_cast<double>(bytes));
}

}  // namespace ringside
