// TcpStore: a KeyValueStore over TCP. Rank 0 serves it in a thread of its own (tcp_store_server.h); every rank, 0 included, is a client.
#pragma once

#include <memory>

#include "calibrate/ranks/key_value_store.h"
#include "calibrate/ranks/rank_env.h"

namespace ringside {

/// Rank 0 starts the server at env.masterAddress:masterPort (or on env.listenSocket, which it then owns); all connect to it.
/// Fails (runtime failure) when the port is in use, when rank 0 does not answer within the time-out, or when something else does.
/// Rank 0's store, when destroyed, waits a moment for the others to leave, so that none loses the answer it waits for.
Result<std::unique_ptr<KeyValueStore>> makeTcpStore(const RankEnv& env, std::chrono::milliseconds timeout);

}  // namespace ringside
