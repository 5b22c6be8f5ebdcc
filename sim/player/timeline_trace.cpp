#include "sim/player/timeline_trace.h"

#include <fmt/format.h>

#include "traces/trace_builder.h"

namespace ringside {
namespace {

TrackKind trackKind(StreamKind kind) {
    switch (kind) {
        case StreamKind::Host: return TrackKind::Host;
        case StreamKind::Compute: return TrackKind::Compute;
        case StreamKind::Communication: return TrackKind::Communication;
        case StreamKind::Copy: return TrackKind::Copy;
        case StreamKind::Loader: return TrackKind::Host;
    }
    return TrackKind::Compute;
}

SliceCategory categoryOf(const Task& task) {
    switch (task.kind) {
        case TaskKind::Kernel: return task.phase == Phase::Optimizer ? SliceCategory::Optimizer : SliceCategory::Compute;
        case TaskKind::Collective: case TaskKind::Push: case TaskKind::Pull: return SliceCategory::Communication;
        case TaskKind::Copy: return SliceCategory::Copy;
        case TaskKind::HostWork: return SliceCategory::Host;
        case TaskKind::HostSync: return SliceCategory::Wait;
    }
    return SliceCategory::Compute;
}

/// PyTorch's names, which Kineto writes.
std::string_view torchDtype(DType dtype) {
    switch (dtype) {
        case DType::Fp64: return "Double";
        case DType::Fp32: case DType::Tf32: return "Float";
        case DType::Fp16: return "Half";
        case DType::Bf16: return "BFloat16";
        case DType::Fp8: return "Float8_e4m3fn";
        case DType::Int8: return "Char";
        case DType::Int32: return "Int";
        case DType::Int64: return "Long";
        case DType::Bool: return "Bool";
    }
    return "Float";
}

std::string_view torchCollective(CollectiveOp op) {
    switch (op) {
        case CollectiveOp::AllReduce: return "allreduce";
        case CollectiveOp::AllGather: return "_allgather_base";
        case CollectiveOp::ReduceScatter: return "_reduce_scatter_base";
        case CollectiveOp::Broadcast: return "broadcast";
        case CollectiveOp::Reduce: return "reduce";
        case CollectiveOp::AllToAll: return "all_to_all";
        case CollectiveOp::SendRecv: return "send";
        case CollectiveOp::Gather: return "gather";
        case CollectiveOp::Scatter: return "scatter";
    }
    return "allreduce";
}

void addMemory(TraceBuilder& builder, const Schedule& schedule, const RankProgram& program, const std::vector<TaskTimes>& times, const MemoryReport& memory, std::int64_t rank) {
    CounterSeries categories, reserved;
    categories.rank = reserved.rank = rank;
    categories.limit = reserved.limit = memory.capacity;
    categories.name = "memory by category";
    reserved.name = "memory reserved";
    reserved.series = {"reserved"};
    for (int c = 0; c < kMemoryCategories; ++c) categories.series.emplace_back(nameOf(static_cast<MemoryCategory>(c)));
    for (const MemorySample& sample : memory.samples) {
        const Time at = times[sample.task].issued;
        categories.at.push_back(at);
        reserved.at.push_back(at);
        for (const Bytes bytes : sample.bytes) categories.values.push_back(bytes);
        reserved.values.push_back(sample.reserved + memory.outside);
    }
    builder.addCounter(std::move(categories));
    builder.addCounter(std::move(reserved));
    std::vector<std::uint32_t> names(program.buffers.size(), 0xffffffffU);
    for (const BufferLife& life : memory.lives) {
        const Buffer& buffer = program.buffers[life.buffer];
        std::uint32_t& name = names[life.buffer];
        if (name == 0xffffffffU) name = builder.internName(bufferName(schedule, buffer));
        const Time begin = life.from == kNoTask ? Time{} : times[life.from].issued, end = life.until == kNoTask ? Time::max() : times[life.until].issued;
        builder.addAllocation({rank, begin, std::max(begin, end), life.bytes, name, builder.internName(nameOf(buffer.category))});
    }
}

bool isWorld(const Schedule& schedule, std::uint32_t axis) { return schedule.axes[axis].size == schedule.world; }

/// The first axis of all ranks is PyTorch's default group, which has no name.
std::string groupName(const Schedule& schedule, std::uint32_t axis) {
    if (isWorld(schedule, axis)) {
        std::uint32_t first = 0;
        while (!isWorld(schedule, first)) ++first;
        if (first == axis) return {};
    }
    return schedule.axes[axis].name;
}

std::vector<std::int64_t> groupRanks(const Schedule& schedule, std::uint32_t axis, std::int64_t rank) {
    std::vector<std::int64_t> ranks;
    if (isWorld(schedule, axis)) return ranks;
    const RankSet group = schedule.axes[axis].groupOf(rank);
    for (std::int64_t i = 0; i < group.count; ++i) ranks.push_back(group.at(i));
    return ranks;
}

/// The servers' tracks stand after the last rank's. All servers do the same at the same time: one of them is drawn.
void addServer(TraceBuilder& builder, const Schedule& schedule, const Timeline& timeline) {
    if (timeline.server.empty()) return;
    const auto track = [&](std::int64_t stream, TrackKind kind, const char* name) { return builder.addTrack(schedule.world, stream, kind, name); };
    const std::uint32_t receive = track(1, TrackKind::Communication, "server 0: receive"), apply = track(2, TrackKind::Compute, "server 0: apply"),
                        send = track(3, TrackKind::Communication, "server 0: send");
    for (const ServerSlice& slice : timeline.server) {
        const Time length = slice.end - slice.begin;
        switch (slice.kind) {
            case ServerSlice::Kind::Receive: builder.addSlice(receive, slice.begin, length, SliceCategory::Communication, builder.internName("receive")); break;
            case ServerSlice::Kind::Send: builder.addSlice(send, slice.begin, length, SliceCategory::Communication, builder.internName("send")); break;
            case ServerSlice::Kind::Sum:
                builder.addSlice(apply, slice.begin, length, SliceCategory::Compute, builder.internName(fmt::format("sum key {}", slice.key)));
                break;
            case ServerSlice::Kind::Apply:
                builder.addSlice(apply, slice.begin, length, SliceCategory::Optimizer, builder.internName(fmt::format("apply key {}", slice.key)));
                break;
        }
    }
}

}  // namespace

namespace {

/// What the host did to hand the task over, on its own track; the loader's work was nobody's launch.
bool isLaunched(const Task& task) { return task.stream != kHostStream && task.kind != TaskKind::HostWork && !task.replayed; }

}  // namespace

RankActivity activityOf(const Schedule& schedule, const Prices& prices, const Timeline& timeline, std::size_t c) {
    const RankProgram& program = schedule.programs[schedule.classes[c].program];
    const NodePrices& node = prices.nodes[schedule.classes[c].nodeGroup];
    RankActivity activity;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        const TaskTimes& times = timeline.classes[c][t];
        activity.add(trackKind(program.streams[task.stream].kind), categoryOf(task), times.start, times.end);
        if (isLaunched(task)) activity.add(TrackKind::Host, SliceCategory::Host, times.issued - launchTime(schedule, node, task), times.issued);
    }
    return activity;
}

