#include "sim/resource/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "model/base/check.h"

namespace ringside {

namespace {

// Union-find with path halving.
std::uint32_t rootOf(std::vector<std::uint32_t>& parent, std::uint32_t x) {
    while (parent[x] != x) x = parent[x] = parent[parent[x]];
    return x;
}

}  // namespace

RouteId FlowNetwork::addRoute(std::span<const LinkIndex> links) {
    CHECK(groups_.empty() && !links.empty());
    for (const LinkIndex link : links) CHECK(link < capacities_.size());
    links_.insert(links_.end(), links.begin(), links.end());
    firstLink_.push_back(static_cast<std::uint32_t>(links_.size()));
    return static_cast<RouteId>(firstLink_.size() - 2);
}

void FlowNetwork::freeze() {
    CHECK(groups_.empty());
    const std::uint32_t routes = static_cast<std::uint32_t>(routeCount());
    std::vector<std::uint32_t> parent(capacities_.size());
    std::iota(parent.begin(), parent.end(), 0u);
    for (RouteId r = 0; r < routes; ++r)
        for (std::uint32_t i = firstLink_[r] + 1; i < firstLink_[r + 1]; ++i)
            parent[rootOf(parent, links_[i])] = rootOf(parent, links_[firstLink_[r]]);

    // Groups are numbered by their first route, and list their routes in order.
    groupOf_.resize(routes);
    indexInGroup_.resize(routes);
    std::vector<std::uint32_t> groupOfRoot(capacities_.size(), ~0u);
    for (RouteId r = 0; r < routes; ++r) {
        std::uint32_t& group = groupOfRoot[rootOf(parent, links_[firstLink_[r]])];
        if (group == ~0u) {
            group = static_cast<std::uint32_t>(groups_.size());
            groups_.emplace_back();
        }
        groupOf_[r] = group;
        indexInGroup_[r] = groups_[group].routeCount++;
    }
    std::uint32_t nextRoute = 0, nextWord = 0;
    for (Group& group : groups_) {
        group.firstRoute = nextRoute;
        group.firstWord = nextWord;
        group.wordCount = (group.routeCount + 63) / 64;
        nextRoute += group.routeCount;
        nextWord += group.wordCount;
        if (group.routeCount > 1) allPrivate_ = false;
    }
    groupRoutes_.resize(routes);
    for (RouteId r = 0; r < routes; ++r) groupRoutes_[groups_[groupOf_[r]].firstRoute + indexInGroup_[r]] = r;

    // Links by group, so that the solver sees nothing of the others.
    groupLinks_.resize(links_.size());
    std::vector<LinkIndex> localOf(capacities_.size(), ~0u);
    for (Group& group : groups_) {
        group.firstLink = static_cast<std::uint32_t>(groupCapacities_.size());
        for (std::uint32_t i = 0; i < group.routeCount; ++i) {
            const RouteId r = groupRoutes_[group.firstRoute + i];
            for (std::uint32_t k = firstLink_[r]; k < firstLink_[r + 1]; ++k) {
                LinkIndex& local = localOf[links_[k]];
                if (local == ~0u) {
                    local = static_cast<LinkIndex>(groupCapacities_.size() - group.firstLink);
                    groupCapacities_.push_back(capacities_[links_[k]]);
                }
                groupLinks_[k] = local;
            }
        }
        group.linkCount = static_cast<std::uint32_t>(groupCapacities_.size()) - group.firstLink;
    }

    active_.assign(nextWord, 0);
    remaining_.assign(routes, 0);
    rate_.assign(routes, 0);
    since_.assign(routes, Time());
    finish_.assign(routes, kIdle);
    flowBytes_.assign(routes, 0);
    carried_.assign(routes, 0);
    aloneRate_.resize(routes);
    for (RouteId r = 0; r < routes; ++r) {
        const Group& group = groups_[groupOf_[r]];
        const std::uint32_t first[2] = {0, firstLink_[r + 1] - firstLink_[r]};
        maxMinFairShare(std::span(groupCapacities_).subspan(group.firstLink, group.linkCount),
                        FlowPaths{first, std::span(groupLinks_).subspan(firstLink_[r], first[1])}, std::span(&aloneRate_[r], 1), scratch_);
    }
}

Time FlowNetwork::transferTime(double bytes, double rate) { return Time::fromSeconds(bytes / rate); }

void FlowNetwork::moveClock(Time now) {
    if (now == clock_) return;
    CHECK(now > clock_);
    settle();
    clock_ = now;
}

void FlowNetwork::touch(std::uint32_t group) {
    if (groups_[group].dirty) return;
    groups_[group].dirty = true;
    dirty_.push_back(group);
}

void FlowNetwork::start(RouteId route, Bytes bytes, Time now) {
    CHECK(finish_[route] == kIdle && bytes >= 0);
    moveClock(now);
    const std::uint32_t index = groupOf_[route];
    Group& group = groups_[index];
    remaining_[route] = static_cast<double>(bytes);
    flowBytes_[route] = bytes;
    rate_[route] = 0;
    since_[route] = now;
    finish_[route] = Time::max();
    active_[group.firstWord + indexInGroup_[route] / 64] |= std::uint64_t{1} << (indexInGroup_[route] % 64);
    ++group.activeCount;
    touch(index);
}

Time FlowNetwork::nextCompletion() {
    settle();
    while (!queue_.empty()) {
        const auto& event = queue_.peek();
        if (groups_[event.payload.group].generation == event.payload.generation) return event.time;
        queue_.pop();  // stale: the group's earliest completion has moved since
    }
    return Time::max();
}

void FlowNetwork::complete(Time now, std::vector<RouteId>& done) {
    moveClock(now);
    while (!queue_.empty() && queue_.peekTime() <= now) {
        const Completion completion = queue_.pop().payload;
        Group& group = groups_[completion.group];
        if (group.generation != completion.generation) continue;
        for (std::uint32_t w = 0; w < group.wordCount; ++w) {
            for (std::uint64_t bits = active_[group.firstWord + w]; bits != 0; bits &= bits - 1) {
                const std::uint32_t i = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
                const RouteId route = groupRoutes_[group.firstRoute + i];
                if (finish_[route] > now) continue;
                active_[group.firstWord + w] &= ~(std::uint64_t{1} << (i % 64));
                --group.activeCount;
                finish_[route] = kIdle;
                carried_[route] += flowBytes_[route];
                done.push_back(route);
            }
        }
        ++group.generation;
        group.next = Time::max();
        touch(completion.group);
    }
}

void FlowNetwork::settle() {
    for (const std::uint32_t index : dirty_) settleGroup(index);
    dirty_.clear();
}

void FlowNetwork::settleGroup(std::uint32_t index) {
    Group& group = groups_[index];
    group.dirty = false;
    Time next = Time::max();
    if (group.activeCount > 0) {
        const std::span<const double> rates = ratesOf(group);
        for (std::uint32_t w = 0; w < group.wordCount; ++w) {
            for (std::uint64_t bits = active_[group.firstWord + w]; bits != 0; bits &= bits - 1) {
                const std::uint32_t i = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
                const RouteId route = groupRoutes_[group.firstRoute + i];
                // A flow is touched only when its rate changes: its finish then depends on its own history alone.
                if (rates[i] != rate_[route]) {
                    if (rate_[route] > 0) remaining_[route] = std::max(0.0, remaining_[route] - rate_[route] * (clock_ - since_[route]).seconds());
                    rate_[route] = rates[i];
                    since_[route] = clock_;
                    finish_[route] = clock_ + transferTime(remaining_[route], rates[i]);
                }
                next = std::min(next, finish_[route]);
            }
        }
    }
    if (next == group.next) return;
    group.next = next;
    ++group.generation;
    if (next < Time::max()) queue_.push(next, 0, Completion{index, group.generation});
}

std::span<const double> FlowNetwork::ratesOf(Group& group) {
    const std::uint64_t* set = active_.data() + group.firstWord;
    const std::size_t entries = group.cachedSets.size() / group.wordCount;
    const auto isEntry = [&](std::size_t e) { return std::equal(set, set + group.wordCount, group.cachedSets.data() + e * group.wordCount); };
    const auto entry = [&](std::size_t e) {
        group.lastHit = static_cast<std::uint32_t>(e);
        return std::span<const double>(group.cachedRates.data() + e * group.routeCount, group.routeCount);
    };
    // In a steady rhythm the sets follow each other in the order in which they were first seen.
    for (std::size_t k = 0, e = group.lastHit; k < entries; ++k, ++e) {
        if (e >= entries) e = 0;
        if (isEntry(e)) return entry(e);
    }
    std::size_t e = entries;
    if (entries < kCachedSets) {
        group.cachedSets.resize((entries + 1) * group.wordCount);
        group.cachedRates.resize((entries + 1) * group.routeCount);
    } else {
        e = group.nextEvicted;
        group.nextEvicted = (group.nextEvicted + 1) % kCachedSets;
    }
    std::copy(set, set + group.wordCount, group.cachedSets.data() + e * group.wordCount);
    solve(group, std::span(group.cachedRates).subspan(e * group.routeCount, group.routeCount));
    return entry(e);
}

void FlowNetwork::solve(const Group& group, std::span<double> rates) {
    ++solves_;
    activeFirst_.assign(1, 0);
    activeLinks_.clear();
    for (std::uint32_t i = 0; i < group.routeCount; ++i) {
        if (!((active_[group.firstWord + i / 64] >> (i % 64)) & 1)) continue;
        const RouteId route = groupRoutes_[group.firstRoute + i];
        activeLinks_.insert(activeLinks_.end(), groupLinks_.begin() + firstLink_[route], groupLinks_.begin() + firstLink_[route + 1]);
        activeFirst_.push_back(static_cast<std::uint32_t>(activeLinks_.size()));
    }
    activeRates_.resize(activeFirst_.size() - 1);
    maxMinFairShare(std::span(groupCapacities_).subspan(group.firstLink, group.linkCount), FlowPaths{activeFirst_, activeLinks_}, activeRates_,
                    scratch_);
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < group.routeCount; ++i)
        rates[i] = (active_[group.firstWord + i / 64] >> (i % 64)) & 1 ? activeRates_[next++] : 0;
}

