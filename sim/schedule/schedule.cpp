#include "sim/schedule/schedule.h"

#include <fmt/format.h>

#include "model/base/check.h"

namespace ringside {
namespace {

std::string layerName(const Schedule& schedule, std::int32_t layer) {
    return layer < 0 ? std::string("model") : schedule.workload->layers[static_cast<std::size_t>(layer)].name;
}

std::string ownedParameterName(const Schedule& schedule, std::int32_t layer, std::int32_t parameter) {
    return parameterName(*schedule.workload, static_cast<std::size_t>(layer), parameter);
}

}  // namespace

std::string_view nameOf(Phase phase) {
    switch (phase) {
        case Phase::Input: return "input";
        case Phase::Forward: return "forward";
        case Phase::Recompute: return "recompute";
        case Phase::Backward: return "backward";
        case Phase::GradientSync: return "gradient sync";
        case Phase::Optimizer: return "optimizer";
    }
    return "?";
}

std::string_view nameOf(MemoryCategory category) {
    switch (category) {
        case MemoryCategory::Parameters: return "parameters";
        case MemoryCategory::Gradients: return "gradients";
        case MemoryCategory::OptimizerState: return "optimizer_state";
        case MemoryCategory::Activations: return "activations";
        case MemoryCategory::Buckets: return "buckets";
        case MemoryCategory::Workspace: return "workspace";
        case MemoryCategory::Context: return "context";
        case MemoryCategory::Nccl: return "nccl";
    }
    return "?";
}

std::string taskName(const Schedule& schedule, const Task& task) {
    const auto parameter = [&] { return ownedParameterName(schedule, task.layer, task.part); };
    const auto collectiveName = [&] { return nameOf(schedule.collectives[task.work].op); };
    switch (task.role) {
        case TaskRole::Op: {
            const LayerType& type = schedule.workload->typeOf(static_cast<std::size_t>(task.layer));
            const Op& op = type.ops[static_cast<std::size_t>(task.op)];
            const std::string_view kernel = schedule.kernels[task.work].name;
            return fmt::format("{} {}.{}{}{}", nameOf(task.phase), layerName(schedule, task.layer), op.name, kernel.empty() ? "" : ": ", kernel);
        }
        case TaskRole::InputCopy: return "copy the batch to the device";
        case TaskRole::LossRead: return "wait for the loss";
        case TaskRole::GradientAccumulate: return parameter() + ": accumulate gradient";
        case TaskRole::GradientZero: return parameter() + ": zero gradient";
        case TaskRole::BucketCopyIn: return parameter() + ": copy into bucket";
        case TaskRole::BucketCopyOut: return parameter() + ": copy out of bucket";
        case TaskRole::GradientCast: return parameter() + ": cast gradient";
        case TaskRole::BucketCompress: return fmt::format("compress bucket {}", task.part);
        case TaskRole::BucketDecompress: return fmt::format("decompress bucket {}", task.part);
        case TaskRole::BucketZero: return fmt::format("zero bucket {}", task.part);
        case TaskRole::BucketDivide: return fmt::format("divide bucket {} by world size", task.part);
        case TaskRole::BucketFlatten: return fmt::format("flatten bucket {}", task.part);
        case TaskRole::BucketSlice: return fmt::format("keep the own part of bucket {}", task.part);
        case TaskRole::BucketReduce: return fmt::format("{} bucket {}", nameOf(schedule.collectives[task.work].op), task.part);
        case TaskRole::GradientReduce: return fmt::format("{} {}", nameOf(schedule.collectives[task.work].op), parameter());
        case TaskRole::GradientDivide: return parameter() + ": divide gradient by world size";
        case TaskRole::UnusedBitmap: return "all_reduce the bitmap of unused parameters";
        case TaskRole::BufferBroadcast: return "broadcast module buffers";
        case TaskRole::Unscale: return "unscale gradients";
        case TaskRole::ClipGradients: return "clip gradients";
        case TaskRole::OptimizerKernel: return fmt::format("optimizer step: {}", schedule.kernels[task.work].name);
        case TaskRole::StepOverhead: return "training loop";
        case TaskRole::LoadBatch: return "load the next batch";
        case TaskRole::OpCollective: case TaskRole::RingExchange: {
            if (task.kind == TaskKind::HostSync) return "wait for the ring";
            const LayerType& type = schedule.workload->typeOf(static_cast<std::size_t>(task.layer));
            return fmt::format("{} {}.{}: {}", nameOf(task.phase), layerName(schedule, task.layer), type.ops[static_cast<std::size_t>(task.op)].name,
                               nameOf(schedule.collectives[task.work].op));
        }
        case TaskRole::RingJoin: return "wait for the ring";
        case TaskRole::SendActivation: return fmt::format("send activations of micro-batch {}", task.microStep);
        case TaskRole::ReceiveActivation: return fmt::format("receive activations of micro-batch {}", task.microStep);
        case TaskRole::SendGradient: return fmt::format("send gradients of micro-batch {}", task.microStep);
        case TaskRole::ReceiveGradient: return fmt::format("receive gradients of micro-batch {}", task.microStep);
        case TaskRole::ReplicatedGradientReduce: return "all_reduce gradients of replicated parameters";
        case TaskRole::UnshardCopyIn: return fmt::format("copy shards of unit {} together", task.part);
        case TaskRole::Unshard: return fmt::format("{} unit {}", collectiveName(), task.part);
        case TaskRole::UnshardCopyOut: return fmt::format("copy unit {} out", task.part);
        case TaskRole::Reshard: return fmt::format("keep a shard of unit {}", task.part);
        case TaskRole::ReduceCopyIn: return fmt::format("copy gradients of unit {} together", task.part);
        case TaskRole::UnitAccumulate: return fmt::format("accumulate gradients of unit {}", task.part);
        case TaskRole::UnitDivide: return fmt::format("divide gradients of unit {}", task.part);
        case TaskRole::ShardReduce:
            if (task.kind == TaskKind::Kernel) return fmt::format("add up {} of all ranks", layerName(schedule, task.layer));
            return fmt::format("{} unit {}", collectiveName(), task.part);
        case TaskRole::ReplicaReduce: return fmt::format("{} unit {} between replicas", collectiveName(), task.part);
        case TaskRole::ShardCast: return fmt::format("cast shard of unit {}", task.part);
        case TaskRole::ShardAccumulate: return fmt::format("accumulate gradient shard of unit {}", task.part);
        case TaskRole::RateLimit: return fmt::format("wait until unit {} is free", task.part);
        case TaskRole::ParameterGather: return fmt::format("{} parameters {}", collectiveName(), task.part);
        case TaskRole::ParameterBroadcast: return fmt::format("{} parameters {}", collectiveName(), task.part);
        case TaskRole::ParameterAverage: return fmt::format("{} parameters {} to average them", collectiveName(), task.part);
        case TaskRole::OuterOptimizer: return "outer optimizer step";
        case TaskRole::NormReduce: return "all_reduce the gradient norm";
        case TaskRole::NormRead: return "read the gradient norm";
        case TaskRole::Synchronize: return "wait for the device";
        case TaskRole::OffloadToHost: return fmt::format("copy {} to the host", task.part);
        case TaskRole::OffloadToDevice: return fmt::format("copy {} to the device", task.part);
        case TaskRole::HostOptimizer: return "optimizer step on the host";
        case TaskRole::StorageRead: return "read from storage";
        case TaskRole::StorageWrite: return "write to storage";
        case TaskRole::Orthogonalise: return fmt::format("orthogonalise bucket {}", task.part);
        case TaskRole::Quantise: return fmt::format("quantise {}", task.part);
        case TaskRole::Dequantise: return fmt::format("dequantise {}", task.part);
        case TaskRole::JoinNotify: return "all_reduce who still has inputs";
        case TaskRole::ScatterInput: return "scatter the batch";
        case TaskRole::Replicate: return fmt::format("broadcast parameters {}", task.part);
        case TaskRole::GatherOutput: return "gather outputs on device 0";
        case TaskRole::ScatterGradient: return "scatter output gradients";
        case TaskRole::SumGradient: return fmt::format("reduce gradients {} onto device 0", task.part);
        case TaskRole::Push: return fmt::format("push {}", layerName(schedule, task.layer));
        case TaskRole::FlattenParameters: return fmt::format("copy parameters {} together", task.part);
        case TaskRole::Elastic: return "elastic force between worker and centre";
        case TaskRole::Pull: return fmt::format("pull {}", layerName(schedule, task.layer));
    }
    return "?";
}

std::string bufferName(const Schedule& schedule, const Buffer& buffer) {
    const auto parameter = [&] { return ownedParameterName(schedule, buffer.layer, buffer.index); };
    const auto value = [&] {
        const LayerType& type = schedule.workload->typeOf(static_cast<std::size_t>(buffer.layer));
        return fmt::format("{}.{}", layerName(schedule, buffer.layer), type.values[static_cast<std::size_t>(buffer.index)].name);
    };
    switch (buffer.role) {
        case BufferRole::Parameter: return parameter();
        case BufferRole::MasterParameter: return parameter() + " (fp32 master)";
        case BufferRole::Gradient: return parameter() + " gradient";
        case BufferRole::OptimizerState: return parameter() + " optimizer state";
        case BufferRole::State: return layerName(schedule, buffer.layer) + " module buffers";
        case BufferRole::Value: return value();
        case BufferRole::ValueGradient: return value() + " gradient";
        case BufferRole::Bucket: return fmt::format("bucket {}", buffer.index);
        case BufferRole::CompressedBucket: return fmt::format("compressed bucket {}", buffer.index);
        case BufferRole::Input: return "input batch";
        case BufferRole::Workspace: return "workspace";
        case BufferRole::Shard: return fmt::format("shard of unit {}", buffer.index);
        case BufferRole::MasterShard: return fmt::format("fp32 master shard of unit {}", buffer.index);
        case BufferRole::GradientShard: return fmt::format("gradient shard of unit {}", buffer.index);
        case BufferRole::OptimizerShard: return fmt::format("optimizer state of unit {}", buffer.index);
        case BufferRole::UnshardOutput: return fmt::format("all-gather output of unit {}", buffer.index);
        case BufferRole::UnshardedUnit: return fmt::format("gathered unit {}", buffer.index);
        case BufferRole::UnitGradient: return fmt::format("gradients of unit {}", buffer.index);
        case BufferRole::ParameterBucket: return fmt::format("parameters of bucket {}", buffer.index);
        case BufferRole::FlattenedBucket: return fmt::format("flattened bucket {}", buffer.index);
        case BufferRole::SecondaryShard: return fmt::format("secondary shard of unit {}", buffer.index);
        case BufferRole::ReceivedActivation: return fmt::format("received activations of micro-batch {}", buffer.index);
        case BufferRole::ReceivedGradient: return fmt::format("received gradients of micro-batch {}", buffer.index);
    }
    return "?";
}

std::vector<TaskId> previousOnCommunicator(const Schedule& schedule, const RankProgram& program) {
    std::vector<TaskId> previous(program.tasks.size(), kNoTask), last(schedule.axes.size(), kNoTask);
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        if (program.tasks[t].kind != TaskKind::Collective) continue;
        TaskId& before = last[schedule.collectives[program.tasks[t].work].axis];
        previous[t] = before;
        before = t;
    }
    return previous;
}

