#include "sim/collective/fold_ring.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "model/base/check.h"
#include "sim/resource/network.h"

namespace ringside {

namespace {

// The quotient ring: connection p stands for the connections of all ranks p + k·turn. Its messages go to p + groups, which
// for the last ranks of a turn lies in the next turn; all turns do the same at the same time, so it is this turn's own.
class FoldedRing {
public:
    FoldedRing(const MessageNetwork& network, std::int64_t groups, std::int64_t steps, Bytes messageBytes)
        : turn_(static_cast<std::uint32_t>(network.symmetry->ranksPerTurn)), groups_(static_cast<std::uint32_t>(groups)), steps_(steps),
          messageBytes_(messageBytes), positions_(turn_), flows_(quotient(network)) {
        for (std::uint32_t p = 0; p < turn_; ++p) {
            Position& position = positions_[p];
            position.isPrivate = flows_.isPrivate(p);
            if (position.isPrivate) position.transfer = flows_.aloneTime(p, messageBytes_);
        }
    }

    MessageLevelResult play(std::int64_t ranks, Time baseLatency) {
        now_ = baseLatency;
        for (std::uint32_t p = 0; p < turn_; ++p) hand(p);
        std::vector<RouteId> done;
        for (;;) {
            const Time next = std::min(flows_.nextCompletion(), nextDelivery());
            if (next == Time::max()) break;
            const std::int64_t before = positions_[0].received;
            now_ = next;
            if (flows_.nextCompletion() == now_) {
                done.clear();
                flows_.complete(now_, done);
                for (const RouteId p : done) {
                    if (positions_[p].waiting > 0) startWaiting(p);
                    inFlight_.push_back({now_ + positions_[p].latency, p});
                }
            }
            deliverNow();
            if (!jumped_ && positions_[0].received != before) lookForRhythm();
        }
        MessageLevelResult result;
        result.duration = now_;
        result.messages = static_cast<std::uint64_t>(steps_) * static_cast<std::uint64_t>(ranks);
        result.folded = true;
        for (const Position& position : positions_) result.rankFinish.push_back(position.last);
        for (std::uint32_t p = 0; p < turn_; ++p) {
            CHECK(positions_[p].sent == steps_ && positions_[p].received == steps_);
            booked_.carry(p, steps_ * messageBytes_);
        }
        result.bytesPerLink = booked_.bytesPerLink();
        for (std::size_t l = 0; l < result.bytesPerLink.size(); ++l) result.bytesPerLink[l] *= static_cast<double>(sharedBy_[l]);
        result.linkIds = linkIds_;
        return result;
    }

private:
    struct Position {
        std::int64_t sent = 0, received = 0;
        Time busyUntil, transfer, latency, last;
        std::int64_t waiting = 0;
        bool isPrivate = true;
    };
    struct InFlight {
        Time arrival;
        std::uint32_t position;
        auto operator<=>(const InFlight&) const = default;
    };

    FlowNetwork quotient(const MessageNetwork& network) {
        std::vector<double> capacities;
        std::unordered_map<std::uint64_t, LinkIndex> indexOf;
        std::vector<std::vector<LinkIndex>> paths(turn_);
        MessageRoute route;
        for (std::uint32_t p = 0; p < turn_; ++p) {
            route.links.clear();
            network.route(p, (std::int64_t{p} + groups_) % network.ranks, 0, route);
            positions_[p].latency = route.latency;
            for (const MessageRoute::Link& link : route.links) {
                const RotationSymmetry::LinkClass linkClass = network.symmetry->linkClass(link.id);
                const auto [entry, isNew] = indexOf.emplace(linkClass.id, static_cast<LinkIndex>(linkIds_.size()));
                if (isNew) {
                    linkIds_.push_back(linkClass.id);
                    sharedBy_.push_back(linkClass.sharedBy);
                    // Whole bytes per second: ⌊⌊C/k⌋/m⌋ = ⌊C/(k·m)⌋, so that folding does not even change the rounding.
                    const double share = link.bytesPerSecond / static_cast<double>(linkClass.sharedBy);
                    capacities.push_back(linkClass.sharedBy > 1 && share >= 1 ? std::floor(share) : share);
                }
                paths[p].push_back(entry->second);
            }
        }
        FlowNetwork flows(capacities);
        for (const auto& path : paths) flows.addRoute(path);
        flows.freeze();
        booked_ = flows;
        return flows;
    }

