#include "calibrate/execute/memory_order.h"

#include <algorithm>

namespace ringside {

MemoryOrder::MemoryOrder(const RankProgram& program) : program_(program), mixed_(program.streams.size()), awaited_(program.tasks.size()) {
    for (const Task& task : program.tasks)
        for (const BufferUse& use : program.usesOf(task)) {
            const Buffer& buffer = program.buffers[use.buffer];
            if (!buffer.persistent && task.stream != kHostStream && task.stream != buffer.stream) mixed_[buffer.stream] = true;
        }
    if (std::find(mixed_.begin(), mixed_.end(), true) == mixed_.end()) return;

    std::vector<std::vector<TaskId>> users(program.buffers.size());  // since it was allocated: the last of each stream
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        for (std::uint32_t u = task.firstUse; u < task.firstUse + task.useCount; ++u) {
            const BufferUse& use = program.uses[u];
            if (program.buffers[use.buffer].persistent || !tracks(use.buffer)) continue;
            std::vector<TaskId>& mine = users[use.buffer];
            if (use.kind == UseKind::Allocate) mine.clear();
            if (task.stream != kHostStream) {
                std::erase_if(mine, [&](TaskId other) { return program.tasks[other].stream == task.stream; });
                mine.push_back(t);
            }
            if (use.kind != UseKind::Free) continue;
            for (const TaskId user : mine) awaited_[user] = true;
            usersAtFree_[u] = mine;
        }
    }
}

void MemoryOrder::freed(std::uint32_t use, const void* at) {
    const Buffer& buffer = program_.buffers[program_.uses[use].buffer];
    if (buffer.bytes == 0 || buffer.deferredFree) return;  // a deferred one comes back when all streams are done
    const auto* begin = static_cast<const std::byte*>(at);
    free_[begin] = {begin + buffer.bytes, usersAtFree_.at(use)};
}

std::vector<TaskId> MemoryOrder::allocated(BufferId id, const void* at, StreamId stream) {
    const Buffer& buffer = program_.buffers[id];
    std::vector<TaskId> out;
    const auto* begin = static_cast<const std::byte*>(at);
    const std::byte* end = begin + buffer.bytes;
    auto place = free_.upper_bound(begin);
    if (place != free_.begin() && std::prev(place)->second.end > begin) --place;
    while (place != free_.end() && place->first < end) {
        const std::byte* first = place->first;
        Place old = std::move(place->second);
        place = free_.erase(place);
        for (const TaskId user : old.users)
            if (program_.tasks[user].stream != stream && std::find(out.begin(), out.end(), user) == out.end()) out.push_back(user);
        if (old.end > end) free_[end] = {old.end, old.users};
        if (first < begin) free_[first] = {begin, std::move(old.users)};
    }
    return out;
}

}  // namespace ringside