namespace {

/// What is sent in every step, and what only in the one that ends a round.
struct SentBytes {
    Bytes every = 0, periodic = 0;
};

SentBytes sentBytes(const Schedule& schedule, const RankClass& rankClass) {
    SentBytes sent;
    for (const Task& task : schedule.programs[rankClass.program].tasks) {
        Bytes& sum = task.periodic ? sent.periodic : sent.every;
        if (task.kind == TaskKind::Push) sum += schedule.messages[task.work].bytes * schedule.timesOf(task);
        if (task.kind != TaskKind::Collective) continue;
        const CollectiveWork& work = schedule.collectives[task.work];
        const CommAxis& axis = schedule.axes[work.axis];
        if (work.sender >= 0 && axis.positionOf(rankClass.ranks.first) != work.sender) continue;  // it only receives
        sum += bytesSentPerRank(work.op, work.bytes(), axis.size) * schedule.timesOf(task);
    }
    return sent;
}

}  // namespace

std::size_t classOf(const Schedule& schedule, std::int64_t rank) {
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const RankSet& ranks = schedule.classes[c].ranks;
        const std::int64_t place = rank - ranks.first;
        if (place >= 0 && place % ranks.stride == 0 && place / ranks.stride < ranks.count) return c;
    }
    CHECK(false);
    return 0;
}

Bytes bytesSentPerRank(const Schedule& schedule, const RankClass& rankClass) {
    const SentBytes sent = sentBytes(schedule, rankClass);
    return sent.every + sent.periodic;
}

Bytes meanBytesSentPerRank(const Schedule& schedule, const RankClass& rankClass) {
    const SentBytes sent = sentBytes(schedule, rankClass);
    return sent.every + (sent.periodic + schedule.period - 1) / schedule.period;
}

}  // namespace ringside
