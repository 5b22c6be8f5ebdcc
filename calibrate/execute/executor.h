// Executor: runs a rank's part of a Schedule for real, step by step: allocates and frees the buffers it names, issues its tasks on
// their streams, waits where it says. The second of the two players (the first: sim/player).
//
// docs/models/executor.md tells what each task does and what is measured.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/comm/communicator.h"
#include "calibrate/execute/bind_program.h"
#include "calibrate/execute/memory_order.h"
#include "calibrate/execute/parameter_server.h"
#include "calibrate/execute/server_client.h"
#include "calibrate/execute/synthetic_data.h"
#include "calibrate/execute/tensor_store.h"
#include "kernels/device.h"
#include "model/training/training_config.h"
#include "sim/player/player.h"
#include "sim/schedule/schedule.h"

namespace ringside {

struct ExecuteOptions {
    Hyperparameters hyper;
    std::uint64_t seed = 1;
    bool timed = true;  ///< note when each task began and ended
    /// Paced: kernels sleep for this long (seconds, by Schedule::kernels) instead of computing; collectives stay real. Empty: compute.
    std::vector<double> pace;
    /// Likewise for a parameter server in rank 0's process, by its keys.
    std::vector<ServerPace> serverPace;
    /// Told the name of each collective before it starts, and of each step: for whoever watches over the ranks.
    std::function<void(const std::string&)> progress;
};

struct ExecutedStep {
    double seconds = 0;            ///< from the common start to the end of the last task of this rank
    std::vector<TaskTimes> tasks;  ///< as the program's; empty unless timed
    std::vector<double> losses;    ///< one per micro-step
};

/// Parameters, or a part of them, as a rank has them.
struct ParameterPart {
    std::uint32_t parameter = 0;  ///< into RankProgram::parameters
    std::int64_t first = 0;
    std::vector<float> values;
};

class Executor {
public:
    /// `rank`: of the schedule's world; its class decides the program. `world` may be null for one rank. Borrows everything but the
    /// options. Fails where something cannot be run for real, memory does not suffice or ranks do not come together.
    static Result<std::unique_ptr<Executor>> create(const Schedule& schedule, std::int64_t rank, const TrainingConfig& training, ComputeDevice& device, CommWorld* world, ExecuteOptions options);
    ~Executor();

    /// One step (counted from 0; each of them once, in order). All ranks run the same steps. Fails on the first error of a kernel or collective, naming the task.
    Result<ExecutedStep> runStep(std::int64_t step);

    /// What this rank holds now, each element once.
    Result<std::vector<ParameterPart>> parameters();
    const TensorStore& memory() const { return *store_; }
    const RankProgram& program() const { return program_; }

private:
    Executor(const Schedule& schedule, std::int64_t rank, std::size_t rankClass, const TrainingConfig& training, ComputeDevice& device, ExecuteOptions options);

    Result<void> createStreams();
    Result<void> createCommunicators(CommWorld* world);
    Result<void> initialiseParameters();
    Result<void> createServers(CommWorld* world);
    std::int64_t firstSample(std::int64_t step, int microStep) const;
    void findEvents();
    void allocateFor(TaskId t);
    void freeAfter(TaskId t);
    void noteFree(std::uint32_t use);
    void issueTask(TaskId t, std::int64_t step, const std::vector<std::vector<std::byte>>& batches, std::vector<WorkTimes>& times);
    void passOver(TaskId t);
    std::vector<KernelCall> callsOf(TaskId t, std::int64_t step) const;
    StreamWork kernelWork(TaskId t, std::int64_t step);
    StreamWork collectiveWork(TaskId t, std::int64_t step);
    StreamWork messageWork(TaskId t, std::int64_t step);
    StreamWork pacedWork(TaskId t);
    Result<void> runCollective(const StreamContext& stream, Communicator& comm, const BoundCollective& work, const void* in, void* out);
    Result<void> copyLabelsOfAll(const StreamContext& stream, std::int64_t step, int microStep);

    const Schedule& schedule_;
    std::int64_t rank_;
    std::size_t class_;
    const RankProgram& program_;
    const TrainingConfig& training_;
    ComputeDevice& device_;
    ExecuteOptions options_;
    SyntheticData data_;
    BoundProgram bound_;
    std::unique_ptr<TensorStore> store_;
    MemoryOrder order_;
    std::vector<StreamIndex> streams_;                 // by the program's streams; the host's is unused
    std::map<std::uint32_t, std::unique_ptr<Communicator>> comms_;  // by axis
    ServerPlan plan_;
    std::unique_ptr<ServerClient> client_;             // of servers elsewhere
    std::unique_ptr<ParameterServer> server_;          // rank 0, where the server is in its process
    std::vector<bool> needsEvent_;                     // per task: somebody on another stream, or the host, waits for it
    std::vector<TaskId> previous_;                     // per task: the collective before it on its communicator
    std::vector<EventIndex> events_;
    std::vector<std::int64_t> paceEnds_;               // per stream
    std::vector<float> losses_;                        // per micro-step
    std::int64_t worldSamples_ = 0, samplesBefore_ = 0;
    std::vector<std::int64_t> firstOfRank_;            // per data-parallel rank: samples of a step before its own
};

}  // namespace ringside
