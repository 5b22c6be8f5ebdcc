// Broadcasts of one communicator, one behind another: a rank that has passed the buffer on begins the next while others still receive.
//
// The Player ends a collective everywhere at once, when its last rank is through. What this keeps is by how much the others were
// earlier, so that the next broadcast begins with each rank where that one really is. docs/models/player.md.
#pragma once

#include <span>
#include <vector>

#include "model/base/units.h"
#include "model/cost/binomial_broadcast.h"

namespace ringside {

class BroadcastRow {
public:
    /// All ranks have come to a broadcast. `ready`: by position, when each could have begun but for the collective before it. What is left until the last
    /// one is through. REQUIRES: no entry lies behind now.
    Time begin(Time now, std::span<const Time> ready, std::size_t root, BroadcastHop hop);
    /// The collective that ran is over, a broadcast or another.
    void end(Time now);

private:
    Time ended_;
    std::vector<Time> lead_, nextLead_;  // by position: how much earlier it was through; empty: none was
};

}  // namespace ringside
