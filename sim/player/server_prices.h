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

/// One direction of the way between workers and one server; both directions are alike (full duplex).
struct ServerPort {
    double bytesPerS = 0;                 ///< of the server's end, which all flows share
    std::vector<double> flowBytesPerS;    ///< per Cluster::nodes: what one worker there reaches towards one server
    Time latency;                         ///< of every message
    double bothWaysSlowdown = 1;          ///< of each direction while the other is in use, too
};

/// What messages and the server's work take from the core of a rank, where workers and the server compute with the same processors
/// that talk (docs/models/cpu-interference.md).
struct ServerCores {
    bool shared = false;                 ///< false: nothing is taken (GPUs, servers of their own)
    bool serverOnRank0 = false;          ///< what the server does is done on rank 0's core
    double perCall = 0, perByte = 0;     ///< processor seconds of one message at either end
    double copyPerByte = 0;              ///< copying a key between its tensors and a message
    std::uint32_t interference = 0;      ///< column of NodePrices::slowdown for a core that is taken

    Time messageTime(Bytes bytes) const { return Time::fromSeconds(perCall + perByte * static_cast<double>(bytes)); }
    Time copyTime(Bytes bytes) const { return Time::fromSeconds(copyPerByte * static_cast<double>(bytes)); }
};

/// Of one server; where there are several they are alike.
struct ServerPrices {
    ServerPort local, remote;             ///< workers of the server's own node, and the others
    std::int64_t localRanks = 0;          ///< ranks [0, localRanks) are local
    std::vector<Time> sum, apply;         ///< per key: adding one push, applying the sum
    ServerCores cores;
};

struct ServerScales {
    double network = 1, host = 1;  ///< what-if factors
    double extraLatencyUs = 0;     ///< what-if: of every message
    bool cores = true;             ///< false: paced compute, from which nothing can be taken
};

/// `kernels` are the prices of Schedule::kernels on rank 0's device. Fails (bad input) where a link's rate is not known or
/// servers cannot be reached.
Result<ServerPrices> priceServers(const Schedule& schedule, const Cluster& cluster, const std::vector<Profile>& profiles, const std::vector<Time>& kernels,
                                  const ServerScales& scales);

}  // namespace ringside
