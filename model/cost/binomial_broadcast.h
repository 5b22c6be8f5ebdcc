// Binomial broadcast, as Gloo writes it: when each rank has the buffer and is through with it.
//
// A rank that has the buffer sends it to all its children at once, and they share its link. Counted from the root, rank v > 0 has it
// from v without its highest bit. docs/models/gloo.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringside {

/// What one message of the whole buffer takes where it has the sender's link to itself.
struct BroadcastHop {
    double latency = 0, transfer = 0;  ///< seconds; only the transfer is shared
};

/// When each rank is through: it has the buffer, and so have its children. `entries[v]`: when the rank v places behind the root comes to
/// the broadcast, in seconds of any origin. A child that comes late leaves the link to the others. O(n · log n).
std::vector<double> binomialBroadcastTimes(std::span<const double> entries, BroadcastHop hop);

/// Of a broadcast whose ranks come together: how often the latency, and how often the transfer of one hop stand one behind another. 2^d
/// ranks: d and d·(d + 1)/2. REQUIRES: ranks ≥ 1. O(log ranks).
struct BroadcastDepth {
    double latencies = 0, transfers = 0;
};
BroadcastDepth binomialBroadcastDepth(std::int64_t ranks);

}  // namespace ringside
