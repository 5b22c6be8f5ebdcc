#include "sim/strategy/fsdp_setup.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/cost/optimizer_work.h"
#include "model/memory/optimizer_state.h"

namespace ringside {

FsdpTypes fsdpTypes(const TrainingConfig& training, const ParallelConfig& parallel) {
    FsdpTypes types;
    types.gather = training.precision.parameter;
    types.shard = training.precision.masterWeights ? DType::Fp32 : types.gather;
    types.reduce = parallel.reduceDtype.value_or(types.gather);
    types.gradientShard = parallel.keepLowPrecisionGrads ? types.reduce : types.shard;
    return types;
}

Precision shardPrecision(const TrainingConfig& training, const FsdpTypes& types) {
    Precision precision = training.precision;
    precision.parameter = types.shard;
    precision.gradient = types.gradientShard;
    precision.masterWeights = false;
    return precision;
}

std::uint32_t axisNamed(Schedule& schedule, const CommAxis& axis) {
    for (std::uint32_t a = 0; a < schedule.axes.size(); ++a)
        if (schedule.axes[a].name == axis.name) return a;
    schedule.axes.push_back(axis);
    return static_cast<std::uint32_t>(schedule.axes.size() - 1);
}

Result<ShardGroups> shardGroups(StepWriter& step, bool hybrid) {
    const std::int64_t ranks = step.syncRanks(), stride = step.mesh().tp;
    ShardGroups groups{step.axes().data, kNoAxis, ranks, 1};
    if (!hybrid) return groups;
    std::int64_t size = step.input().parallel.shardGroup;
    if (size == 0) {
        const std::vector<NodeGroup>& nodes = step.input().cluster.nodes;
        const std::int64_t devices = nodes.front().kind.devices;
        for (const NodeGroup& node : nodes)
            if (node.kind.devices != devices)
                return badInput("strategy.shard_group", fmt::format("nodes have {} and {} devices, so a node is no group; give the number of ranks that share a copy", devices, node.kind.devices));
        size = std::min(ranks, devices / stride);
    }
    if (size < 2) return badInput("strategy.shard_group", fmt::format("groups of {} ranks would shard nothing; give a shard_group of 2 or more that divides {}", size, ranks));
    if (ranks % size != 0)
        return badInput("strategy.shard_group", fmt::format("{} ranks cannot be cut into groups of {}; give a shard_group that divides {}", ranks, size, ranks));
    if (size == ranks) return groups;
    groups.shardRanks = size;
    groups.replicas = ranks / size;
    groups.shardAxis = axisNamed(step.schedule(), {"shard", size, stride});
    groups.replicaAxis = axisNamed(step.schedule(), {"replica", groups.replicas, stride * size});
    return groups;
}

DivideFactors divideFactors(std::int64_t ranks) {
    std::int64_t before = 1;
    while (ranks % before == 0 && ranks / before > before) before *= 2;
    return {static_cast<double>(before), static_cast<double>(ranks) / static_cast<double>(before)};
}

Buffer hostBuffer(Bytes bytes, MemoryCategory category, BufferRole role, DType dtype, std::int32_t unit) {
    Buffer buffer{bytes, category, role, dtype, true, false, -1, unit};
    buffer.onHost = true;
    return buffer;
}

CopyWork offloadCopy(const Cluster& cluster, CopyWork::Direction direction, Bytes bytes) {
    const std::int64_t sharing = std::min(cluster.nodes.front().kind.devices, cluster.nodes.front().kind.devicesPerPcieSwitch);
    return {direction, bytes, static_cast<int>(std::max<std::int64_t>(1, sharing))};
}

namespace {

double bytesOf(const std::vector<KernelWork>& kernels) {
    double sum = 0;
    for (const KernelWork& kernel : kernels) sum += kernel.bytes;
    return sum;
}

}  // namespace

void hostOptimizerStep(StepWriter& step, std::span<const OptimizerTarget> targets, const Precision& precision, std::optional<std::uint32_t> normAxis) {
    const TrainingConfig& training = step.input().training;
    std::vector<std::int64_t> elements;
    elements.reserve(targets.size());
    for (const OptimizerTarget& target : targets) elements.push_back(target.elements);
    const auto onHost = [&](TaskRole role, double bytes) {
        if (bytes > 0) step.hostWork(kHostStream, Phase::Optimizer, role, {HostWork::Kind::Memory, bytes});
    };
    // Norms and overflow flags are summed on the device and read back by the host.
    const auto sumOverRanks = [&] {
        if (!normAxis) return;
        const TaskId sum = step.collective(kComputeStream, Phase::Optimizer, TaskRole::NormReduce, CollectiveOp::AllReduce, DType::Fp32, 1, *normAxis);
        step.hostWait(Phase::Optimizer, TaskRole::NormReduce, std::array{sum});
    };
    if (training.precision.lossScaling) {
        onHost(TaskRole::Unscale, bytesOf(gradientUnscaling(precision, elements)));
        sumOverRanks();
    }
    if (training.gradientClipping) {
        onHost(TaskRole::ClipGradients, bytesOf(gradientClipping(precision, elements)));
        sumOverRanks();
    }
    // On a processor torch.optim takes the for-loop unless the fused kernel is asked for.
    Optimizer optimizer = training.optimizer;
    if (optimizer.implementation != OptimizerImplementation::Fused) optimizer.implementation = OptimizerImplementation::ForLoop;
    step.hostWork(kHostStream, Phase::Optimizer, TaskRole::HostOptimizer, {HostWork::Kind::Memory, bytesOf(ringside::optimizerStep(optimizer, precision, elements))});
    for (const OptimizerTarget& target : targets) {
        if (step.input().step == StepKind::First) {
            Buffer state = hostBuffer(flatOptimizerStateBytes(optimizer, precision, target.elements), MemoryCategory::OptimizerState, BufferRole::OptimizerShard, DType::Fp32, target.index);
            if (state.bytes == 0) continue;
            state.persistent = false;
            state.outlives = true;
            step.program().use(step.addBuffer(state), UseKind::Allocate);
        }
    }
    for (const OptimizerTarget& target : targets) {
        step.program().use(target.gradient, UseKind::Read);
        step.program().use(target.parameter, UseKind::Write);
    }
}

}  // namespace ringside
