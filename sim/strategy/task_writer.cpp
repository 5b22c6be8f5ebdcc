// The part of StepWriter that appends single tasks: kernels, collectives, messages, copies, work of the host.
#include "sim/strategy/step_writer.h"

namespace ringside {

bool StepWriter::isCaptured(const Task& task) const {
    if (task.stream == kHostStream || task.kind == TaskKind::HostWork) return false;
    if (input_.parallel.capturesIteration()) return task.phase != Phase::Input && task.phase != Phase::Optimizer;
    if (task.op < 0) return false;
    const ParallelConfig& config = input_.parallel;
    switch (workload_.typeOf(static_cast<std::size_t>(task.layer)).ops[static_cast<std::size_t>(task.op)].graphScope) {
        case GraphScope::None: return false;
        case GraphScope::Attention: return config.captures("attn");
        case GraphScope::Mlp: return config.captures("mlp");
        case GraphScope::Router: return config.captures("moe_router") || config.captures("moe");
        case GraphScope::Experts: return config.captures("moe");
    }
    return false;
}

// A graph holds what is captured of a layer's forward, or of its backward, in one piece; or the whole iteration.
bool StepWriter::joinsGraph(const Task& task) {
    if (input_.parallel.cudaGraphScope.empty() || !isCaptured(task)) return false;
    const Graph graph = input_.parallel.capturesIteration() ? Graph{0, Phase::Forward, 0} : Graph{task.layer, task.phase, task.microStep};
    const bool joins = graph_ == graph;
    graph_ = graph;
    return joins;
}

TaskId StepWriter::addTask(Task task) {
    task.microStep = microStep_;
    task.periodic = periodic_;
    task.replayed = joinsGraph(task);
    const TaskId id = writer_.add(task);
    if (task.stream == kComputeStream) {
        lastCompute_ = id;
        hasCompute_ = true;
        for (const TaskId earlier : pendingWaits_) writer_.dependOn(earlier);
        pendingWaits_.clear();
    }
    return id;
}

TaskId StepWriter::hostTask(TaskKind kind, Phase phase, TaskRole role, std::uint32_t work, std::uint16_t part) {
    Task task;
    task.kind = kind;
    task.phase = phase;
    task.role = role;
    task.stream = kHostStream;
    task.work = work;
    task.part = part;
    return addTask(task);
}

TaskId StepWriter::hostWait(Phase phase, TaskRole role, std::span<const TaskId> tasks, std::uint16_t part) {
    const TaskId id = hostTask(TaskKind::HostSync, phase, role, 0, part);
    for (const TaskId earlier : tasks) writer_.dependOn(earlier);
    return id;
}

TaskId StepWriter::hostWork(StreamId stream, Phase phase, TaskRole role, const HostWork& work, std::uint16_t part) {
    Task task;
    task.kind = TaskKind::HostWork;
    task.phase = phase;
    task.role = role;
    task.stream = stream;
    task.work = writer_.intern(schedule_.hostWorks, work);
    task.part = part;
    return addTask(task);
}

std::uint32_t StepWriter::internKernel(std::string_view name, Bytes bytes, double divisor) {
    const auto [it, isNew] = interned_.try_emplace({bytes, name, divisor}, static_cast<std::uint32_t>(schedule_.kernels.size()));
    if (isNew) {
        KernelWork work;
        work.cls = KernelClass::Memory;
        work.bytes = static_cast<double>(bytes);
        work.name = name;
        work.divisor = divisor;
        schedule_.kernels.push_back(work);
    }
    return it->second;
}

TaskId StepWriter::memoryKernel(StreamId stream, Phase phase, TaskRole role, std::string_view name, Bytes bytes, std::int32_t layer, std::uint16_t part,
                                double divisor) {
    Task task;
    task.kind = TaskKind::Kernel;
    task.phase = phase;
    task.role = role;
    task.stream = stream;
    task.work = internKernel(name, bytes, divisor);
    task.layer = layer;
    task.part = part;
    return addTask(task);
}

TaskId StepWriter::kernel(StreamId stream, Phase phase, TaskRole role, const KernelWork& work, std::int32_t layer, std::uint16_t part) {
    schedule_.kernels.push_back(work);
    Task task;
    task.kind = TaskKind::Kernel;
    task.phase = phase;
    task.role = role;
    task.stream = stream;
    task.work = static_cast<std::uint32_t>(schedule_.kernels.size() - 1);
    task.layer = layer;
    task.part = part;
    return addTask(task);
}

TaskId StepWriter::collective(StreamId stream, Phase phase, TaskRole role, CollectiveOp op, DType dtype, std::int64_t elements, std::uint32_t axis,
                              std::int32_t layer, std::uint16_t part, std::int32_t sender) {
    return collective(stream, phase, role, CollectiveWork{op, dtype, elements, axis, sender}, layer, part);
}

TaskId StepWriter::collective(StreamId stream, Phase phase, TaskRole role, const CollectiveWork& work, std::int32_t layer, std::uint16_t part) {
    Task task;
    task.kind = TaskKind::Collective;
    task.phase = phase;
    task.role = role;
    task.stream = stream;
    task.work = writer_.intern(schedule_.collectives, work);
    task.layer = layer;
    task.part = part;
    return addTask(task);
}

TaskId StepWriter::message(TaskKind kind, StreamId stream, std::uint32_t key, Bytes bytes, std::int32_t layer) {
    Task task;
    task.kind = kind;
    task.phase = Phase::GradientSync;
    task.role = kind == TaskKind::Push ? TaskRole::Push : TaskRole::Pull;
    task.stream = stream;
    task.work = writer_.intern(schedule_.messages, MessageWork{bytes, key});
    task.layer = layer;
    task.part = static_cast<std::uint16_t>(key);
    return addTask(task);
}

TaskId StepWriter::copy(StreamId stream, Phase phase, TaskRole role, const CopyWork& work, std::uint16_t part) {
    Task task;
    task.kind = TaskKind::Copy;
    task.phase = phase;
    task.role = role;
    task.stream = stream;
    task.work = writer_.intern(schedule_.copies, work);
    task.part = part;
    return addTask(task);
}

}  // namespace ringside
