// Prices: how long each piece of a Schedule's work takes on a given cluster. The Player knows only these, no formula.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/result.h"
#include "model/cost/binomial_broadcast.h"
#include "model/cost/collective_cost.h"
#include "model/cost/compute_cost.h"
#include "model/cost/profile.h"
#include "model/hardware/cluster.h"
#include "sim/player/server_prices.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// Closed: the backend's formula. Message: every message as a flow over the cluster's links.
enum class CollectiveLevel : std::uint8_t { Closed, Message };

struct PricingOptions {
    CollectiveBackend backend = CollectiveBackend::Nccl;
    CollectiveOptions collectives;
    CollectiveLevel level = CollectiveLevel::Closed;
    // What-if factors: 1.1 makes that resource 10 % faster.
    double computeScale = 1, memoryScale = 1, networkScale = 1, hostScale = 1;
    double extraLatencyUs = 0;  ///< of every collective of more than one rank, and of every message to or from a server
    Framework framework = Framework::PyTorch;  ///< whose launches the host pays for
    bool cpuInterference = true;  ///< false: kernels take no processor time (paced compute); collectives still share the wire
};

/// The expected largest of `n` standard normal numbers: 0 for one, 1.42 for 8, 3.25 for 1,024.
double expectedMaximum(std::int64_t n);

struct CollectivePrice {
    Time duration;
    CollectiveCost cost;
    std::uint32_t interference = 0;  ///< which column of NodePrices::slowdown applies while it runs
    double slowdownByCompute = 1;    ///< how much slower it runs while a kernel runs on one of its ranks
    double busyShare = 0;            ///< of its ranks' cores or links, which it needs to be as fast as that; several at a time share them
    std::optional<BroadcastHop> tree;  ///< of a broadcast through a binomial tree, whose ranks come and go one by one
    bool idleWhileWaiting = false;   ///< a rank that waits for its peers takes nothing from kernels (a sleeping thread, not a spinning kernel)
};

/// What work costs on one kind of node.
struct NodePrices {
    std::vector<Time> kernels;                 ///< by Schedule::kernels, running alone
    std::vector<std::vector<float>> slowdown;  ///< [interference][kernel]: factor while such a collective runs beside it
    std::vector<Time> copies;
    std::vector<Time> hostWorks;
    Time launch, collectiveLaunch, furtherLaunch;  ///< of a kernel; of a collective; of each further kernel that one task stands for
    std::size_t runAhead = 0;  ///< tasks that the host issues to a stream ahead of the one that runs; 0: as many as it can
    bool oneCore = false;  ///< kernels of several streams share the rank's core: each is as many times slower as there are
};

struct Prices {
    std::vector<NodePrices> nodes;             ///< by Cluster::nodes
    std::vector<CollectivePrice> collectives;  ///< by Schedule::collectives
    ServerPrices servers;                      ///< where Schedule::servers are
    bool waveQuantised = true;                 ///< false where a device's multiprocessor count is unknown
};

/// What it takes the host to issue the task, which is no host task. A kernel that is part of a graph came with the graph.
Time launchTime(const Schedule& schedule, const NodePrices& node, const Task& task);

/// `profiles` has one entry per Cluster::nodes. Fails (bad input) where a device lacks a figure that is needed.
Result<Prices> priceSchedule(const Schedule& schedule, const Cluster& cluster, const std::vector<Profile>& profiles, DType math,
                             const PricingOptions& options);

}  // namespace ringside
