// Servers: who keeps the parameters where workers push gradients and pull parameters, and the messages that go there.
//
// A key is what travels in one message: the parameters of a layer. With k servers every key is cut evenly over them, so
// that all servers do the same at the same time: they are described, and played, once.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"

namespace ringside {

/// Device: rank 0's. Host: the host memory of rank 0's node. Nodes: dedicated nodes like the workers', reached by their NICs.
enum class ServerPlacement : std::uint8_t { Device, Host, Nodes };

/// Sync: a key is applied once, when every worker's push of it has been added up; pulls of it wait for that.
/// Async: every push is applied by itself as it comes; a pull takes what there is.
/// BoundedStaleness: as Async, but a worker begins its step c only when the slowest has done c − staleness.
enum class ServerDiscipline : std::uint8_t { Sync, Async, BoundedStaleness };

/// What the server does with a key. On a device these are kernels, on a host bytes through its memory.
struct ServerKey {
    std::uint32_t sumKernel = 0;                    ///< into Schedule::kernels: adds one push to the sum
    std::uint32_t firstApply = 0, applyKernels = 0; ///< likewise: the optimizer's kernels, one after another
    double sumBytes = 0, applyBytes = 0;            ///< the same on a host
};

struct ParameterServers {
    std::int64_t count = 0;   ///< servers; 0: the schedule has none
    ServerPlacement placement = ServerPlacement::Nodes;
    ServerDiscipline discipline = ServerDiscipline::Sync;
    std::int64_t staleness = 0;
    std::vector<ServerKey> keys;
};

/// A push or pull of one key, by one worker.
struct MessageWork {
    Bytes bytes = 0;          ///< of the whole key, over all servers; 0 where the worker is the server's own device
    std::uint32_t key = 0;

    bool operator==(const MessageWork&) const = default;
};

}  // namespace ringside
