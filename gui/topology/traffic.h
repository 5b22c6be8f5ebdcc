// Traffic: which ranks sent how much to whom in a stretch of time, and what that puts on each link. Rules: docs/models/link-load.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/hardware/topology.h"
#include "sim/prediction.h"
#include "traces/trace.h"

namespace ringside::gui {

enum class TrafficPattern : std::uint8_t {
    Ring,      ///< each rank sends to the next one of its group
    AllToAll,  ///< each rank sends the same to every other one
    Send,      ///< the first rank sends to the second
};

/// What one group of ranks sent.
struct GroupTraffic {
    TrafficPattern pattern = TrafficPattern::Ring;
    std::vector<std::int64_t> ranks;  ///< in the group's order
    double bytesPerRank = 0;          ///< that each rank (Send: the first) put on the wire
};

struct Traffic {
    std::vector<GroupTraffic> groups;
    std::size_t unplaced = 0;  ///< communication slices in the range whose bytes or group nobody knows
};

/// Of a predicted step: every group of every axis, also those of ranks that are not drawn. A collective that is only partly in
/// [begin, end) counts in proportion. O(tasks + groups).
Traffic trafficOf(const Prediction& prediction, Time begin, Time end);
/// Of any trace: collectives with bytes and ranks. One that several ranks recorded counts once. O(slices).
Traffic trafficOf(const Trace& trace, Time begin, Time end);

/// Bytes that each link carried, by LinkId. Groups with ranks outside the cluster are left out.
/// A ring that spans nodes is laid as often as the group has ranks in a node, each time leaving the node from another device, so
/// that all NICs work; the rings share the bytes evenly.
std::vector<double> bytesOnLinks(const Topology& topology, std::span<const GroupTraffic> traffic);

/// The orders in which the rings of a group pass its ranks. REQUIRES: ranks are in the cluster.
std::vector<std::vector<std::int64_t>> ringOrders(const Cluster& cluster, std::span<const std::int64_t> ranks);

/// Part of what the link could have carried in that time. 0 for an empty stretch.
double loadOf(double bytes, const TopologyLink& link, Time length);

}  // namespace ringside::gui
