// Binomial pattern: in round k the ranks below 2^k exchange with the ranks 2^k above them; the whole buffer per message.
//
// Broadcast runs the rounds upwards from rank 0, reduce runs them downwards to it. In a broadcast a rank that has the buffer hands it
// to all its children at once, as Gloo does; where they share its port, so do the messages.
#pragma once

#include <bit>

#include "sim/collective/pattern.h"

namespace ringside {

class BinomialPattern {
public:
    enum class Direction : std::uint8_t { FromRankZero, ToRankZero };

    /// REQUIRES: ranks ≥ 2.
    BinomialPattern(std::int64_t ranks, Bytes bytes, Direction direction)
        : ranks_(static_cast<std::uint32_t>(ranks)),
          bytes_(bytes),
          forward_(direction == Direction::FromRankZero),
          isReady_(static_cast<std::size_t>(ranks), 0),
          hasData_(static_cast<std::size_t>(ranks), 0),
          missing_(static_cast<std::size_t>(ranks), 0) {
        hasData_[0] = 1;
        for (std::uint32_t r = 1; r < ranks_; ++r) ++missing_[parentOf(r)];
    }

    // Connection r − 1 joins rank r ≥ 1 with its parent: r without its highest bit.
    std::vector<Connection> connections() const {
        std::vector<Connection> connections;
        for (std::uint32_t r = 1; r < ranks_; ++r)
            connections.push_back(forward_ ? Connection{parentOf(r), r, bytes_, 0} : Connection{r, parentOf(r), bytes_, 0});
        return connections;
    }
    std::uint64_t messageCount() const { return ranks_ - 1; }

    template <class Emit>
    void ready(std::uint32_t rank, Emit emit) {
        isReady_[rank] = 1;
        if (forward_)
            sendDown(rank, emit);
        else
            sendUp(rank, emit);
    }
    template <class Emit>
    void delivered(std::uint32_t connection, Emit emit) {
        const std::uint32_t child = connection + 1;
        if (forward_) {
            hasData_[child] = 1;
            sendDown(child, emit);
        } else {
            --missing_[parentOf(child)];
            sendUp(parentOf(child), emit);
        }
    }

private:
    static std::uint32_t parentOf(std::uint32_t rank) { return rank & ~std::bit_floor(rank); }
    /// The first distance at which a rank has a child of its own.
    static std::uint32_t firstRound(std::uint32_t rank) { return rank == 0 ? 1 : std::bit_floor(rank) * 2; }

    template <class Emit>
    void sendDown(std::uint32_t rank, Emit emit) {
        if (!isReady_[rank] || !hasData_[rank]) return;
        for (std::uint32_t distance = firstRound(rank); rank + distance < ranks_; distance *= 2) emit(rank + distance - 1, 1);
    }
    // Towards rank 0 a rank sends once, when all its children have reported.
    template <class Emit>
    void sendUp(std::uint32_t rank, Emit emit) {
        if (rank != 0 && isReady_[rank] && missing_[rank] == 0) emit(rank - 1, 1);
    }

    std::uint32_t ranks_;
    Bytes bytes_;
    bool forward_;
    std::vector<std::uint8_t> isReady_, hasData_;
    std::vector<std::uint32_t> missing_;
};

}  // namespace ringside
