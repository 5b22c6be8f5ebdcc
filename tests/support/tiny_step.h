// TinyStep: a Schedule of a few tasks with prices given in nanoseconds, for tests whose numbers are derived by hand.
#pragma once

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <vector>

#include "sim/player/player.h"
#include "sim/schedule/program_writer.h"

namespace ringside::testing {

inline Time ns(std::int64_t n) { return Time::fromNanoseconds(n); }

/// One program for all ranks; class c has `ranks[c]` ranks on a node kind of its own. Streams: 0 host, 1 compute,
/// 2 communication, 3 another communication stream. Launching costs nothing unless `launch` is set.
class TinyStep {
public:
    explicit TinyStep(std::vector<std::int64_t> ranks = {1}) {
        schedule.strategy = "tiny";
        schedule.workload = std::make_shared<Workload>();
        schedule.programs.emplace_back();
        schedule.programs.front().streams = {
            {StreamKind::Host, "host"}, {StreamKind::Compute, "compute"}, {StreamKind::Communication, "nccl"}, {StreamKind::Communication, "nccl 2"}};
        std::int64_t first = 0;
        for (std::size_t c = 0; c < ranks.size(); ++c) {
            schedule.classes.push_back({0, c, {first, 1, ranks[c]}, 1, 1, 1});
            first += ranks[c];
            prices.nodes.emplace_back();
            prices.nodes.back().slowdown.emplace_back();
            prices.nodes.back().hostWorks.emplace_back();
        }
        schedule.hostWorks.emplace_back();
        schedule.world = first;
        schedule.axes.push_back({"dp", first, 1});
    }

    RankProgram& program() { return schedule.programs.front(); }

    /// Durations per class (one for all if a single one is given); `besideCollective` is its slowdown.
    TaskId kernel(StreamId stream, std::vector<std::int64_t> durationNs, std::vector<TaskId> after = {}, float besideCollective = 1) {
        KernelWork work;
        work.name = "kernel";
        schedule.kernels.push_back(work);
        for (std::size_t c = 0; c < prices.nodes.size(); ++c) {
            prices.nodes[c].kernels.push_back(ns(durationNs[durationNs.size() == 1 ? 0 : c]));
            prices.nodes[c].slowdown[0].push_back(besideCollective);
        }
        return add(TaskKind::Kernel, TaskRole::OptimizerKernel, stream, schedule.kernels.size() - 1, after);
    }
    TaskId collective(StreamId stream, std::int64_t durationNs, std::vector<TaskId> after = {}) {
        schedule.collectives.push_back({CollectiveOp::AllReduce, DType::Fp32, 1024, 0});
        CollectivePrice price;
        price.duration = ns(durationNs);
        prices.collectives.push_back(price);
        const TaskId t = add(TaskKind::Collective, TaskRole::BucketReduce, stream, schedule.collectives.size() - 1, after);
        program().tasks.back().part = static_cast<std::uint16_t>(schedule.collectives.size() - 1);
        return t;
    }
    TaskId copy(StreamId stream, std::int64_t durationNs, std::vector<TaskId> after = {}) {
        schedule.copies.push_back({CopyWork::Direction::HostToDevice, 1});
        for (NodePrices& node : prices.nodes) node.copies.push_back(ns(durationNs));
        return add(TaskKind::Copy, TaskRole::InputCopy, stream, schedule.copies.size() - 1, after);
    }
    TaskId hostWork() { return add(TaskKind::HostWork, TaskRole::StepOverhead, kHostStream, 0, {}); }
    TaskId hostSync(std::vector<TaskId> after) { return add(TaskKind::HostSync, TaskRole::LossRead, kHostStream, 0, after); }

    BufferId buffer(Bytes bytes, MemoryCategory category = MemoryCategory::Workspace, bool persistent = false) {
        Buffer b;
        b.bytes = bytes;
        b.category = category;
        b.role = BufferRole::Bucket;
        b.persistent = persistent;
        b.index = static_cast<std::int32_t>(program().buffers.size());
        return ProgramWriter(program()).addBuffer(b);
    }
    /// Of the task added last.
    void use(BufferId b, UseKind kind) { ProgramWriter(program()).use(b, kind); }

    void launch(std::int64_t kernelNs, std::int64_t collectiveNs, std::int64_t hostWorkNs = 0) {
        for (NodePrices& node : prices.nodes) {
            node.launch = ns(kernelNs);
            node.collectiveLaunch = ns(collectiveNs);
            node.hostWorks = {ns(hostWorkNs)};
        }
    }

    Timeline played() const {
        Result<Timeline> timeline = play(schedule, prices);
        if (!timeline) throw std::runtime_error(timeline.error().toString());
        return std::move(*timeline);
    }

    Schedule schedule;
    Prices prices;

private:
    TaskId add(TaskKind kind, TaskRole role, StreamId stream, std::size_t work, const std::vector<TaskId>& after) {
        ProgramWriter writer(program());
        Task task;
        task.kind = kind;
        task.role = role;
        task.stream = stream;
        task.work = static_cast<std::uint32_t>(work);
        const TaskId id = writer.add(task);
        for (const TaskId earlier : after) writer.dependOn(earlier);
        return id;
    }
};

}  // namespace ringside::testing
