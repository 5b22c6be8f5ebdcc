// ParameterServer: adds up what workers push, applies the optimizer and answers their pulls, for real.
//
// A thread per worker receives its pushes, one answers its pulls, one keeps its clock where staleness is bounded. Synchronously a
// key's pushes are added in the order of ranks, whoever came first: the sum is the same in every run. Kernels run one after
// another on the device's host thread, which is a CPU's: REQUIRES device.info().kind == "cpu".
// docs/models/parameter-server.md tells the disciplines.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "calibrate/comm/communicator.h"
#include "calibrate/execute/bind_program.h"
#include "calibrate/execute/server_client.h"
#include "calibrate/execute/server_memory.h"
#include "calibrate/execute/server_plan.h"
#include "kernels/device.h"

namespace ringside {

/// Paced: seconds that adding a push and applying a key take, slept instead of computed.
struct ServerPace {
    double sum = 0, apply = 0;
};

struct ServerOptions {
    Hyperparameters hyper;
    std::uint64_t seed = 1;
    std::vector<ServerPace> pace;  ///< per key; empty: compute
};

/// What an asynchronous server has seen.
struct ServerRecord {
    std::int64_t largestStaleness = 0;  ///< updates of a key by others between a worker's pull and its push's application
    std::int64_t largestLead = 0;       ///< steps that a worker was ahead of the slowest when it began one (bounded staleness)
    std::int64_t applied = 0;           ///< updates of all keys
};

class ParameterServer {
public:
    /// Server `index` in a process of its own: process `world + index` (server_plan.h). Waits until all workers have connected.
    static Result<std::unique_ptr<ParameterServer>> dedicated(const Schedule& schedule, std::int64_t index, const TrainingConfig& training, ComputeDevice& device, CommWorld& world,
                                                              ServerOptions options);
    /// The server in rank 0's process. Borrows the store.
    static Result<std::unique_ptr<ParameterServer>> besideRank0(const Schedule& schedule, const TrainingConfig& training, const RankProgram& program, const TensorStore& store, ComputeDevice& device,
                                                                CommWorld& world, ServerOptions options);
    ~ParameterServer();

    /// Serves steps up to this one (excluded); returns at once.
    void allow(std::int64_t steps);
    /// Waits until every worker has been served in all steps that are allowed.
    Result<void> waitUntilDone();
    /// All of it, for a dedicated server.
    Result<void> serve(std::int64_t steps) {
        allow(steps);
        return waitUntilDone();
    }

    /// Rank 0's own messages, where the server is in its process. `round`: how often the step's messages were exchanged before.
    Result<void> pushHere(std::uint32_t key, std::span<const TensorPiece> pieces);
    Result<void> pullHere(const ServerMessage& message, std::int64_t round, std::span<const TensorPiece> pieces);

    ServerRecord record() const;

private:
    struct KeyState {
        std::vector<BoundCall> apply;
        std::int64_t turn = 0;      // synchronous: whose push is added next
        std::int64_t version = 0;   // updates
        std::int64_t answered = 0;  // pulls
        std::vector<std::int64_t> applied, seen;  // per worker: its own pushes; the version it pulled last
    };
    struct Worker {
        std::unique_ptr<Communicator> push, pull, clock;  // null: rank 0, beside which the server is
        int place = 0;                                    // of the worker in its groups
        std::vector<float> message, answer;
        std::int64_t clockTime = 0;
    };

    ParameterServer(const Schedule& schedule, std::int64_t index, const TrainingConfig& training, ComputeDevice& device, ServerOptions options);
    Result<void> prepare(const TrainingConfig& training);
    Result<void> connect(CommWorld& world);
    void start();
    bool isSynchronous() const { return schedule_.servers.discipline == ServerDiscipline::Sync; }

    template <class Serve>
    void addThread(Serve serve);
    Result<void> servePushes(std::size_t w, std::int64_t step);
    Result<void> servePulls(std::size_t w, std::int64_t step);
    Result<void> serveClock(std::size_t w);
    bool isDue(const ServerMessage& message, std::int64_t step) const { return !message.periodic || (step + 1) % schedule_.period == 0; }
    std::int64_t roundOf(const ServerMessage& message, std::int64_t step) const { return message.periodic ? step / schedule_.period : step; }

    Result<void> take(std::size_t w, std::uint32_t key, std::span<const TensorPiece> pieces);
    Result<void> addInTurn(std::size_t w, std::uint32_t key, std::span<const TensorPiece> pieces);
    Result<void> applyAtOnce(std::size_t w, std::uint32_t key, std::span<const TensorPiece> pieces);
    Result<void> apply(std::uint32_t key, float* gradient, std::int64_t version);
    Result<void> run(KernelOp op, const float* in, float* out, std::int64_t elements, double alpha);
    /// Waits until the key is as the pull must see it.
    Result<void> awaitKey(std::size_t w, const ServerMessage& message, std::int64_t round);
    template <class Ready>
    Result<void> await(std::unique_lock<std::mutex>& lock, const Ready& ready);
    void fail(const Error& error);

    const Schedule& schedule_;
    std::int64_t index_;
    ComputeDevice& device_;
    ServerOptions options_;
    Optimizer optimizer_;
    ServerPlan plan_;
    std::unique_ptr<ServerMemory> memory_;
    std::vector<float> updateScratch_;
    std::vector<KeyState> keys_;
    std::vector<Worker> workers_;

    std::mutex applying_;  // asynchronous: one update, or one look at the parameters, at a time
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t allowed_ = 0;
    bool stopped_ = false;
    std::optional<Error> error_;
    ServerRecord record_;
    std::vector<std::int64_t> done_;  // steps, per thread
    std::vector<std::thread> threads_;
};

}  // namespace ringside
