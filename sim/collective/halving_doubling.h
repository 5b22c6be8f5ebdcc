// Halving-doubling all-reduce: log2 p exchanges of halves to reduce-scatter, the same backwards to all-gather.
//
// Message pattern, p the largest power of two ≤ n: in step s the ranks r and r xor 2^s exchange S/2^(s+1) bytes (the big
// halves go to near ranks, as Gloo does); then the steps run backwards. A rank enters a step when its message of the step
// before has arrived and it has received its partner's. If n > p, rank p + i first gives its whole buffer to rank i and
// gets the result back at the end. (Gloo's own answer to other counts is binary blocks, which are not modelled.)
// Closed form: T = 2·log2 p·α + 2·(p − 1)/p · S/B, and 2·(α + S/B) more if n ≠ p.
// Memory: O(n) for the ranks and n·log2 n connections, each of which carries two messages.
#pragma once

#include <bit>

#include "sim/collective/pattern.h"

namespace ringside {

class HalvingDoublingPattern {
public:
    /// REQUIRES: 2 ≤ ranks ≤ 2^30.
    HalvingDoublingPattern(std::int64_t ranks, Bytes bytes)
        : ranks_(static_cast<std::uint32_t>(ranks)),
          core_(std::bit_floor(ranks_)),
          rounds_(static_cast<std::uint32_t>(std::bit_width(core_)) - 1),
          bytes_(bytes),
          states_(core_) {
        for (std::uint32_t r = 0; r < core_; ++r) states_[r].awaits = 1 + static_cast<std::uint32_t>(hasExtra(r));
    }

    // core_·rounds_ exchanges, then the extra ranks' way in, then their way out.
    std::vector<Connection> connections() const {
        std::vector<Connection> connections;
        for (std::uint32_t r = 0; r < core_; ++r)
            for (std::uint32_t s = 0; s < rounds_; ++s) connections.push_back({r, r ^ (1u << s), partOf(bytes_, std::int64_t{2} << s), 0});
        for (std::uint32_t r = core_; r < ranks_; ++r) connections.push_back({r, r - core_, bytes_, 0});
        for (std::uint32_t r = core_; r < ranks_; ++r) connections.push_back({r - core_, r, bytes_, 0});
        return connections;
    }
    std::uint64_t messageCount() const { return std::uint64_t{2} * core_ * rounds_ + std::uint64_t{2} * (ranks_ - core_); }

    template <class Emit>
    void ready(std::uint32_t rank, Emit emit) {
        if (rank >= core_)
            emit(core_ * rounds_ + rank - core_, 1);
        else
            enter(rank, emit);
    }
    template <class Emit>
    void delivered(std::uint32_t connection, Emit emit) {
        if (connection >= core_ * rounds_) {
            const std::uint32_t extra = connection - core_ * rounds_;
            if (extra < ranks_ - core_) enter(extra, emit);
            return;
        }
        const std::uint32_t source = connection / rounds_, round = connection % rounds_;
        const std::uint32_t partner = source ^ (1u << round);
        mark(states_[source].arrived, round);
        mark(states_[partner].received, round);
        advance(source, emit);
        advance(partner, emit);
    }

private:
    struct State {
        std::uint64_t arrived = 0, received = 0;  // per step: own message has arrived, partner's was received
        std::uint32_t step = 0;                   // current step, 0 … 2·rounds
        std::uint32_t awaits = 1;                 // entries still missing before step 0: the rank itself, its extra rank
    };

    bool hasExtra(std::uint32_t rank) const { return rank + core_ < ranks_; }
    std::uint32_t roundOf(std::uint32_t step) const { return step < rounds_ ? step : 2 * rounds_ - 1 - step; }
    // A connection is used by step s and again by the mirrored step, in this order.
    void mark(std::uint64_t& steps, std::uint32_t round) const {
        const std::uint64_t first = std::uint64_t{1} << round;
        steps |= (steps & first) ? std::uint64_t{1} << (2 * rounds_ - 1 - round) : first;
    }

    template <class Emit>
    void enter(std::uint32_t rank, Emit emit) {
        if (--states_[rank].awaits == 0) emit(rank * rounds_ + roundOf(0), 1);
    }
    template <class Emit>
    void advance(std::uint32_t rank, Emit emit) {
        State& state = states_[rank];
        while (state.step < 2 * rounds_ && ((state.arrived & state.received) >> state.step & 1)) {
            if (++state.step < 2 * rounds_)
                emit(rank * rounds_ + roundOf(state.step), 1);
            else if (hasExtra(rank))
                emit(core_ * rounds_ + (ranks_ - core_) + rank, 1);
        }
    }

    std::uint32_t ranks_, core_, rounds_;
    Bytes bytes_;
    std::vector<State> states_;
};

inline HalvingDoublingPattern halvingDoublingAllReduce(std::int64_t ranks, Bytes bytes) { return HalvingDoublingPattern(ranks, bytes); }

inline double halvingDoublingAllReduceSeconds(std::int64_t ranks, Bytes bytes, AlphaBeta link) {
    const std::uint64_t core = std::bit_floor(static_cast<std::uint64_t>(ranks));
    const double rounds = static_cast<double>(std::bit_width(core)) - 1;
    const double p = static_cast<double>(core), size = static_cast<double>(bytes);
    const double exchange = 2 * rounds * link.latencySeconds + link.wireSeconds(2 * (p - 1) / p * size);
    return exchange + (static_cast<std::uint64_t>(ranks) == core ? 0 : 2 * link.seconds(size));
}

}  // namespace ringside
