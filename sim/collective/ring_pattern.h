// Ring pattern: every rank sends `steps` messages to its successor, each after receiving one from its predecessor.
//
// The three ring collectives differ in the number of steps and the size of a message only. With `groups` > 1 the ranks
// r, r + groups, r + 2·groups, … form one ring each, all running at once: what the data-parallel groups of a job do
// that also splits its layers over the devices of a node.
#pragma once

#include "sim/collective/pattern.h"

namespace ringside {

class RingPattern {
public:
    /// REQUIRES: ranks a multiple of groups, at least two ranks per group.
    RingPattern(std::int64_t ranks, std::int64_t groups, std::int64_t steps, Bytes messageBytes)
        : groups_(static_cast<std::uint32_t>(groups)),
          steps_(static_cast<std::uint32_t>(steps)),
          messageBytes_(messageBytes),
          received_(static_cast<std::size_t>(ranks), kNotReady) {}

    std::vector<Connection> connections() const {
        std::vector<Connection> connections(received_.size());
        for (std::uint32_t r = 0; r < connections.size(); ++r) connections[r] = {r, successor(r), messageBytes_, 0};
        return connections;
    }
    std::uint64_t messageCount() const { return std::uint64_t{steps_} * received_.size(); }

    template <class Emit>
    void ready(std::uint32_t rank, Emit emit) {
        received_[rank] &= ~kNotReady;
        emit(rank, std::min(steps_, received_[rank] + 1));
    }
    template <class Emit>
    void delivered(std::uint32_t connection, Emit emit) {
        const std::uint32_t rank = successor(connection);
        // A rank that is not ready counts far beyond its steps, and therefore sends nothing.
        if (++received_[rank] < steps_) emit(rank, 1);
    }

private:
    static constexpr std::uint32_t kNotReady = std::uint32_t{1} << 31;

    std::uint32_t successor(std::uint32_t rank) const {
        const std::uint32_t next = rank + groups_;
        return next < received_.size() ? next : next - static_cast<std::uint32_t>(received_.size());
    }

    std::uint32_t groups_, steps_;
    Bytes messageBytes_;
    std::vector<std::uint32_t> received_;  // messages received; top bit: the rank has not entered yet
};

}  // namespace ringside
