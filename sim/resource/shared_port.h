// SharedPort: one link that many flows share at once, each of them held below a rate of its own: the port of a parameter
// server, into which every worker sends.
//
// Processor sharing: with capacity C and flows i of cap cᵢ, a flow runs at min(cᵢ, λ), where λ is the fair level with
// Σ min(cᵢ, λ) = C (or no level at all, where the caps leave room). Flows of one cap are a group with a virtual time: the
// bytes that a flow would have got had it been there since the group was last empty. A flow ends when its group's virtual
// time has grown by its bytes, whoever comes and goes meanwhile: exact, without touching the other flows.
//
// A flow of multiplicity m stands for m equal flows: m of them started at one instant give the same times.
// Cost per start or end: O(log flows + groups). Model page: docs/models/parameter-server.md.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"

namespace ringside {

class SharedPort {
public:
    using Tag = std::uint64_t;      ///< whatever the caller wants back when the flow has ended
    using Group = std::uint32_t;

    /// REQUIRES: bytesPerS > 0.
    explicit SharedPort(double bytesPerS);

    /// The group of flows that are each held below `flowBytesPerS` (> 0); the same one for the same cap. O(groups).
    Group groupOf(double flowBytesPerS);
    /// REQUIRES: now is not before the last call, bytes ≥ 0, multiplicity ≥ 1.
    void start(Time now, Group group, double bytes, std::int64_t multiplicity, Tag tag);
    /// When the next flow ends if none is started before; Time::max() without flows. Never before the last call. O(1).
    Time nextEnd() const { return nextEnd_; }
    /// Takes out the flows that end at nextEnd(), and appends their tags in the order in which they were started.
    /// REQUIRES: now == nextEnd().
    void finish(Time now, std::vector<Tag>& ended);

    /// From now on the port carries so much; flows keep what they have got. REQUIRES: now is not before the last call, bytesPerS > 0.
    void setRate(Time now, double bytesPerS);

    std::int64_t active() const { return active_; }  ///< flows, each counted with its multiplicity

private:
    struct Flow {
        double endsAt;          // in the group's virtual time
        std::uint64_t order;    // of starting
        std::int64_t multiplicity;
        Tag tag;
        bool operator>(const Flow& other) const { return endsAt != other.endsAt ? endsAt > other.endsAt : order > other.order; }
    };
    struct FlowGroup {
        double cap = 0, rate = 0, virtualTime = 0;
        std::int64_t active = 0;
        std::vector<Flow> flows;  // a heap: the next to end first
    };

    void advance(Time now);
    void share();

    double capacity_;
    std::vector<FlowGroup> groups_;   // in the order of asking
    std::vector<Group> byCap_;        // group ids by rising cap
    Time now_, nextEnd_ = Time::max();
    Group nextGroup_ = 0;
    std::int64_t active_ = 0;
    std::uint64_t started_ = 0;
};

}  // namespace ringside
