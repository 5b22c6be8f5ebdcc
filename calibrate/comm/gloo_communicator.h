// Communicators over Gloo's TCP transport: the CPU's collectives. Calls block until this rank's part is done.
//
// All-reduce, all-gather, broadcast, reduce and barrier are Gloo's (ring, ring, binomial tree, ring, dissemination); reduce-scatter is
// ring_reduce_scatter.h. Groups are independent: collectives of two of them may run at once, each in a thread of its own.
// Failures are runtime failures that name the operation, the group and the bytes; a communicator that failed is of no further use.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "calibrate/comm/communicator.h"
#include "calibrate/ranks/key_value_store.h"
#include "calibrate/ranks/rank_env.h"

namespace ringside {

struct GlooWorldOptions {
    /// Who this is and where rank 0 is; launcher and local rank do not matter here.
    RankEnv env;
    /// How ranks meet: this store; else a folder (new for each run) that all see; else TCP to env.masterAddress:masterPort.
    std::shared_ptr<KeyValueStore> store;
    std::string storeFolder;
    /// Where this rank can be reached: an interface ("eth0"), or a name or address of this machine. Neither: the address from which
    /// it reaches the store, or loopback if that is not over TCP.
    std::string interface, hostname;
    /// Until all have come, and of each operation.
    std::chrono::milliseconds timeout{60'000};
};

/// Waits until all ranks are there. Fails (runtime failure) when some are not within the time-out, naming them; when the port is in use.
/// Lets this process ignore SIGPIPE, which Gloo raises when another rank dies.
Result<std::unique_ptr<CommWorld>> makeGlooWorld(const GlooWorldOptions& options);

}  // namespace ringside
