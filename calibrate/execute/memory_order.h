// MemoryOrder: which tasks must be done before memory is used again by another stream.
//
// Memory is given out and taken back when the host issues a task, whatever the device is doing then. Within a stream that is safe;
// where tasks of several streams use memory of one pool, whoever gets a place must wait for those who had it before.
#pragma once

#include <cstddef>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/schedule/schedule.h"

namespace ringside {

/// Borrows the program.
class MemoryOrder {
public:
    explicit MemoryOrder(const RankProgram& program);

    /// The buffer comes from a pool whose memory several streams use.
    bool tracks(BufferId buffer) const { return mixed_[program_.buffers[buffer].stream]; }
    /// allocated() may name the task: its end must be marked by an event.
    bool mayBeAwaited(TaskId task) const { return awaited_[task]; }

    /// All streams are done: nobody has to wait for anybody.
    void beginStep() { free_.clear(); }
    /// `use` (into RankProgram::uses) gives the buffer back, which lies at `at`. REQUIRES: tracks() its buffer.
    void freed(std::uint32_t use, const void* at);
    /// The buffer was put at `at` for a task of `stream`: the tasks of other streams that must be done first. O(log n) and what it
    /// returns. REQUIRES: tracks(buffer).
    std::vector<TaskId> allocated(BufferId buffer, const void* at, StreamId stream);

private:
    struct Place {
        const std::byte* end = nullptr;
        std::vector<TaskId> users;  // the last of each stream
    };

    const RankProgram& program_;
    std::vector<bool> mixed_;                                            // per stream: its pool
    std::vector<bool> awaited_;                                          // per task
    std::unordered_map<std::uint32_t, std::vector<TaskId>> usersAtFree_;  // by use
    std::map<const std::byte*, Place> free_;                             // by begin; they do not overlap
};

}  // namespace ringside
