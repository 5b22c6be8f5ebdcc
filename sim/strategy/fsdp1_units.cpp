#include "sim/strategy/fsdp1_units.h"

#include <array>

namespace ringside {
namespace {

constexpr std::size_t kUnitsInFlight = 2;  // _limiter_utils.py: _max_num_inflight_all_gathers
constexpr Bytes kAlignment = 16;           // of tensors in the flat parameter

std::uint16_t partOf(std::uint32_t u) { return static_cast<std::uint16_t>(u); }

/// `recorded`: another stream uses it too (recordStream), so that it comes back only when the device is through.
BufferId add(StepWriter& step, std::uint32_t u, std::int64_t elements, std::int32_t layout, DType dtype, MemoryCategory category, BufferRole role, StreamId stream, bool recorded) {
    Buffer buffer{elements * sizeOf(dtype), category, role, dtype, false, false, -1, static_cast<std::int32_t>(u)};
    buffer.stream = stream;
    buffer.deferredFree = recorded;
    buffer.layout = layout;
    return step.addBuffer(buffer);
}

void waitsFor(StepWriter& step, TaskId earlier) {
    if (earlier != kNoTask) step.program().dependOn(earlier);
}

}  // namespace

Fsdp1Options fsdp1Options(const StrategyInput& input, DType gathered) {
    const ParallelConfig& parallel = input.parallel;
    Fsdp1Options options;
    options.shards = parallel.shardingStrategy != "no_shard";
    options.hybrid = parallel.shardingStrategy == "hybrid_shard" || parallel.shardingStrategy == "hybrid_shard_zero2";
    options.reshards = parallel.shardingStrategy == "full_shard" || parallel.shardingStrategy == "hybrid_shard";
    options.noSync = parallel.noSync;
    options.limit = parallel.limitAllGathers;
    options.offload = parallel.cpuOffload;
    options.prefetchBefore = parallel.backwardPrefetch == "pre";
    options.prefetchBehind = parallel.backwardPrefetch == "post";
    // The order to prefetch in is recorded in the first iteration.
    options.forwardPrefetch = parallel.forwardPrefetch > 0 && input.step == StepKind::Steady;
    options.alignedTo = parallel.useOrigParams ? kAlignment / sizeOf(gathered) : 0;
    return options;
}

FlatUnits::FlatUnits(StepWriter& step, FsdpUnits units, const FsdpTypes& types, const ShardGroups& groups, const Fsdp1Options& options)
    : FsdpHooks(std::move(units)), groups_(groups), options_(options), divide_(divideFactors(groups.shardRanks * groups.replicas)), states_(units_.all.size()) {
    ProgramWriter& program = step.program();
    unshard_ = program.addStream(StreamKind::Communication, "unshard");
    preUnshard_ = program.addStream(options.offload ? StreamKind::Copy : StreamKind::Compute, "pre-unshard");
    postBackward_ = program.addStream(StreamKind::Communication, "post-backward");
    if (groups.replicas > 1) allReduce_ = program.addStream(StreamKind::Communication, "all-reduce");
    for (std::uint32_t u = 0; u < states_.size(); ++u) declare(step, u, types);
}

std::vector<OptimizerTarget> FlatUnits::targets() const {
    std::vector<OptimizerTarget> targets;
    for (std::uint32_t u = 0; u < states_.size(); ++u)
        if (states_[u].shard > 0)
            targets.push_back({states_[u].shard, states_[u].kept, options_.offload ? states_[u].hostGradient : states_[u].gradient, -1, static_cast<std::int32_t>(u), true,
                               0, states_[u].part});
    return targets;
}

void FlatUnits::dropGradients(StepWriter& step) {
    if (options_.offload) return;
    for (State& unit : states_)
        if (unit.hasGradient) step.program().use(unit.gradient, UseKind::Free);
}

void FlatUnits::declare(StepWriter& step, std::uint32_t u, const FsdpTypes& types) {
    const FsdpUnit& members = units_.all[u];
    if (members.parameters.empty()) return;
    State& unit = states_[u];
    unit.types = members.fullPrecision ? FsdpTypes{} : types;
    std::vector<std::int64_t> sizes;
    for (const std::uint32_t p : members.parameters) sizes.push_back(step.parameters()[p].elements);
    unit.unpadded = members.elements;
    unit.flat = flatElements(sizes, options_.alignedTo, options_.shards ? groups_.shardRanks : 1);
    unit.shard = options_.shards ? unit.flat / groups_.shardRanks : unit.flat;
    Layout line;
    line.elements = unit.flat;
    const std::vector<std::int64_t> places = flatPlaces(sizes, options_.alignedTo);
    for (std::size_t i = 0; i < sizes.size(); ++i) line.pieces.push_back({members.parameters[i], places[i]});
    unit.line = unit.part = step.program().addLayout(line);
    if (options_.shards) {
        line.cut = Cut::Flat;
        line.axis = groups_.shardAxis;
        unit.part = step.program().addLayout(std::move(line));
    }
    const auto index = static_cast<std::int32_t>(u);
    const Bytes kept = unit.shard * sizeOf(unit.types.shard);
    if (options_.offload) {
        unit.kept = step.addBuffer(hostBuffer(kept, MemoryCategory::Parameters, BufferRole::Shard, unit.types.shard, index));
        unit.hostGradient = step.addBuffer(hostBuffer(unit.shard * sizeOf(unit.types.gradientShard), MemoryCategory::Gradients, BufferRole::GradientShard, unit.types.gradientShard, index));
    } else {
        Buffer shard{kept, MemoryCategory::Parameters, BufferRole::Shard, unit.types.shard, true, false, -1, index};
        shard.layout = unit.part;
        unit.kept = step.addBuffer(shard);
    }
    for (const std::uint32_t p : members.parameters) step.parameters()[p].buffer = unit.kept;  // until it is gathered
}

void FlatUnits::beginForward(StepWriter& step, const Pass&) {
    passStart_ = step.hasCompute() ? step.lastCompute() : kNoTask;  // the unshard streams wait for the compute stream
}

// At most two units are in flight beyond what has been freed: the host blocks until the one before those is free.
void FlatUnits::limitRate(StepWriter& step, Phase phase) {
    if (!options_.limit || freed_.size() < kUnitsInFlight) return;
    const auto [event, unit] = freed_.front();
    freed_.pop_front();
    step.hostWait(phase, TaskRole::RateLimit, std::array{event}, partOf(unit));
}

/// The shard's way from host memory. `ready`: what the copy waits for, then the copy.
BufferId FlatUnits::stage(StepWriter& step, std::uint32_t u, Phase phase, TaskId& ready) {
    const State& unit = states_[u];
    const BufferId staged = add(step, u, unit.shard, unit.part, unit.types.shard, MemoryCategory::Buckets, BufferRole::Shard, preUnshard_, !unit.types.mixed());
    const CopyWork work = offloadCopy(step.input().cluster, CopyWork::Direction::HostToDevice, unit.shard * sizeOf(unit.types.shard));
    const TaskId copy = step.copy(preUnshard_, phase, TaskRole::OffloadToDevice, work, partOf(u));
    waitsFor(step, ready);
    step.program().use(unit.kept, UseKind::Read);
    step.program().use(staged, UseKind::Allocate);
    step.program().use(staged, UseKind::Write);
    ready = copy;
    return staged;
}

/// The shard in the type that travels; without sharding, that is what ops read.
BufferId FlatUnits::lower(StepWriter& step, std::uint32_t u, Phase phase, BufferId source, TaskId& ready) {
    const State& unit = states_[u];
    const BufferId low = options_.shards ? add(step, u, unit.shard, unit.part, unit.types.gather, MemoryCategory::Buckets, BufferRole::Shard, preUnshard_, true) : unit.gathered;
    const TaskId cast = step.memoryKernel(preUnshard_, phase, TaskRole::ShardCast, "cast", unit.shard * (sizeOf(unit.types.shard) + sizeOf(unit.types.gather)), -1, partOf(u));
    waitsFor(step, ready);
    step.program().use(source, UseKind::Read);
    step.program().use(low, UseKind::Allocate);
    step.program().use(low, UseKind::Write);
    if (source != unit.kept) step.program().use(source, UseKind::Free);
    ready = cast;
    return low;
}

void FlatUnits::gather(StepWriter& step, std::uint32_t u, Phase phase) {
    State& unit = states_[u];
    if (unit.isGathered || readsShard(unit)) return;
    unit.isGathered = true;
    // A buffer of its own each time: the one before may still wait for the device when the host is here again.
    unit.gathered = add(step, u, unit.flat, unit.line, unit.types.gather, MemoryCategory::Buckets, BufferRole::UnshardedUnit, options_.shards ? unshard_ : preUnshard_, true);
    for (const std::uint32_t p : units_.all[u].parameters) step.parameters()[p].buffer = unit.gathered;
    TaskId ready = passStart_;
    BufferId source = unit.kept;
    if (options_.offload) source = stage(step, u, phase, ready);
    if (unit.types.mixed()) source = lower(step, u, phase, source, ready);
    if (options_.shards) {
        limitRate(step, phase);
        const TaskId all = step.collective(unshard_, phase, TaskRole::Unshard, CollectiveOp::AllGather, unit.types.gather, unit.flat, groups_.shardAxis, -1, partOf(u));
        waitsFor(step, ready);
        step.program().use(source, UseKind::Read);
        step.program().use(unit.gathered, UseKind::Allocate);
        step.program().use(unit.gathered, UseKind::Write);
        if (source != unit.kept) step.program().use(source, UseKind::Free);
        ready = all;
    }
    unit.arrives = ready;
}

void FlatUnits::await(StepWriter& step, std::uint32_t u) {
    TaskId& arrives = states_[u].arrives;
    if (arrives != kNoTask) step.waitOnCompute(arrives);
    arrives = kNoTask;
}

/// With the task written last, which is the last of compute that reads the unit.
void FlatUnits::free(StepWriter& step, std::uint32_t u) {
    State& unit = states_[u];
    if (!unit.isGathered) return;
    step.program().use(unit.gathered, UseKind::Free);
    unit.isGathered = false;
    if (options_.shards && options_.limit) freed_.emplace_back(step.lastCompute(), u);
}

void FlatUnits::preForward(StepWriter& step, std::uint32_t u) {
    const Phase phase = inBackward() ? Phase::Recompute : Phase::Forward;
    gather(step, u, phase);
    await(step, u);
    const std::uint32_t next = units_.all[u].nextForward;
    if (options_.forwardPrefetch && !inBackward() && next != kNoUnit) gather(step, next, phase);
}

// The root stays gathered until backward is through with it.
void FlatUnits::postForward(StepWriter& step, std::uint32_t u) {
    if (options_.shards ? options_.reshards && !units_.all[u].isRoot() : true) free(step, u);
}

void FlatUnits::beginBackward(StepWriter&, const Pass& pass) {
    sync_ = pass.last || !options_.noSync;
    for (State& unit : states_) unit.entered = unit.passed = false;
}

void FlatUnits::prefetchBackward(StepWriter& step, std::uint32_t u) {
    const std::uint32_t next = units_.all[u].nextBackward;
    if (next != kNoUnit && !states_[next].entered) gather(step, next, Phase::Backward);
}

void FlatUnits::preBackward(StepWriter& step, std::uint32_t u) {
    states_[u].entered = true;
    gather(step, u, Phase::Backward);
    await(step, u);
    if (options_.prefetchBefore) prefetchBackward(step, u);
}

void FlatUnits::gradientsReady(StepWriter& step, std::uint32_t u) {
    State& unit = states_[u];
    unit.passed = true;
    flatten(step, u);
    // Without a reduction, what forward does not reshard stays gathered for the next micro-step.
    if (!options_.shards || sync_ || options_.reshards) free(step, u);
    if (options_.prefetchBehind) prefetchBackward(step, u);
    if (sync_ && unit.hasFlatGradient) reduce(step, u);
}

// Backward of the views into the flat parameter: their gradients are put together, and added to what earlier
// micro-steps left.
void FlatUnits::flatten(StepWriter& step, std::uint32_t u) {
    State& unit = states_[u];
    const Bytes bytes = unit.unpadded * sizeOf(step.gradientDtype()) + unit.flat * sizeOf(unit.types.gather);
    const MemoryCategory category = unit.hasFlatGradient ? MemoryCategory::Workspace : MemoryCategory::Gradients;
    const BufferId target = add(step, u, unit.flat, unit.line, unit.types.gather, category, BufferRole::UnitGradient, kComputeStream, !unit.hasFlatGradient);
    step.memoryKernel(kComputeStream, Phase::Backward, TaskRole::ReduceCopyIn, "cat", bytes, -1, partOf(u));
    step.program().use(target, UseKind::Allocate);
    for (const std::uint32_t p : units_.all[u].parameters)
        if (step.parameters()[p].hasGradient) step.program().use(step.parameters()[p].gradient, UseKind::Read);
    step.program().use(target, UseKind::Write);
    for (const std::uint32_t p : units_.all[u].parameters) step.dropGradient(p);
    if (!unit.hasFlatGradient) {
        unit.flatGradient = target;
    } else {
        step.memoryKernel(kComputeStream, Phase::Backward, TaskRole::UnitAccumulate, "add", 3 * unit.flat * sizeOf(unit.types.gather), -1, partOf(u));
        step.program().use(target, UseKind::Read);
        step.program().use(unit.flatGradient, UseKind::Write);
        step.program().use(target, UseKind::Free);
    }
    unit.hasFlatGradient = true;
}

void FlatUnits::reduce(StepWriter& step, std::uint32_t u) {
    State& unit = states_[u];
    ProgramWriter& program = step.program();
    const DType dtype = unit.types.reduce;
    const TaskId computed = step.lastCompute();
    BufferId wire = unit.flatGradient;
    inAllReduce_ = false;
    const bool casts = dtype != unit.types.gather, pads = options_.shards && options_.alignedTo == 0 && unit.flat != unit.unpadded;
    if (casts || pads) {
        const BufferId cast = add(step, u, unit.flat, unit.line, dtype, MemoryCategory::Buckets, BufferRole::UnitGradient, postBackward_, false);
        const Bytes bytes = unit.flat * (sizeOf(unit.types.gather) + sizeOf(dtype));
        onTail(step.memoryKernel(postBackward_, Phase::GradientSync, TaskRole::ShardCast, casts ? "cast" : "pad", bytes, -1, partOf(u)));
        program.dependOn(computed);
        program.use(cast, UseKind::Allocate);
        program.use(wire, UseKind::Read);
        program.use(cast, UseKind::Write);
        program.use(wire, UseKind::Free);
        wire = cast;
    }
    unit.hasFlatGradient = false;
    divide(step, u, wire, unit.flat, divide_.before, computed);
    accumulate(step, u, options_.shards ? scatter(step, u, wire, computed) : reduceWhole(step, u, wire, computed));
}

void FlatUnits::divide(StepWriter& step, std::uint32_t u, BufferId buffer, std::int64_t elements, double by, TaskId after) {
    if (by <= 1) return;
    onTail(step.memoryKernel(inAllReduce_ ? allReduce_ : postBackward_, Phase::GradientSync, TaskRole::UnitDivide, "divide", 2 * elements * sizeOf(states_[u].types.reduce), -1, partOf(u), by));
    waitsFor(step, after);
    step.program().use(buffer, UseKind::Write);
}

/// The buffer that holds this rank's piece of the sum.
BufferId FlatUnits::scatter(StepWriter& step, std::uint32_t u, BufferId wire, TaskId computed) {
    State& unit = states_[u];
    ProgramWriter& program = step.program();
    const bool kept = reducesInPlace(unit);
    const BufferId piece = add(step, u, unit.shard, unit.part, unit.types.reduce, kept ? MemoryCategory::Gradients : MemoryCategory::Buckets, BufferRole::GradientShard, postBackward_,
                               groups_.replicas > 1);
    if (kept) unit.gradient = piece;
    const TaskId scattered = onTail(step.collective(postBackward_, Phase::GradientSync, TaskRole::ShardReduce, CollectiveOp::ReduceScatter, unit.types.reduce, unit.flat,
                                                    groups_.shardAxis, -1, partOf(u)));
    program.dependOn(computed);
    program.use(wire, UseKind::Read);
    program.use(piece, UseKind::Allocate);
    program.use(piece, UseKind::Write);
    program.use(wire, UseKind::Free);
    if (groups_.replicas > 1) {
        inAllReduce_ = true;
        onTail(step.collective(allReduce_, Phase::GradientSync, TaskRole::ReplicaReduce, CollectiveOp::AllReduce, unit.types.reduce, unit.shard, groups_.replicaAxis, -1, partOf(u)));
        program.dependOn(scattered);
        program.use(piece, UseKind::Read);
        program.use(piece, UseKind::Write);
    }
    return piece;
}

BufferId FlatUnits::reduceWhole(StepWriter& step, std::uint32_t u, BufferId wire, TaskId computed) {
    State& unit = states_[u];
    onTail(step.collective(postBackward_, Phase::GradientSync, TaskRole::ShardReduce, CollectiveOp::AllReduce, unit.types.reduce, unit.flat, groups_.shardAxis, -1, partOf(u)));
    step.program().dependOn(computed);
    step.program().use(wire, UseKind::Read);
    step.program().use(wire, UseKind::Write);
    if (reducesInPlace(unit)) unit.gradient = wire;  // where it stays
    return wire;
}

/// From the reduced piece to the gradient the optimizer reads: division, cast, sum over micro-steps, copy to the host.
void FlatUnits::accumulate(StepWriter& step, std::uint32_t u, BufferId piece) {
    State& unit = states_[u];
    ProgramWriter& program = step.program();
    const StreamId stream = inAllReduce_ ? allReduce_ : postBackward_;
    const Bytes from = sizeOf(unit.types.reduce), to = sizeOf(unit.types.gradientShard);
    divide(step, u, piece, unit.shard, divide_.after, kNoTask);
    if (unit.types.reduce != unit.types.gradientShard) {
        const MemoryCategory category = unit.hasGradient ? MemoryCategory::Buckets : MemoryCategory::Gradients;
        const BufferId target = add(step, u, unit.shard, unit.part, unit.types.gradientShard, category, BufferRole::GradientShard, stream, false);
        if (!unit.hasGradient) unit.gradient = target;
        onTail(step.memoryKernel(stream, Phase::GradientSync, TaskRole::ShardCast, "cast", unit.shard * (from + to), -1, partOf(u)));
        program.use(piece, UseKind::Read);
        program.use(target, UseKind::Allocate);
        program.use(target, UseKind::Write);
        program.use(piece, UseKind::Free);
        piece = target;
    }
    if (unit.hasGradient) {
        onTail(step.memoryKernel(stream, Phase::GradientSync, TaskRole::ShardAccumulate, "add", 3 * unit.shard * to, -1, partOf(u)));
        program.use(piece, UseKind::Read);
        program.use(unit.gradient, UseKind::Write);
        program.use(piece, UseKind::Free);
    }
    unit.hasGradient = true;
    if (!options_.offload) return;
    onTail(step.copy(stream, Phase::GradientSync, TaskRole::OffloadToHost, offloadCopy(step.input().cluster, CopyWork::Direction::DeviceToHost, unit.shard * to), partOf(u)));
    program.use(unit.gradient, UseKind::Read);
    program.use(unit.hostGradient, UseKind::Write);
    program.use(unit.gradient, UseKind::Free);
    unit.hasGradient = false;
}

void FlatUnits::endBackward(StepWriter& step, const Pass&) {
    for (std::uint32_t u = 0; u < states_.size(); ++u)
        if (!states_[u].passed && states_[u].shard > 0) gradientsReady(step, u);
    if (!sync_) return;
    std::vector<TaskId> tails;
    for (const TaskId tail : {lastPostBackward_, lastAllReduce_})
        if (tail != kNoTask) tails.push_back(tail);
    step.waitOnCompute(tails);
    if (options_.offload) step.hostWait(Phase::GradientSync, TaskRole::OffloadToHost, tails);
}

}  // namespace ringside