Trace traceOf(const Schedule& schedule, const Prices& prices, const Timeline& timeline, const MemoryReport* memory, std::size_t memoryClass) {
    TraceBuilder builder;
    builder.setTitle(fmt::format("{} under {} on {} ranks (predicted)", schedule.workload->name, schedule.strategy, schedule.world));
    builder.setWorldSize(schedule.world);
    const std::uint32_t launch = builder.internName("cudaLaunchKernel");
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const RankProgram& program = schedule.programs[schedule.classes[c].program];
        const NodePrices& node = prices.nodes[schedule.classes[c].nodeGroup];
        const std::int64_t rank = schedule.classes[c].ranks.first;
        std::vector<std::uint32_t> tracks;
        for (std::size_t i = 0; i < program.streams.size(); ++i)
            tracks.push_back(builder.addTrack(rank, static_cast<std::int64_t>(i), trackKind(program.streams[i].kind), program.streams[i].name));
        std::vector<std::uint32_t> sliceOf(program.tasks.size());
        std::vector<std::int64_t> sequences(schedule.axes.size(), 0);
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            const TaskTimes& times = timeline.classes[c][t];
            std::int32_t collective = -1;
            if (task.kind == TaskKind::Collective) {
                const CollectiveWork& work = schedule.collectives[task.work];
                const CollectiveCost& cost = prices.collectives[task.work].cost;
                collective = builder.addCollective({std::string(torchCollective(work.op)), work.elements, std::string(torchDtype(work.dtype)), work.bytes(),
                                                    schedule.axes[work.axis].size, sequences[work.axis]++, std::string(nameOf(cost.algorithm)), std::string(nameOf(cost.protocol)),
                                                    groupName(schedule, work.axis), groupRanks(schedule, work.axis, rank)});
            }
            sliceOf[t] = builder.addSlice(tracks[task.stream], times.start, times.end - times.start, categoryOf(task), builder.internName(taskName(schedule, task)), t, collective);
            if (isLaunched(task)) {
                // The host's part: the launch that ended when the task was handed over.
                const Time cost = launchTime(schedule, node, task);
                const std::uint32_t launched = builder.addSlice(tracks[kHostStream], times.issued - cost, cost, SliceCategory::Host, launch);
                builder.addFlow(launched, sliceOf[t], Flow::Kind::Launch);
            }
            if (task.stream != kHostStream || task.kind == TaskKind::HostSync)
                for (const TaskId earlier : program.dependenciesOf(task)) builder.addFlow(sliceOf[earlier], sliceOf[t], Flow::Kind::Dependency);
        }
        if (memory && c == memoryClass) addMemory(builder, schedule, program, timeline.classes[c], *memory, rank);
    }
    addServer(builder, schedule, timeline);
    return builder.build();
}

}  // namespace ringside
