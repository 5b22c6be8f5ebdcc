// ServerClient: a worker's end of its talk with parameter servers in other processes.
//
// One channel for pushes, one for pulls and one for the clock, each a group of two, since messages of one may overtake those of
// another. Data lie in host memory. push() and pull() may run at the same time, each in one thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "calibrate/comm/communicator.h"
#include "calibrate/execute/server_plan.h"

namespace ringside {

/// A tensor, or a part of one, in host memory.
struct TensorPiece {
    float* data = nullptr;
    std::int64_t elements = 0;
};

class ServerClient {
public:
    /// Borrows the plan. Connects to every server, in order.
    static Result<std::unique_ptr<ServerClient>> connect(const Schedule& schedule, const ServerPlan& plan, std::int64_t worker, CommWorld& world);

    /// The pieces, one after another, are the key. Done when all servers have got their parts.
    Result<void> push(std::uint32_t key, std::span<const TensorPiece> pieces);
    Result<void> pull(const ServerMessage& message, std::span<const TensorPiece> pieces);
    /// Bounded staleness: waits until this worker may begin the step. Else returns at once.
    Result<void> beginStep(std::int64_t step);

private:
    struct Channels {
        std::unique_ptr<Communicator> push, pull;
        int other = 0;  // the server's place in the groups
    };

    explicit ServerClient(const ServerPlan& plan) : plan_(plan) {}

    const ServerPlan& plan_;
    std::vector<Channels> servers_;
    std::unique_ptr<Communicator> clock_;
    std::vector<float> pushLine_, pullLine_;
};

}  // namespace ringside
