// Server prices: what the links of parameter servers carry and how long their work takes on a given cluster.
// Formulas: docs/models/parameter-server.md.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/result.h"
#include "model/cost/profile.h"
#include "model/hardware/cluster.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// One direction of the way between workers and one server; both directions are alike and apart (full duplex).
struct ServerPort {
    double bytesPerS = 0;                 ///< of the server's end, which all flows share
    std::vector<double> flowBytesPerS;    ///< per Cluster::nodes: what one worker there reaches towards one server
    Time latency;                         ///< of every message
};

/// Of one server; where there are several they are alike.
struct ServerPrices {
    ServerPort local, remote;             ///< workers of the server's own node, and the others
    std::int64_t localRanks = 0;          ///< ranks [0, localRanks) are local
    std::vector<Time> sum, apply;         ///< per key: adding one push, applying the sum

    const ServerPort& portOf(std::int64_t rank) const { return rank < localRanks ? local : remote; }
};

struct ServerScales {
    double network = 1, host = 1;  ///< what-if factors
};

/// `kernels` are the prices of Schedule::kernels on rank 0's device. Fails (bad input) where a link's rate is not known or
/// servers cannot be reached.
Result<ServerPrices> priceServers(const Schedule& schedule, const Cluster& cluster, const std::vector<Profile>& profiles, const std::vector<Time>& kernels,
                                  const ServerScales& scales);

}  // namespace ringside
