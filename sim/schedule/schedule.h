// Schedule: one training step as every rank carries it out: the single description that the simulator plays in virtual
// time and the executor runs for real.
//
// Ranks that behave alike share a program and, where nothing tells them apart, a class with a multiplicity.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/cost/collective_cost.h"
#include "model/hardware/cluster.h"
#include "model/workload/workload.h"
#include "sim/schedule/layout.h"
#include "sim/schedule/server.h"
#include "sim/schedule/task.h"

namespace ringside {

/// Communicators along one axis of the device mesh: rank r talks to the `size` ranks that differ from it only along the
/// axis, which lie `stride` apart. Where the axis is longer than the communicator (a pipeline, whose neighbours talk in
/// pairs), `span` is its length and `first` the position of the communicator's first rank.
struct CommAxis {
    std::string name;  ///< "dp"
    std::int64_t size = 1, stride = 1;
    std::int64_t first = 0, span = 0;  ///< span 0: size

    std::int64_t length() const { return span > 0 ? span : size; }
    /// Position of the rank in its communicator; outside [0, size) if the rank has none on this axis.
    std::int64_t positionOf(std::int64_t rank) const { return rank / stride % length() - first; }
    /// The ranks of r's communicator.
    RankSet groupOf(std::int64_t rank) const { return {rank - positionOf(rank) * stride, stride, size}; }
};

/// `elements` and `bytes` count as nccl-tests does: the whole buffer for all-gather and reduce-scatter.
struct CollectiveWork {
    CollectiveOp op = CollectiveOp::AllReduce;
    DType dtype = DType::Fp32;
    std::int64_t elements = 0;
    std::uint32_t axis = 0;
    std::int32_t sender = -1;  ///< of a single send: its position in the communicator; −1: every rank sends
    std::int32_t root = 0;     ///< of a broadcast or reduce: likewise
    bool average = false;      ///< the sum comes divided by the ranks (ncclAvg)
    std::int64_t first = 0;    ///< where it begins in what it writes, several buffers being one line
    TokenSpread spread{};      ///< of an all-to-all that sends each token once (model/workload/token_spread.h)

    Bytes bytes() const { return elements * sizeOf(dtype); }
    bool operator==(const CollectiveWork&) const = default;
};

struct CopyWork {
    enum class Direction : std::uint8_t { HostToDevice, DeviceToHost } direction = Direction::HostToDevice;
    Bytes bytes = 0;
    int sharing = 1;  ///< devices below one PCIe uplink or in one node that copy at the same time

    bool operator==(const CopyWork&) const = default;
};

/// Work of a host processor or its storage.
struct HostWork {
    enum class Kind : std::uint8_t {
        TrainingLoop,  ///< what the loop does besides launching, once: the profile prices it
        Fixed,         ///< `amount` seconds, as the scenario says (loading a batch)
        Memory,        ///< `amount` bytes through the host's memory, which the devices of the node share
        Storage,       ///< `amount` bytes from or to the node's storage, likewise
    } kind = Kind::TrainingLoop;
    double amount = 0;

    bool operator==(const HostWork&) const = default;
};

/// What one rank does, in issue order.
/// Tensors that stand on the device before the persistent buffers do: a model that is whole until it is shared out, or flattened. Each is let go in
/// its turn, and leaves one of `shards` equal pieces behind. Either the cache is then emptied, and what it took counts only where it is the most
/// that was ever reserved; or their memory stays with the allocator, for the step to use where it fits.
struct SetupTensors {
    std::vector<Bytes> tensors;
    std::int64_t shards = 1;
    bool cacheEmptied = false;
};

struct RankProgram {
    std::shared_ptr<const Workload> workload;  ///< the model (its part, and the micro-batch) that these ranks have
    std::vector<Stream> streams;  ///< streams[0] is the host thread, streams[1] the compute stream
    std::vector<Task> tasks;
    std::vector<TaskId> dependencies;
    std::vector<BufferUse> uses;
    std::vector<Buffer> buffers;
    std::vector<ProgramParameter> parameters;  ///< what is trained here, in registration order; tied uses not again
    std::vector<Layout> layouts;
    SetupTensors setup;
    int interpreterThreads = 1;  ///< host threads that share one interpreter: what each launches in forward waits for the others

    std::span<const TaskId> dependenciesOf(const Task& task) const {
        return {dependencies.data() + task.firstDependency, task.dependencyCount};
    }
    std::span<const BufferUse> usesOf(const Task& task) const { return {uses.data() + task.firstUse, task.useCount}; }
};

constexpr StreamId kHostStream = 0;
constexpr StreamId kComputeStream = 1;

/// Ranks that carry out `program` on the same kind of node and cannot be told apart.
struct RankClass {
    std::uint32_t program = 0;
    std::size_t nodeGroup = 0;  ///< into Cluster::nodes
    RankSet ranks;
    double weight = 1;          ///< of its gradients: samples of a rank over the mean (unequal shards)
    double computeSlowdown = 1, linkSlowdown = 1;  ///< stragglers
};

/// Micro-steps that are alike are written once: `microStep` stands for `times` of them.
struct SteadyMicroStep {
    int microStep = -1;
    std::int64_t times = 1;
};

struct Schedule {
    std::shared_ptr<const Workload> workload;
    std::string strategy;
    std::int64_t world = 1;
    std::vector<KernelWork> kernels;
    std::vector<CollectiveWork> collectives;
    std::vector<CopyWork> copies;
    std::vector<HostWork> hostWorks;
    std::vector<MessageWork> messages;
    std::vector<CommAxis> axes;  ///< axes[0] is "dp": the ranks that average gradients
    std::vector<RankProgram> programs;
    std::vector<RankClass> classes;
    SteadyMicroStep steady;
    ParameterServers servers;
    bool exact = true;        ///< false: some rank or buffer is written with an average share, which is good to play but not to run
    bool addsInProducts = false;  ///< products of weight gradients add to the main gradient themselves
    std::int64_t period = 1;  ///< steps from one that carries out the periodic tasks to the next (local SGD's rounds)

    /// How often the task happens in the step.
    std::int64_t timesOf(const Task& task) const { return task.microStep == steady.microStep ? steady.times : 1; }
};

/// The class that a rank belongs to. REQUIRES: 0 <= rank < world.
std::size_t classOf(const Schedule& schedule, std::int64_t rank);

/// "backward h.3.attn.c_attn: wgrad", "all_reduce bucket 2", …
std::string taskName(const Schedule& schedule, const Task& task);
/// "h.3.attn.c_attn.weight gradient", "h.3 scores", …
std::string bufferName(const Schedule& schedule, const Buffer& buffer);

constexpr TaskId kNoTask = 0xffffffffU;
/// For every collective of the program, the one issued before it on the same communicator (kNoTask if there is none, or
/// for other tasks). NCCL runs the collectives of a communicator in issue order, whatever streams they are on.
std::vector<TaskId> previousOnCommunicator(const Schedule& schedule, const RankProgram& program);

/// Bytes that a rank of `rankClass` sends in the step (a periodic one, where there are such), by the ring's count; what it
/// pushes to servers included.
Bytes bytesSentPerRank(const Schedule& schedule, const RankClass& rankClass);
/// The mean over a round of steps; the same where every step is alike.
Bytes meanBytesSentPerRank(const Schedule& schedule, const RankClass& rankClass);

}  // namespace ringside
