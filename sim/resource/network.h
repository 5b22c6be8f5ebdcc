// FlowNetwork: flows over routes that share links max-min fairly, in simulated time.
//
// A route is a fixed list of links; it carries at most one flow at a time. Routes that share links, directly or through
// others, form a sharing group; rates are computed again only for a group whose set of active flows changed, once per
// instant, and looked up where that set was seen before. A route that shares with nobody is private: its flows always
// take `aloneTime`, and a caller may use that number instead of starting the flow here (then `carry` books the bytes).
//
//     FlowNetwork network({25e9, 25e9});
//     const RouteId a = network.addRoute(std::array<LinkIndex, 1>{0});
//     network.freeze();
//     network.start(a, 1'000'000, Time());
//     network.complete(network.nextCompletion(), done);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/base/units.h"
#include "sim/engine/event_queue.h"
#include "sim/resource/fair_share.h"

namespace ringside {

using RouteId = std::uint32_t;

class FlowNetwork {
public:
    /// Capacities in bytes per second, all > 0.
    explicit FlowNetwork(std::vector<double> capacities) : capacities_(std::move(capacities)) {}

    /// REQUIRES: before freeze(); at least one link, each below the number of capacities.
    RouteId addRoute(std::span<const LinkIndex> links);
    /// Finds the sharing groups. O(total path length). REQUIRES: called once, before any flow.
    void freeze();

    std::size_t routeCount() const { return firstLink_.size() - 1; }
    bool isPrivate(RouteId route) const { return groups_[groupOf_[route]].routeCount == 1; }
    /// True if every route is private, so that nothing can ever contend.
    bool allPrivate() const { return allPrivate_; }
    /// Rate in bytes per second, and time for `bytes`, of a flow that is alone in its group.
    double aloneRate(RouteId route) const { return aloneRate_[route]; }
    Time aloneTime(RouteId route, Bytes bytes) const { return transferTime(static_cast<double>(bytes), aloneRate_[route]); }

    bool isActive(RouteId route) const { return finish_[route] != kIdle; }
    /// Starts a flow. REQUIRES: the route is idle; `now` is not before any earlier call's; bytes ≥ 0.
    void start(RouteId route, Bytes bytes, Time now);
    /// When the next flows complete; Time::max() if none is active. REQUIRES: all starts of this instant were made.
    Time nextCompletion();
    /// Appends the routes whose flows complete at `now`, in an order that depends on the run alone. REQUIRES: now == nextCompletion().
    void complete(Time now, std::vector<RouteId>& done);

    /// Books bytes of a flow that the caller timed itself with aloneTime.
    void carry(RouteId route, Bytes bytes) { carried_[route] += bytes; }
    /// Bytes that completed flows (and `carry`) moved over each link.
    std::vector<double> bytesPerLink() const;
    /// How often rates were computed, not looked up.
    std::uint64_t solves() const { return solves_; }
    /// Appends what the future of the active flows depends on, relative to `now`: equal words, equal futures.
    void appendState(Time now, std::vector<std::int64_t>& state);
    /// Moves all that is under way later by `shift`. REQUIRES: the state is settled, as after nextCompletion().
    void shiftTime(Time shift);

private:
    static constexpr Time kIdle = Time::fromPicoseconds(-1);
    static constexpr std::size_t kCachedSets = 64;  // remembered sets of active flows per group

    struct Group {
        std::uint32_t firstRoute = 0, routeCount = 0;  // in groupRoutes_
        std::uint32_t firstLink = 0, linkCount = 0;    // in groupCapacities_
        std::uint32_t firstWord = 0, wordCount = 0;    // in active_
        std::uint32_t activeCount = 0;
        std::uint32_t generation = 0;                  // of its one valid entry in the queue
        Time next = Time::max();                       // earliest completion
        bool dirty = false;
        std::uint32_t nextEvicted = 0, lastHit = 0;
        std::vector<std::uint64_t> cachedSets;         // wordCount words per entry
        std::vector<double> cachedRates;               // routeCount rates per entry
    };
    struct Completion {
        std::uint32_t group, generation;
    };

    static Time transferTime(double bytes, double rate);
    void moveClock(Time now);
    void touch(std::uint32_t group);
    void settle();
    void settleGroup(std::uint32_t index);
    std::span<const double> ratesOf(Group& group);
    void solve(const Group& group, std::span<double> rates);

    std::vector<double> capacities_;
    std::vector<std::uint32_t> firstLink_{0};
    std::vector<LinkIndex> links_;          // of the routes, one after the other
    std::vector<LinkIndex> groupLinks_;     // the same, as indices within the group
    std::vector<double> groupCapacities_;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> groupOf_, indexInGroup_, groupRoutes_;
    std::vector<double> aloneRate_;
    bool allPrivate_ = true;

    std::vector<std::uint64_t> active_;     // a bit per route of each group
    std::vector<double> remaining_, rate_;  // bytes left at since_, bytes per second since then
    std::vector<Time> since_, finish_;
    std::vector<Bytes> flowBytes_, carried_;
    std::vector<std::uint32_t> dirty_;
    Time clock_;
    CalendarQueue<Completion> queue_;
    std::uint64_t solves_ = 0;

    FairShareScratch scratch_;
    std::vector<std::uint32_t> activeFirst_;
    std::vector<LinkIndex> activeLinks_;
    std::vector<double> activeRates_;
};

}  // namespace ringside
