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
    HostWork,    ///< what the training loop does on the host besides launching; the profile prices it
    HostSync,    ///< the host thread waits for the dependencies
};

enum class Phase : std::uint8_t { Input, Forward, Recompute, Backward, GradientSync, Optimizer };
std::string_view nameOf(Phase phase);

/// What a task is about; with layer, op and part it makes the task's name.
enum class TaskRole : std::uint8_t {
    Op,                ///< part: kernel of the op
    InputCopy,
    LossRead,
    GradientAccumulate,  ///< part: parameter of the layer
    BucketCopyIn,        ///< likewise
    BucketCopyOut,       ///< likewise
    GradientCast,        ///< likewise
    BucketCompress,      ///< part: bucket
    BucketDecompress,    ///< part: bucket
    BucketReduce,        ///< part: bucket
    BucketZero,          ///< part: bucket
    BucketDivide,        ///< part: bucket
    GradientReduce,      ///< part: parameter of the layer
    GradientDivide,      ///< likewise
    UnusedBitmap,
    BufferBroadcast,
    Unscale,
    ClipGradients,
    OptimizerKernel,     ///< part: kernel
    StepOverhead,
};

struct Task {
    TaskKind kind = TaskKind::Kernel;
    Phase phase = Phase::Forward;
    TaskRole role = TaskRole::Op;
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

enum class StreamKind : std::uint8_t { Host, Compute, Communication, Copy };

struct Stream {
    StreamKind kind = StreamKind::Compute;
    std::string name;
};

enum class MemoryCategory : std::uint8_t { Parameters, Gradients, OptimizerState, Activations, Buckets, Workspace, Context, Nccl };
constexpr int kMemoryCategories = 8;
std::string_view nameOf(MemoryCategory category);  ///< "parameters", "optimizer_state", …

/// What a buffer holds, for its name.
enum class BufferRole : std::uint8_t {
    Parameter, MasterParameter, Gradient, OptimizerState, State, Value, ValueGradient, Bucket, CompressedBucket, Input, Workspace
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
    std::int32_t index = 0;    ///< value, parameter or bucket
};

enum class UseKind : std::uint8_t { Allocate, Read, Write, Free };

struct BufferUse {
    BufferId buffer = 0;
    UseKind kind = UseKind::Read;
};

}  // namespace ringside
