// TensorStore: the memory of a program's buffers for real, placed by the very allocator that the simulator predicts with
// (model/memory/allocator.h), inside one piece of device memory. What it counts is what trackMemory predicts: memory whose return
// is deferred keeps its place until the end of the step, but is counted as gone when it is freed, as trackMemory does without times.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/execute/bound_call.h"
#include "kernels/device.h"
#include "model/memory/allocator.h"
#include "sim/player/memory_tracker.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// Borrows the device and the program. Persistent buffers are there, zeroed, from the start.
class TensorStore {
public:
    /// Fails (runtime failure) when the device has not enough memory, saying how much is needed.
    static Result<std::unique_ptr<TensorStore>> create(ComputeDevice& device, const RankProgram& program, const ScratchSizes& scratch);
    ~TensorStore();
    TensorStore(const TensorStore&) = delete;
    TensorStore& operator=(const TensorStore&) = delete;

    /// Allocates what the task allocates. What it frees before that without using it itself is freed first, as its order says: the new
    /// may take the old one's place.
    void beginTask(TaskId task);
    /// Frees the rest. Call it when the task has been issued.
    void endTask(TaskId task);
    /// The task is left out in this step: what others allocated and it would have freed is freed all the same.
    void passOver(const Task& task, TaskId id);
    /// All streams are done: memory whose return was deferred comes back, and buffers that take turns change places.
    void endStep();

    /// Null for Operand::Kind::None. REQUIRES: the buffer is allocated.
    void* at(const Operand& operand) const;
    bool isAllocated(BufferId buffer) const { return blocks_[buffer] != CachingAllocator::kNoBlock || hostMemory_[buffer]; }
    void* at(BufferId buffer) const { return at(inBuffer(buffer)); }

    Bytes peakAllocated() const { return counting().peakAllocated(); }
    Bytes peakReserved() const { return counting().peakReserved(); }
    const CategoryBytes& atPeak() const { return atPeak_; }
    TaskId peakTask() const { return peakTask_; }
    /// Of the step under way: what was live after each task that changed it.
    const std::vector<MemorySample>& samples() const { return samples_; }
    void beginStep() { samples_.clear(); }

private:
    TensorStore(ComputeDevice& device, const RankProgram& program);
    void allocate(BufferId buffer, TaskId task);
    void free(BufferId buffer);
    void note(TaskId task);
    const CachingAllocator& counting() const { return defers_ ? counted_ : allocator_; }
    Bytes countedBytes(BufferId buffer) const { return defers_ ? counted_.sizeOf(countedBlocks_[buffer]) : allocator_.sizeOf(blocks_[buffer]); }

    ComputeDevice& device_;
    const RankProgram& program_;
    CachingAllocator allocator_;  // gives the places
    std::vector<CachingAllocator::Block> blocks_;
    std::vector<CachingAllocator::Block> deferred_;
    bool defers_ = false;         // some buffer's return is deferred: then another allocator counts
    CachingAllocator counted_;
    std::vector<CachingAllocator::Block> countedBlocks_;
    std::byte* arena_ = nullptr;
    Bytes arenaBytes_ = 0;
    std::vector<bool> periodic_;  // per buffer: allocated by tasks that are not in every step
    std::vector<std::unique_ptr<std::byte[]>> hostMemory_;  // per buffer that is on the host
    std::array<std::byte*, std::tuple_size_v<ScratchSizes>> scratch_{};
    CategoryBytes live_{}, atPeak_{};
    Bytes peak_ = -1;
    TaskId peakTask_ = 0;
    std::vector<MemorySample> samples_;
};

}  // namespace ringside
