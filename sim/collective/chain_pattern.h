// Chain pattern: chunks flow along a chain of ranks, each passed on as soon as it has arrived.
//
// Broadcast runs the chain from the root outwards, reduce towards the root.
#pragma once

#include "sim/collective/pattern.h"

namespace ringside {

class ChainPattern {
public:
    enum class Direction : std::uint8_t { FromRankZero, ToRankZero };

    /// REQUIRES: ranks ≥ 2, bytes > 0, chunkBytes > 0.
    ChainPattern(std::int64_t ranks, Bytes bytes, Bytes chunkBytes, Direction direction)
        : ranks_(static_cast<std::uint32_t>(ranks)),
          chunks_(static_cast<std::uint32_t>(pipelineChunks(bytes, chunkBytes))),
          messageBytes_(partOf(bytes, chunks_)),
          forward_(direction == Direction::FromRankZero),
          received_(static_cast<std::size_t>(ranks), 0),
          isReady_(static_cast<std::size_t>(ranks), 0) {}

    // Connection i leads from the i-th rank of the chain to the next.
    std::vector<Connection> connections() const {
        std::vector<Connection> connections;
        for (std::uint32_t i = 0; i + 1 < ranks_; ++i) connections.push_back({rankAt(i), rankAt(i + 1), messageBytes_, 0});
        return connections;
    }
    std::uint64_t messageCount() const { return std::uint64_t{chunks_} * (ranks_ - 1); }

    template <class Emit>
    void ready(std::uint32_t rank, Emit emit) {
        const std::uint32_t place = rankAt(rank);  // the mapping is its own inverse
        isReady_[place] = 1;
        if (place == 0) received_[0] = chunks_;
        if (place + 1 < ranks_ && received_[place] > 0) emit(place, received_[place]);
    }
    template <class Emit>
    void delivered(std::uint32_t connection, Emit emit) {
        const std::uint32_t place = connection + 1;
        ++received_[place];
        if (isReady_[place] && place + 1 < ranks_) emit(place, 1);
    }

private:
    std::uint32_t rankAt(std::uint32_t place) const { return forward_ ? place : ranks_ - 1 - place; }

    std::uint32_t ranks_, chunks_;
    Bytes messageBytes_;
    bool forward_;
    std::vector<std::uint32_t> received_;
    std::vector<std::uint8_t> isReady_;
};

/// T = (n − 1)·(α + c/B) + (C − 1)·c/B with C chunks of c = S/C bytes: the first chunk's way, then one chunk after the other.
inline double chainSeconds(std::int64_t ranks, Bytes bytes, Bytes chunkBytes, AlphaBeta link) {
    const double chunks = static_cast<double>(pipelineChunks(bytes, chunkBytes));
    const double chunk = static_cast<double>(bytes) / chunks;
    return static_cast<double>(ranks - 1) * link.seconds(chunk) + (chunks - 1) * link.wireSeconds(chunk);
}

}  // namespace ringside
