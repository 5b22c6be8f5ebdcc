// Hierarchical all-reduce: reduce-scatter inside each node, all-reduce of each part across nodes, all-gather inside.
//
// Message pattern for k nodes of d devices: d − 1 ring steps of S/d in the node; 2(k − 1) ring steps of S/(d·k) among the
// devices of equal place; d − 1 ring steps of S/d in the node. A rank enters a phase when it has received all of the one
// before; no barrier.
// Closed form: T = 2(d − 1)·(α₁ + S/(d·B₁)) + 2(k − 1)·(α₂ + S/(d·k·B₂)), ₁ inside and ₂ between nodes (B₂ per device).
#pragma once

#include <array>

#include "sim/collective/pattern.h"

namespace ringside {

class HierarchicalPattern {
public:
    /// REQUIRES: ranks ≥ 2, a multiple of ranksPerNode.
    HierarchicalPattern(std::int64_t ranks, std::int64_t ranksPerNode, Bytes bytes)
        : ranks_(static_cast<std::uint32_t>(ranks)), devices_(static_cast<std::uint32_t>(ranksPerNode)), states_(static_cast<std::size_t>(ranks)) {
        const std::int64_t nodes = ranks / ranksPerNode;
        const std::uint32_t inside = devices_ - 1, across = static_cast<std::uint32_t>(2 * (nodes - 1));
        steps_ = {inside, across, inside};
        const Bytes part = partOf(bytes, ranksPerNode);
        messageBytes_ = {part, partOf(part, nodes), part};
    }

    // Connection phase·n + r belongs to rank r in that phase; one of a phase without steps stays unused.
    std::vector<Connection> connections() const {
        std::vector<Connection> connections;
        for (std::uint32_t phase = 0; phase < 3; ++phase)
            for (std::uint32_t r = 0; r < ranks_; ++r) connections.push_back({r, successor(phase, r), messageBytes_[phase], 0});
        return connections;
    }
    std::uint64_t messageCount() const { return std::uint64_t{ranks_} * (std::uint64_t{steps_[0]} + steps_[1] + steps_[2]); }

    template <class Emit>
    void ready(std::uint32_t rank, Emit emit) {
        states_[rank].phase = 0;
        enterPhase(rank, emit);
    }
    template <class Emit>
    void delivered(std::uint32_t connection, Emit emit) {
        const std::uint32_t phase = connection / ranks_;
        const std::uint32_t rank = successor(phase, connection % ranks_);
        State& state = states_[rank];
        ++state.received[phase];
        if (state.phase != phase) return;  // kept until the rank gets there
        if (state.received[phase] < steps_[phase]) {
            emit(phase * ranks_ + rank, 1);
        } else {
            ++state.phase;
            enterPhase(rank, emit);
        }
    }

private:
    static constexpr std::uint32_t kOutside = 9;
    struct State {
        std::uint32_t phase = kOutside;
        std::array<std::uint32_t, 3> received{};
    };

    std::uint32_t successor(std::uint32_t phase, std::uint32_t rank) const {
        if (phase == 1) return rank + devices_ < ranks_ ? rank + devices_ : rank + devices_ - ranks_;
        return rank % devices_ + 1 < devices_ ? rank + 1 : rank + 1 - devices_;
    }

    template <class Emit>
    void enterPhase(std::uint32_t rank, Emit emit) {
        State& state = states_[rank];
        for (; state.phase < 3; ++state.phase) {
            const std::uint32_t steps = steps_[state.phase], received = state.received[state.phase];
            if (steps == 0) continue;
            emit(state.phase * ranks_ + rank, std::min(steps, received + 1));
            if (received < steps) return;
        }
    }

    std::uint32_t ranks_, devices_;
    std::array<std::uint32_t, 3> steps_{};
    std::array<Bytes, 3> messageBytes_{};
    std::vector<State> states_;
};

inline HierarchicalPattern hierarchicalAllReduce(std::int64_t ranks, std::int64_t ranksPerNode, Bytes bytes) {
    return HierarchicalPattern(ranks, ranksPerNode, bytes);
}

inline double hierarchicalAllReduceSeconds(std::int64_t ranks, std::int64_t ranksPerNode, Bytes bytes, AlphaBeta inside, AlphaBeta between) {
    const double devices = static_cast<double>(ranksPerNode), nodes = static_cast<double>(ranks / ranksPerNode);
    const double part = static_cast<double>(bytes) / devices;
    return 2 * (devices - 1) * inside.seconds(part) + 2 * (nodes - 1) * between.seconds(part / nodes);
}

}  // namespace ringside
