#include "sim/resource/shared_port.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "model/base/check.h"

namespace ringside {

SharedPort::SharedPort(double bytesPerS) : capacity_(bytesPerS) { CHECK(bytesPerS > 0); }

SharedPort::Group SharedPort::groupOf(double flowBytesPerS) {
    CHECK(flowBytesPerS > 0);
    for (Group g = 0; g < groups_.size(); ++g)
        if (groups_[g].cap == flowBytesPerS) return g;
    groups_.emplace_back().cap = flowBytesPerS;
    byCap_.push_back(static_cast<Group>(groups_.size() - 1));
    std::sort(byCap_.begin(), byCap_.end(), [&](Group a, Group b) { return groups_[a].cap < groups_[b].cap; });
    return static_cast<Group>(groups_.size() - 1);
}

void SharedPort::start(Time now, Group group, double bytes, std::int64_t multiplicity, Tag tag) {
    advance(now);
    FlowGroup& g = groups_[group];
    if (g.active == 0) g.virtualTime = 0;  // small numbers are exact ones
    g.flows.push_back({g.virtualTime + bytes, started_++, multiplicity, tag});
    std::push_heap(g.flows.begin(), g.flows.end(), std::greater<>());
    g.active += multiplicity;
    active_ += multiplicity;
    share();
}

void SharedPort::setRate(Time now, double bytesPerS) {
    CHECK(bytesPerS > 0);
    if (bytesPerS == capacity_) return;
    advance(now);
    capacity_ = bytesPerS;
    share();
}

void SharedPort::advance(Time now) {
    CHECK(now >= now_);
    if (now == now_) return;
    const double seconds = (now - now_).seconds();
    for (FlowGroup& g : groups_)
        if (g.active > 0) g.virtualTime = std::min(g.virtualTime + g.rate * seconds, g.flows.front().endsAt);
    now_ = now;
}

// Groups by rising cap: one whose cap lies below an even share of what is left takes its cap, and leaves the rest more.
void SharedPort::share() {
    double left = capacity_;
    std::int64_t flows = active_;
    nextEnd_ = Time::max();
    for (const Group id : byCap_) {
        FlowGroup& g = groups_[id];
        if (g.active == 0) continue;
        g.rate = std::min(g.cap, left / static_cast<double>(flows));
        left -= g.rate * static_cast<double>(g.active);
        flows -= g.active;
        const double seconds = (g.flows.front().endsAt - g.virtualTime) / g.rate;
        const Time end = now_ + Time::fromSeconds(std::max(0.0, seconds));
        if (end < nextEnd_) {
            nextEnd_ = end;
            nextGroup_ = id;
        }
    }
}

void SharedPort::finish(Time now, std::vector<Tag>& ended) {
    CHECK(now == nextEnd_);
    advance(now);
    FlowGroup& g = groups_[nextGroup_];
    const double reached = g.flows.front().endsAt;  // rounding to picoseconds may have stopped just short of it
    g.virtualTime = reached;
    while (!g.flows.empty() && g.flows.front().endsAt <= reached) {
        std::pop_heap(g.flows.begin(), g.flows.end(), std::greater<>());
        const Flow& flow = g.flows.back();
        ended.push_back(flow.tag);
        g.active -= flow.multiplicity;
        active_ -= flow.multiplicity;
        g.flows.pop_back();
    }
    share();
}

}  // namespace ringside
