// What FSDP1 and FSDP2 have in common besides their units: types, groups of ranks, the division of gradients, and the
// optimizer on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/strategy/step_writer.h"

namespace ringside {

/// In which type a unit is kept, gathered and reduced.
struct FsdpTypes {
    DType shard = DType::Fp32;          ///< kept: fp32 where there is a master copy, because the shard is the master
    DType gather = DType::Fp32;         ///< what travels and what ops read
    DType reduce = DType::Fp32;         ///< what gradients are summed in: reduce_dtype, else as gathered
    DType gradientShard = DType::Fp32;  ///< what the optimizer reads

    bool mixed() const { return shard != gather; }
};
FsdpTypes fsdpTypes(const TrainingConfig& training, const ParallelConfig& parallel);

/// The precision of what the optimizer sees: shards, without a master copy beside them.
Precision shardPrecision(const TrainingConfig& training, const FsdpTypes& types);

/// The ranks that hold one copy of the parameters between them, and those that hold the same shard.
struct ShardGroups {
    std::uint32_t shardAxis = 0, replicaAxis = kNoAxis;
    std::int64_t shardRanks = 1, replicas = 1;
};
/// `hybrid`: copies within groups of shard_group ranks (a node, unless given). Adds the axes to the schedule where they are
/// not there yet. Fails (bad input) where the ranks do not divide.
Result<ShardGroups> shardGroups(StepWriter& step, bool hybrid);
/// An axis of the schedule by its name, added unless it is there (another program of the schedule may have).
std::uint32_t axisNamed(Schedule& schedule, const CommAxis& axis);

/// Gradients are divided by `before` ahead of the sum and by `after` behind it, so that fp16 neither overflows nor underflows:
/// `before` is the power of two next to √ranks.
struct DivideFactors {
    double before = 1, after = 1;
};
DivideFactors divideFactors(std::int64_t ranks);

/// A host buffer for what is offloaded.
Buffer hostBuffer(Bytes bytes, MemoryCategory category, BufferRole role, DType dtype, std::int32_t unit);
/// A copy over PCIe that all devices make at the same time.
CopyWork offloadCopy(const Cluster& cluster, CopyWork::Direction direction, Bytes bytes);

/// Clipping and the optimizer's update of shards in host memory, on the host thread. REQUIRES: the host has waited for the
/// gradients.
void hostOptimizerStep(StepWriter& step, std::span<const OptimizerTarget> targets, const Precision& precision, std::optional<std::uint32_t> normAxis);

}  // namespace ringside
