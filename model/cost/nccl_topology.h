// NCCL topology: the channels and the bandwidth per channel that NCCL's graph search finds, in closed form.
//
// NCCL searches ring, tree and multicast patterns over the machine's graph at listed speeds. For the node kinds that are
// described here (all devices alike, one kind of link) the outcome follows from capacities; docs/models/nccl.md derives it.
#pragma once

#include <cstdint>

#include "model/base/result.h"
#include "model/cost/collective_options.h"
#include "model/cost/nccl_constants.h"
#include "model/hardware/cluster.h"

namespace ringside::nccl {

/// What a search returns: that many channels, GB/s each within a node and between nodes.
struct Graph {
    int channels = 0;
    double bwIntra = 0, bwInter = 0;
};

/// The best ring set: the most channels × speed over the listed speeds, tried fastest first until half the best.
/// `intraGbPerS`: what a device can pass on along rings; `maxSpeed`: fastest single channel; `nics` (0: one node) each
/// carry whole channels within `nicGbPerS`. One channel of 0.1 GB/s where nothing fits, as NCCL falls back.
Graph searchRing(std::span<const double> speeds, double intraGbPerS, double maxSpeed, std::int64_t nics, double nicGbPerS);
/// From 25 GB/s per channel on, channels are doubled at half the speed (not above compute capability 8.0 where there are
/// more than four channels slower than 50 GB/s).
Graph duplicateChannels(Graph graph, double computeCapability);
/// NVLS on one node: every device is a head, each charged (heads + 1) times on its NVLinks. No channels where none fits.
Graph searchNvls(std::span<const double> speeds, std::int64_t heads, double nvlinkGbPerS);
/// The same across nodes, where a head also needs a NIC.
Graph searchNvlsInter(std::span<const double> speeds, std::int64_t ranksPerNode, double nvlinkGbPerS, std::int64_t nics, double nicGbPerS);

/// Everything the cost formulas need to know about one communicator.
struct Topology {
    Generation generation = Generation::Ampere;
    double computeCapability = 8.0;
    bool nvidia = true;              ///< false: RCCL over xGMI, an approximation
    bool nvlink = false;             ///< hops within a node are NVLink (or xGMI) hops
    bool nvswitch = false;
    bool ll128 = false;              ///< LL128 is on by default here
    bool amdCpu = false, x86 = true;
    bool sameChannels = true;        ///< every channel follows the same ring
    std::int64_t ranks = 1, nodes = 1;
    double ranksPerNode = 1;
    double nicLatencyUs = 0;         ///< added to a network hop
    double netOverheadUs = 0;        ///< host time to post one network transfer; 0 on one node
    double netShare = 1;             ///< part of the NICs' rate that this group gets beside others; NCCL does not know of it
    Graph ring, tree, nvls, collNet; ///< no channels: pattern not available
    double nvlinkGbPerS = 0;         ///< all NVLinks of a device as NCCL counts them; 0 without
    double pointToPointGbPerS = 0;   ///< one rank to others of its node
    double netGbPerSPerRank = 0;     ///< a rank's share of its node's NICs, all ranks sending
    double netGbPerSOneRank = 0;     ///< one rank sending alone
    double fabricShare = 1;          ///< part of the network rate left where all talk to all across an oversubscribed core
};

/// Fails (bad input) where the group does not fit the cluster, or a figure is missing; the error names it.
Result<Topology> describeTopology(const Cluster& cluster, const GroupShape& group, NcclVersion version, bool networkReduces);

}  // namespace ringside::nccl
