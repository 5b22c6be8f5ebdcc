// Message player: plays a message pattern over a network, every message simulated, and says when the last has arrived.
//
// One event per message where its wire is private (its times are then known when it is handed over), two where wires are
// shared. No allocation per message. Memory: O(ranks + connections).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/base/check.h"
#include "sim/collective/message_network.h"
#include "sim/collective/pattern.h"
#include "sim/engine/event_queue.h"
#include "sim/resource/network.h"

namespace ringside {

/// The wires of a pattern's connections: route i of `flows` is connection i. `linkIds` names the links of `flows`.
struct PatternWires {
    FlowNetwork flows;
    std::vector<Time> latency;  ///< per connection
    std::vector<std::uint64_t> linkIds;
};

/// O(total path length).
inline PatternWires wiresOf(std::span<const Connection> connections, const MessageNetwork& network) {
    std::vector<double> capacities;
    std::vector<std::uint64_t> linkIds;
    std::vector<Time> latency;
    std::vector<LinkIndex> links;
    std::vector<std::uint32_t> firstLink{0};
    std::unordered_map<std::uint64_t, LinkIndex> indexOf;
    MessageRoute route;
    for (const Connection& connection : connections) {
        route.links.clear();
        network.route(connection.source, connection.destination, connection.lane, route);
        CHECK(!route.links.empty());
        for (const MessageRoute::Link& link : route.links) {
            const auto [entry, isNew] = indexOf.emplace(link.id, static_cast<LinkIndex>(linkIds.size()));
            if (isNew) {
                linkIds.push_back(link.id);
                capacities.push_back(link.bytesPerSecond);
            }
            links.push_back(entry->second);
        }
        firstLink.push_back(static_cast<std::uint32_t>(links.size()));
        latency.push_back(route.latency);
    }
    FlowNetwork flows(std::move(capacities));
    for (std::size_t c = 0; c + 1 < firstLink.size(); ++c)
        flows.addRoute(std::span(links).subspan(firstLink[c], firstLink[c + 1] - firstLink[c]));
    flows.freeze();
    return PatternWires{std::move(flows), std::move(latency), std::move(linkIds)};
}

template <class Pattern>
class MessagePlayer {
public:
    MessagePlayer(Pattern pattern, const MessageNetwork& network)
        : pattern_(std::move(pattern)), connections_(pattern_.connections()), wires_(wiresOf(connections_, network)),
          lastReceived_(static_cast<std::size_t>(network.ranks)) {
        states_.resize(connections_.size());
        for (std::uint32_t c = 0; c < connections_.size(); ++c) {
            State& state = states_[c];
            state.latency = wires_.latency[c];
            state.destination = connections_[c].destination;
            state.isPrivate = wires_.flows.isPrivate(c);
            if (state.isPrivate) state.transfer = wires_.flows.aloneTime(c, connections_[c].messageBytes);
        }
    }

    /// Plays all messages; rank r enters at arrivals[r]. REQUIRES: called once; arrivals.size() is the number of ranks.
    void play(std::span<const Time> arrivals) {
        for (std::uint32_t rank = 0; rank < arrivals.size(); ++rank) {
            queue_.push(arrivals[rank], 0, Delivery{rank, kReady});
            lastReceived_[rank] = arrivals[rank];
        }
        if (wires_.flows.allPrivate()) {
            while (!queue_.empty()) handleNext();
        } else {
            playShared();
        }
        for (std::uint32_t c = 0; c < states_.size(); ++c) {
            messages_ += states_[c].handedOver;
            if (states_[c].isPrivate) wires_.flows.carry(c, static_cast<Bytes>(states_[c].handedOver) * connections_[c].messageBytes);
        }
        CHECK(messages_ == pattern_.messageCount());
    }

    /// When the last event was: the last message arrived, or the last rank entered.
    Time finish() const { return now_; }
    std::uint64_t messages() const { return messages_; }
    /// Per rank: when its last message arrived (its own arrival if it receives none).
    std::vector<Time>& lastReceived() { return lastReceived_; }
    std::vector<double> bytesPerLink() const { return wires_.flows.bytesPerLink(); }
    std::vector<std::uint64_t>& linkIds() { return wires_.linkIds; }

private:
    static constexpr std::uint32_t kReady = ~std::uint32_t{0};

    // A message of `connection` arrives and `more` of the same burst follow, one transfer time apart. Or, with kReady,
    // the rank of that number enters.
    struct Delivery {
        std::uint32_t connection, more;
    };
    struct State {
        Time busyUntil;           // private: when the wire is free
        Time transfer, latency;
        std::uint64_t handedOver = 0;
        std::uint32_t waiting = 0;  // shared: handed over and not started
        std::uint32_t destination = 0;
        bool isPrivate = true;
    };

    void emit(std::uint32_t connection, std::uint32_t count) {
        State& state = states_[connection];
        state.handedOver += count;
        if (state.isPrivate) {
            const Time sent = std::max(now_, state.busyUntil) + state.transfer;
            state.busyUntil = sent + state.transfer * (count - 1);
            queue_.push(sent + state.latency, 0, Delivery{connection, count - 1});
            return;
        }
        state.waiting += count;
        if (!wires_.flows.isActive(connection)) startWaiting(connection);
    }

    void startWaiting(std::uint32_t connection) {
        --states_[connection].waiting;
        wires_.flows.start(connection, connections_[connection].messageBytes, now_);
    }

    void handleNext() {
        const auto event = queue_.pop();
        now_ = event.time;
        const Delivery delivery = event.payload;
        const auto send = [this](std::uint32_t connection, std::uint32_t count) { emit(connection, count); };
        if (delivery.more == kReady) {
            pattern_.ready(delivery.connection, send);
            return;
        }
        const State& state = states_[delivery.connection];
        lastReceived_[state.destination] = now_;
        if (delivery.more > 0) queue_.push(now_ + state.transfer, 0, Delivery{delivery.connection, delivery.more - 1});
        pattern_.delivered(delivery.connection, send);
    }

    // All that happens at one instant is handled before the shares are computed again.
    void playShared() {
        std::vector<RouteId> done;
        for (;;) {
            const Time nextSent = wires_.flows.nextCompletion();
            const Time nextEvent = queue_.empty() ? Time::max() : queue_.peekTime();
            const Time now = std::min(nextSent, nextEvent);
            if (now == Time::max()) return;
            now_ = now;
            if (nextSent == now) {
                done.clear();
                wires_.flows.complete(now, done);
                for (const RouteId connection : done) {
                    if (states_[connection].waiting > 0) startWaiting(connection);
                    queue_.push(now + states_[connection].latency, 0, Delivery{connection, 0});
                }
            }
            while (!queue_.empty() && queue_.peekTime() == now) handleNext();
        }
    }

    Pattern pattern_;
    std::vector<Connection> connections_;
    PatternWires wires_;
    std::vector<State> states_;
    std::vector<Time> lastReceived_;
    CalendarQueue<Delivery> queue_;
    Time now_;
    std::uint64_t messages_ = 0;
};

}  // namespace ringside
