// Steps of the sharding strategies: a small model whose units can be counted by hand, and questions about its schedules.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {

/// A Llama of three blocks: hidden 64, 4 heads of 16, 2 key-value heads, feed-forward 192, 1000 words, not tied.
/// A block has q 64·64, k and v 32·64 each, o 64·64, gate, up and down 192·64 each, and two norms of 64:
///   4096 + 2·2048 + 4096 + 3·12288 + 128 = 49,280 parameters.
/// Embedding and head have 64,000 each, the last norm 64: 128,064 are in no block. Ψ = 3·49,280 + 128,064 = 275,904.
inline const std::string kSmallLlama =
    "{'model_type':'llama','num_hidden_layers':3,'num_attention_heads':4,'num_key_value_heads':2,'hidden_size':64,'intermediate_size':192,"
    "'vocab_size':1000,'max_position_embeddings':512,'tie_word_embeddings':false}";
constexpr std::int64_t kSmallBlock = 49'280, kSmallRest = 128'064, kSmallParameters = 275'904;

/// `strategy` as {'name':…}; training defaults to bf16 parameters with an fp32 master.
inline std::string smallLlama(const std::string& strategy, int devices, const std::string& training = "", const std::string& more = "") {
    return "{'model':" + kSmallLlama + ",'device':'a100-80gb-sxm','devices':" + std::to_string(devices) + ",'training':{'seq_len':64,'precision':'bf16-master'" + training +
           "},'strategy':" + strategy + more + "}";
}

/// The schedule, which must be valid.
inline Schedule validScheduleOf(const std::string& text) {
    Schedule schedule = scheduleOf(text);
    const Result<void> valid = validateSchedule(schedule);
    EXPECT_TRUE(valid) << text << "\n" << valid.error().toString();
    return schedule;
}

inline Bytes sentBy(const Schedule& schedule) { return bytesSentPerRank(schedule, schedule.classes.front()); }

inline std::vector<TaskId> tasksWith(const Schedule& schedule, TaskRole role) {
    std::vector<TaskId> found;
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    for (TaskId t = 0; t < tasks.size(); ++t)
        if (tasks[t].role == role) found.push_back(t);
    return found;
}

/// The task of this role about unit `part`, the first in `phase`; kNoTask if there is none.
inline TaskId taskOf(const Schedule& schedule, TaskRole role, int part, Phase phase) {
    for (const TaskId t : tasksWith(schedule, role)) {
        const Task& task = schedule.programs.front().tasks[t];
        if (task.part == part && task.phase == phase) return t;
    }
    return kNoTask;
}

inline bool waitsFor(const Schedule& schedule, TaskId task, TaskId earlier) {
    const RankProgram& program = schedule.programs.front();
    const auto dependencies = program.dependenciesOf(program.tasks[task]);
    return std::find(dependencies.begin(), dependencies.end(), earlier) != dependencies.end();
}

/// Tasks of these roles in issue order, as "gather 2", "scatter 1"; only those of the phases.
inline std::vector<std::string> issueOrder(const Schedule& schedule, const std::vector<std::pair<TaskRole, std::string>>& roles, const std::vector<Phase>& phases) {
    std::vector<std::string> order;
    for (const Task& task : schedule.programs.front().tasks)
        for (const auto& [role, word] : roles)
            if (task.role == role && std::find(phases.begin(), phases.end(), task.phase) != phases.end()) order.push_back(word + " " + std::to_string(task.part));
    return order;
}

inline std::string streamOf(const Schedule& schedule, TaskId task) {
    const RankProgram& program = schedule.programs.front();
    return program.streams[program.tasks[task].stream].name;
}

/// First (last) op of the layer's forward or backward.
inline TaskId firstOp(const Schedule& schedule, Phase phase, int layer) {
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    for (TaskId t = 0; t < tasks.size(); ++t)
        if (tasks[t].role == TaskRole::Op && tasks[t].phase == phase && tasks[t].layer == layer) return t;
    return kNoTask;
}
inline TaskId lastOp(const Schedule& schedule, Phase phase, int layer) {
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    for (TaskId t = static_cast<TaskId>(tasks.size()); t-- > 0;)
        if (tasks[t].role == TaskRole::Op && tasks[t].phase == phase && tasks[t].layer == layer) return t;
    return kNoTask;
}

/// Bytes of persistent device (or host) buffers of a category.
inline Bytes persistentBytes(const Schedule& schedule, MemoryCategory category, bool onHost = false) {
    Bytes sum = 0;
    for (const Buffer& buffer : schedule.programs.front().buffers)
        if (buffer.persistent && buffer.category == category && buffer.onHost == onHost) sum += buffer.bytes;
    return sum;
}

/// Most bytes of a category alive at once, in issue order and without rounding; persistent ones apart.
inline Bytes mostAlive(const Schedule& schedule, MemoryCategory category, BufferRole role) {
    const RankProgram& program = schedule.programs.front();
    Bytes live = 0, most = 0;
    for (const BufferUse& use : program.uses) {
        const Buffer& buffer = program.buffers[use.buffer];
        if (buffer.category != category || buffer.role != role || buffer.onHost) continue;
        if (use.kind == UseKind::Allocate) live += buffer.bytes;
        if (use.kind == UseKind::Free) live -= buffer.bytes;
        most = std::max(most, live);
    }
    return most;
}

}  // namespace ringside::testing
