// ServerPlan: what workers and parameter servers must agree on before they talk: what each key is, which part of it each server has,
// and in which order a worker's messages come.
//
// Workers are the ranks of the schedule. A server on rank 0's device or in its host's memory lives in rank 0's process; dedicated
// servers are processes of their own, which come after the workers: process `world + i` is server i.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/result.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// Processes that a schedule needs: a worker per rank, and the dedicated servers.
std::int64_t processesOf(const Schedule& schedule);

/// A push or pull as one worker issues it.
struct ServerMessage {
    std::uint32_t key = 0;
    bool periodic = false;
    std::int64_t pushesBefore = 0;  ///< of the same key, earlier in the step: a pull comes after they have been applied
    std::int64_t pushes = 0;        ///< of the same key in a whole step
};

struct KeyPart {
    std::int64_t first = 0, elements = 0;
};

struct ServerPlan {
    struct Worker {
        std::vector<ServerMessage> pushes, pulls;  ///< in the order of their streams
        std::vector<std::int64_t> pullOf;          ///< per task of the program: its place in `pulls`, or −1
    };

    std::int64_t servers = 0;
    std::vector<std::int64_t> elements;                      ///< per key
    std::vector<std::vector<std::uint32_t>> parameters;      ///< per key: into the first worker's RankProgram::parameters, in order
    std::vector<Worker> workers;

    /// Every key is cut evenly, so that all servers have as much to do.
    KeyPart partOf(std::uint32_t key, std::int64_t server) const;
    /// A pull that follows its own push needs no asking: the push says that one is wanted.
    static bool asks(const ServerMessage& pull) { return pull.pushesBefore == 0; }
};

/// REQUIRES: the schedule has servers. Fails (missing capability) where workers push other tensors under the same key.
Result<ServerPlan> planServers(const Schedule& schedule);

/// Names of the channels between a worker and a server. Each is a group of two.
std::string channelName(const char* what, std::int64_t worker, std::int64_t server);
/// The process that runs the server.
std::int64_t processOf(const Schedule& schedule, std::int64_t server);

}  // namespace ringside