    std::uint32_t successor(std::uint32_t p) const { return p + groups_ < turn_ ? p + groups_ : p + groups_ - turn_; }

    void hand(std::uint32_t p) {
        Position& position = positions_[p];
        ++position.sent;
        if (position.isPrivate) {
            position.busyUntil = std::max(now_, position.busyUntil) + position.transfer;
            inFlight_.push_back({position.busyUntil + position.latency, p});
            return;
        }
        ++position.waiting;
        if (!flows_.isActive(p)) startWaiting(p);
    }
    void startWaiting(std::uint32_t p) {
        --positions_[p].waiting;
        flows_.start(p, messageBytes_, now_);
    }

    Time nextDelivery() const {
        Time next = Time::max();
        for (const InFlight& message : inFlight_) next = std::min(next, message.arrival);
        return next;
    }
    // A message may arrive at the instant it is handed over (no latency, no bytes worth a picosecond): then again.
    void deliverNow() {
        for (std::size_t i = 0; i < inFlight_.size();) {
            if (inFlight_[i].arrival != now_) {
                ++i;
                continue;
            }
            const std::uint32_t p = successor(inFlight_[i].position);
            inFlight_[i] = inFlight_.back();
            inFlight_.pop_back();
            positions_[p].last = now_;
            if (++positions_[p].received < steps_) hand(p);
        }
    }

    // Brent's cycle detection on the state relative to now and to position 0. A state seen before means that all since
    // then repeats; as many repetitions as leave every rank with steps to go are skipped at once.
    void lookForRhythm() {
        state_.clear();
        std::sort(inFlight_.begin(), inFlight_.end());
        for (const InFlight& message : inFlight_) {
            state_.push_back((message.arrival - now_).picoseconds());
            state_.push_back(message.position);
        }
        state_.push_back(-1);
        for (const Position& position : positions_) {
            state_.push_back(position.sent - positions_[0].sent);
            state_.push_back(position.received - positions_[0].sent);
            state_.push_back(std::max<std::int64_t>(0, (position.busyUntil - now_).picoseconds()));
            state_.push_back(position.waiting);
        }
        if (!flows_.allPrivate()) flows_.appendState(now_, state_);
        if (state_ == reference_) {
            jump();
            return;
        }
        if (++sinceReference_ >= patience_) {
            patience_ *= 2;
            sinceReference_ = 0;
            reference_ = state_;
            referenceTime_ = now_;
            referenceSent_ = positions_[0].sent;
        }
    }

    void jump() {
        jumped_ = true;
        const std::int64_t stepsPerRhythm = positions_[0].sent - referenceSent_;
        const Time rhythm = now_ - referenceTime_;
        std::int64_t most = 0;
        for (const Position& position : positions_) most = std::max({most, position.sent, position.received});
        if (stepsPerRhythm <= 0) return;
        const std::int64_t times = (steps_ - most) / stepsPerRhythm;
        const Time shift = rhythm * times;
        for (Position& position : positions_) {
            position.sent += times * stepsPerRhythm;
            position.received += times * stepsPerRhythm;
            position.busyUntil += shift;
            position.last += shift;
        }
        for (InFlight& message : inFlight_) message.arrival += shift;
        flows_.shiftTime(shift);
        now_ += shift;
    }

    std::uint32_t turn_, groups_;
    std::int64_t steps_;
    Bytes messageBytes_;
    std::vector<Position> positions_;
    std::vector<std::uint64_t> linkIds_;
    std::vector<std::int64_t> sharedBy_;
    FlowNetwork booked_{std::vector<double>{}};  // counts bytes only
    FlowNetwork flows_;
    std::vector<InFlight> inFlight_;
    Time now_;

    bool jumped_ = false;
    std::vector<std::int64_t> state_, reference_;
    Time referenceTime_;
    std::int64_t referenceSent_ = 0, sinceReference_ = 0, patience_ = 1;
};

}  // namespace

MessageLevelResult foldRing(const MessageNetwork& network, std::int64_t groups, std::int64_t steps, Bytes messageBytes, Time baseLatency) {
    return FoldedRing(network, groups, steps, messageBytes).play(network.ranks, baseLatency);
}

}  // namespace ringside
