// MemoryTracker: a program's memory over a step, by category, and what the caching allocator reserves for it.
//
// Buffers are allocated and freed in issue order, because that is when the framework's allocator acts; the time axis is
// the time at which the host issued each task. Only recordStream makes memory depend on when the device is done.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/player/player.h"
#include "sim/schedule/schedule.h"

namespace ringside {

using CategoryBytes = std::array<Bytes, kMemoryCategories>;

struct MemoryOptions {
    Bytes contextBytes = 0;  ///< driver context and libraries, outside the allocator
    Bytes ncclBytes = 0;     ///< communicators' buffers, outside the allocator; only with more than one rank
    Bytes capacityBytes = 0;
    bool expandableSegments = false;
    bool setup = true;       ///< play RankProgram::setup before the step
    bool timeline = false;   ///< keep the samples
    bool nameLargest = true; ///< find the largest tensor at the peak (one more pass)
};

struct MemorySample {
    TaskId task = 0;
    CategoryBytes bytes{};
    Bytes reserved = 0;
};

/// A buffer from its allocation to its release.
struct BufferLife {
    BufferId buffer = 0;
    Bytes bytes = 0;                   ///< as the allocator rounds them
    TaskId from = kNoTask;             ///< the task that allocated it; kNoTask: it was there before the step
    TaskId until = kNoTask;            ///< at whose issue it came back; kNoTask: it is kept
};

struct MemoryReport {
    Bytes peakAllocated = 0;           ///< by the allocator (what torch.cuda.max_memory_allocated reports)
    Bytes peakReserved = 0;            ///< by the allocator (max_memory_reserved)
    Bytes outside = 0;                 ///< context and NCCL
    Bytes hostBytes = 0;               ///< host memory that the rank's state takes (offload)
    CategoryBytes atPeak{};            ///< what was live at the peak of `allocated`, context and NCCL included
    TaskId peakTask = 0;
    BufferId largestAtPeak = 0;        ///< the largest transient buffer alive then
    bool outOfMemory = false;
    bool failedBeforeStep = false;     ///< already what lives all the time (parameters, optimizer state, buckets) does not fit
    TaskId failedTask = 0;             ///< first task whose allocation does not fit
    BufferId failedBuffer = 0;
    Bytes capacity = 0;                ///< as given; 0: not limited
    std::vector<MemorySample> samples;
    std::vector<BufferLife> lives;     ///< of buffers on the device, with the samples

    Bytes peakDevice() const { return peakReserved + outside; }  ///< what nvidia-smi shows
};

/// `times` are those of the program's tasks in a played step: a buffer whose free is deferred comes back when the task that
/// frees it has ended on the device, as seen by the host when it issues the next allocation. Without them it comes back at once.
MemoryReport trackMemory(const RankProgram& program, const MemoryOptions& options, const std::vector<TaskTimes>* times = nullptr);

}  // namespace ringside