std::vector<double> FlowNetwork::bytesPerLink() const {
    std::vector<double> bytes(capacities_.size(), 0.0);
    for (RouteId r = 0; r < routeCount(); ++r)
        for (std::uint32_t i = firstLink_[r]; i < firstLink_[r + 1]; ++i) bytes[links_[i]] += static_cast<double>(carried_[r]);
    return bytes;
}

void FlowNetwork::appendState(Time now, std::vector<std::int64_t>& state) {
    settle();
    for (RouteId r = 0; r < routeCount(); ++r) {
        if (finish_[r] == kIdle) {
            state.push_back(-1);
            continue;
        }
        state.push_back((now - since_[r]).picoseconds());
        state.push_back((finish_[r] - now).picoseconds());
        state.push_back(std::bit_cast<std::int64_t>(remaining_[r]));
        state.push_back(std::bit_cast<std::int64_t>(rate_[r]));
    }
}

void FlowNetwork::shiftTime(Time shift) {
    settle();
    clock_ += shift;
    for (RouteId r = 0; r < routeCount(); ++r) {
        if (finish_[r] == kIdle) continue;
        since_[r] += shift;
        finish_[r] += shift;
    }
    queue_.clear();
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
        if (groups_[g].next == Time::max()) continue;
        groups_[g].next += shift;
        queue_.push(groups_[g].next, 0, Completion{g, groups_[g].generation});
    }
}

}  // namespace ringside
