// Arithmetic that tests of sharded strategies share: what a ring sends, and what a program declares.
#pragma once

#include "tests/support/scenarios.h"

namespace ringside::testing {

/// Bytes that each of n ranks sends: chunks are rounded up.
inline Bytes ringAllReduce(Bytes bytes, std::int64_t n) { return 2 * (n - 1) * ((bytes + n - 1) / n); }
inline Bytes ringGather(Bytes bytes, std::int64_t n) { return (n - 1) * ((bytes + n - 1) / n); }

inline std::int64_t roundedUp(std::int64_t value, std::int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// The mlp of the catalogue: 1024 → 4096 → 4096 → 1024 with biases.
constexpr std::int64_t kMlpWeights = 1024 * 4096 + 4096 * 4096 + 4096 * 1024;  // 25,165,824
constexpr std::int64_t kMlpBiases = 4096 + 4096 + 1024;                        // 9,216
constexpr std::int64_t kMlpParameters = kMlpWeights + kMlpBiases;              // 25,175,040

inline std::string mlp(int devices, const std::string& strategy, const std::string& training = "", const std::string& more = "") {
    return "{'model':'mlp','device':'a100-80gb-sxm','devices':" + std::to_string(devices) + ",'strategy':{'name':" + strategy + "},'training':{'micro_batch':64,'precision':'bf16-master'" +
           (training.empty() ? "" : "," + training) + "}" + more + "}";
}

inline Bytes wireOf(const std::string& text) {
    const Schedule schedule = scheduleOf(text);
    return bytesSentPerRank(schedule, schedule.classes[0]);
}

/// Bytes of the buffers that live all the time.
inline Bytes persistentBytes(const Schedule& schedule, MemoryCategory category, bool onHost = false) {
    Bytes sum = 0;
    for (const Buffer& buffer : schedule.programs.front().buffers)
        if (buffer.persistent && buffer.category == category && buffer.onHost == onHost) sum += buffer.bytes;
    return sum;
}

/// Most bytes of the category that are live at once, by the schedule's own order (no allocator).
inline Bytes mostLive(const Schedule& schedule, MemoryCategory category) {
    const RankProgram& program = schedule.programs.front();
    Bytes live = persistentBytes(schedule, category), most = live;
    for (const BufferUse& use : program.uses) {
        const Buffer& buffer = program.buffers[use.buffer];
        if (buffer.category != category || buffer.onHost) continue;
        if (use.kind == UseKind::Allocate) live += buffer.bytes;
        if (use.kind == UseKind::Free) live -= buffer.bytes;
        most = std::max(most, live);
    }
    return most;
}

/// Tasks with the role, in issue order.
inline std::vector<TaskId> tasksOf(const Schedule& schedule, TaskRole role) {
    std::vector<TaskId> found;
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    for (TaskId t = 0; t < tasks.size(); ++t)
        if (tasks[t].role == role) found.push_back(t);
    return found;
}

/// The last task of the phase.
inline TaskId lastOf(const Schedule& schedule, Phase phase) {
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    for (TaskId t = static_cast<TaskId>(tasks.size()); t-- > 0;)
        if (tasks[t].phase == phase) return t;
    return kNoTask;
}

/// Bytes of the copies in one direction.
inline Bytes copiedBytes(const Schedule& schedule, TaskRole role) {
    Bytes sum = 0;
    for (const TaskId t : tasksOf(schedule, role)) sum += schedule.copies[schedule.programs.front().tasks[t].work].bytes;
    return sum;
}

/// The amounts of host work with the role (waits of the same role left out).
inline double hostAmount(const Schedule& schedule, TaskRole role) {
    double sum = 0;
    for (const TaskId t : tasksOf(schedule, role)) {
        const Task& task = schedule.programs.front().tasks[t];
        if (task.kind == TaskKind::HostWork) sum += schedule.hostWorks[task.work].amount;
    }
    return sum;
}

/// The error of a scenario that resolves but that the strategy refuses.
inline std::string writeRefusal(const std::string& text) {
    const Result<Schedule> schedule = writeSchedule(scenarioOf(text));
    if (schedule) {
        ADD_FAILURE() << "accepted: " << text;
        return {};
    }
    EXPECT_EQ(schedule.error().code, ErrorCode::BadInput);
    return schedule.error().toString();
}

}  // namespace ringside::testing
