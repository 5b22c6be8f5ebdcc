// Task: one thing that a rank does in a training step, and the streams and buffers that tasks use.
//
// A rank's program lists its tasks in the order its host thread issues them. A task on a device stream starts when it has
// been issued, its stream's earlier tasks are done and its dependencies are done; a collective moreover when every rank of
// its group has got there. A task says what work it is, never how long it takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/dtype.h"
#include "model/base/units.h"

namespace ringside {

using TaskId = std::uint32_t;    ///< index into RankProgram::tasks
using BufferId = std::uint32_t;  ///< index into RankProgram::buffers
using StreamId = std::uint16_t;  ///< index into RankProgram::streams

enum class TaskKind : std::uint8_t {
    Kernel,      ///< work: Schedule::kernels
    Collective,  ///< work: Schedule::collectives
    Copy,        ///< work: Schedule::copies
    HostWork,    ///< work: Schedule::hostWorks; on the host thread, or beside it on a loader's or copy stream
    HostSync,    ///< the host thread waits for the dependencies
    Push,        ///< work: Schedule::messages; a key's gradients to the servers, done when they have arrived
    Pull,        ///< work: Schedule::messages; a key's parameters from the servers
};

enum class Phase : std::uint8_t { Input, Forward, Recompute, Backward, GradientSync, Optimizer };
std::string_view nameOf(Phase phase);

/// What a task is about; with layer, op and part it makes the task's name.
enum class TaskRole : std::uint8_t {
    Op,                ///< part: kernel of the op
    InputCopy,
    LossRead,
    GradientAccumulate,  ///< part: parameter of the layer
    GradientZero,        ///< likewise
    BucketCopyIn,        ///< likewise
    BucketCopyOut,       ///< likewise
    GradientCast,        ///< likewise
    BucketCompress,      ///< part: bucket
    BucketDecompress,    ///< part: bucket
    BucketReduce,        ///< part: bucket
    BucketZero,          ///< part: bucket
    BucketDivide,        ///< part: bucket
    BucketFlatten,       ///< part: bucket
    BucketSlice,         ///< part: bucket
    GradientReduce,      ///< part: parameter of the layer
    GradientDivide,      ///< likewise
    UnusedBitmap,
    BufferBroadcast,
    Unscale,
    ClipGradients,
    OptimizerKernel,     ///< part: kernel
    StepOverhead,
    LoadBatch,
    OpCollective,        ///< part: collective of the op
    RingExchange,        ///< part: step of the ring
    RingJoin,
    SendActivation,
    ReceiveActivation,
    SendGradient,
    ReceiveGradient,
    ReplicatedGradientReduce,
    UnshardCopyIn,       ///< part: unit
    Unshard,             ///< part: unit
    UnshardCopyOut,      ///< part: unit
    Reshard,             ///< part: unit
    ReduceCopyIn,        ///< part: unit
    UnitAccumulate,      ///< part: unit
    UnitDivide,          ///< part: unit
    ShardReduce,         ///< part: unit
    ReplicaReduce,       ///< part: unit
    ShardCast,           ///< part: unit
    ShardAccumulate,     ///< part: unit
    RateLimit,           ///< part: unit
    ParameterGather,     ///< part: bucket
    ParameterBroadcast,  ///< part: bucket
    ParameterAverage,    ///< part: bucket
    OuterOptimizer,
    NormReduce,
    NormRead,            ///< the host waits for it
    Synchronize,         ///< the host waits for the device
    OffloadToHost,       ///< part: unit or bucket
    OffloadToDevice,     ///< likewise
    HostOptimizer,
    StorageRead,
    StorageWrite,
    Orthogonalise,       ///< part: bucket
    Quantise,            ///< part: unit or bucket
    Dequantise,          ///< likewise
    JoinNotify,
    ScatterInput,
    Replicate,           ///< part: chunk
    GatherOutput,
    ScatterGradient,
    SumGradient,         ///< part: chunk
    Push,                ///< part: key
    Pull,                ///< part: key
    FlattenParameters,   ///< part: chunk
    Elastic,             ///< part: bucket or key
};

struct Task {
    TaskKind kind = TaskKind::Kernel;
    Phase phase = Phase::Forward;
    TaskRole role = TaskRole::Op;
    bool periodic = false;  ///< only in every Schedule::period-th step
    bool replayed = false;  ///< launched with an earlier task, as part of one graph of kernels
    StreamId stream = 0;
    std::uint32_t work = 0;
    std::int32_t layer = -1;
    std::int16_t op = -1;
    std::uint16_t part = 0;
    std::uint32_t firstDependency = 0;  ///< into RankProgram::dependencies
    std::uint32_t firstUse = 0;         ///< into RankProgram::uses
    std::uint32_t useCount = 0;
    std::uint16_t dependencyCount = 0;
    std::uint16_t microStep = 0;
};

/// Loader: what the input pipeline does beside the host thread.
enum class StreamKind : std::uint8_t { Host, Compute, Communication, Copy, Loader };

struct Stream {
    StreamKind kind = StreamKind::Compute;
    std::string name;
};

enum class MemoryCategory : std::uint8_t { Parameters, Gradients, OptimizerState, Activations, Buckets, Workspace, Context, Nccl };
constexpr int kMemoryCategories = 8;
std::string_view nameOf(MemoryCategory category);  ///< "parameters", "optimizer_state", …

/// What a buffer holds, for its name.
enum class BufferRole : std::uint8_t {
    Parameter, MasterParameter, Gradient, OptimizerState, State, Value, ValueGradient, Bucket, CompressedBucket, Input, Workspace,
    Shard, MasterShard, GradientShard, OptimizerShard, UnshardOutput, UnshardedUnit, UnitGradient,  // index: unit or bucket
    ParameterBucket, FlattenedBucket, SecondaryShard,                                               // likewise
    ReceivedActivation, ReceivedGradient,  // index: micro-step
};

/// Device memory that tasks allocate, use and free. Allocation and freeing happen where the host issues the task: that is
/// when PyTorch's caching allocator acts, whatever the device is doing then.
struct Buffer {
    Bytes bytes = 0;
    MemoryCategory category = MemoryCategory::Activations;
    BufferRole role = BufferRole::Value;
    DType dtype = DType::Fp32;
    bool persistent = false;   ///< allocated before the step and never freed in it
    bool outlives = false;     ///< allocated in the step and kept after it (optimizer state in step 1)
    std::int32_t layer = -1;
    std::int32_t index = 0;    ///< value, parameter, bucket or unit
    StreamId stream = 1;       ///< whose pool it is allocated from: a freed block is reused only there
    bool deferredFree = false; ///< recordStream: memory comes back only when the device has finished the freeing task
    bool onHost = false;       ///< host memory: counted apart
    std::int32_t layout = -1;  ///< into RankProgram::layouts: which parameters it holds; −1: the tensor that layer and index name, or none
    std::int32_t turn = -1;    ///< persistent: the buffer with which it changes places after each step (of two sets, one fills while one travels)
};

enum class UseKind : std::uint8_t { Allocate, Read, Write, Free };

struct BufferUse {
    BufferId buffer = 0;
    UseKind kind = UseKind::Read;
    std::int32_t layout = -1;  ///< where that is not the buffer's own: it holds other parameters now (a bucket that is filled again), or a part of it is meant
};

}  // namespace ringside
