// MessageNetwork: which links a message between two ranks crosses. Answered on demand, so that a million ranks cost nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/base/units.h"

namespace ringside {

class Topology;  // model/hardware/topology.h

/// One message's way: the links it shares with others, and the time after its last byte left until it has arrived.
struct MessageRoute {
    struct Link {
        std::uint64_t id = 0;
        double bytesPerSecond = 0;
    };
    std::vector<Link> links;  ///< at least one; a link named twice is used twice
    Time latency;

    void add(std::uint64_t id, double bytesPerSecond) { links.push_back({id, bytesPerSecond}); }
};

/// Turning all ranks on by `ranksPerTurn` maps the network onto itself. What lets a collective be folded.
struct RotationSymmetry {
    std::int64_t ranksPerTurn = 1;
    struct LinkClass {
        std::uint64_t id = 0;
        std::int64_t sharedBy = 1;  ///< turns that map the link onto itself: such a link serves so many copies
    };
    std::function<LinkClass(std::uint64_t link)> linkClass;
};

/// Ranks are numbered in ring order. `route` must be a pure function. Ids of links are free to choose; equal ids are one
/// link, and have one capacity.
struct MessageNetwork {
    std::int64_t ranks = 0;
    std::int64_t ranksPerNode = 1;  ///< for tree and hierarchical: consecutive ranks of one node
    std::function<void(std::int64_t source, std::int64_t destination, std::uint32_t lane, MessageRoute& route)> route;
    std::optional<RotationSymmetry> symmetry;
};

/// Every ordered pair of ranks has a wire of its own in each lane: nothing ever contends.
MessageNetwork uniformNetwork(std::int64_t ranks, double bytesPerSecond, Time latency);
/// Every rank has one port, full duplex, into a switch that never blocks.
MessageNetwork portNetwork(std::int64_t ranks, double bytesPerSecond, Time latency);

/// Nodes of devices: inside a node every device has a port into a switch; between nodes messages share the NICs.
struct SharedNicSpec {
    std::int64_t nodes = 1, devicesPerNode = 1;
    double intraBytesPerSecond = 0;  ///< per device and direction
    double nicBytesPerSecond = 0;    ///< per NIC and direction
    std::int64_t nicsPerNode = 1;    ///< device i uses NIC i·nics/devices
    Time intraLatency, nicLatency;
    /// NodeMajor: a ring passes through all devices of a node before it leaves it. DeviceMajor: every hop leaves the node,
    /// so that each NIC carries devices/NICs hops at once: what a bad order of ranks costs.
    enum class RankOrder : std::uint8_t { NodeMajor, DeviceMajor } order = RankOrder::NodeMajor;
    bool fullDuplexNics = true;      ///< false: both directions share a NIC's rate
    double coreBytesPerSecond = 0;   ///< one link that all traffic between nodes shares; 0: none
};
MessageNetwork sharedNicNetwork(const SharedNicSpec& spec);
MessageNetwork sharedNicNetwork(std::int64_t nodes, std::int64_t devicesPerNode, double intraBytesPerSecond, double nicBytesPerSecond,
                                std::int64_t nicsPerNode, Time intraLatency, Time nicLatency);

/// The links of a real topology between the given ranks, in this (ring) order. Link ids are the topology's.
/// Borrows `topology`, which must outlive the network. `hopLatency` (a library's own cost per message) is added to each
/// route's latency. REQUIRES: ranks are distinct and below topology.deviceCount().
MessageNetwork networkOf(const Topology& topology, std::span<const std::int64_t> ranks, Time hopLatency = Time());

}  // namespace ringside
