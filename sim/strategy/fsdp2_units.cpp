#include "sim/strategy/fsdp2_units.h"

#include <array>

namespace ringside {
namespace {

std::uint16_t partOf(std::uint32_t u) { return static_cast<std::uint16_t>(u); }

const Shape& shapeOf(StepWriter& step, std::uint32_t p) {
    const ModelParameter& parameter = step.parameters()[p];
    return step.workload().typeOf(static_cast<std::size_t>(parameter.layer)).parameters[static_cast<std::size_t>(parameter.index)].shape;
}

}  // namespace

ShardedUnits::ShardedUnits(StepWriter& step, FsdpUnits units, const FsdpTypes& types, const ShardGroups& groups, const Fsdp2Options& options)
    : FsdpHooks(std::move(units)), types_(types), groups_(groups), options_(options), states_(units_.all.size()), layouts_(step.parameters().size()) {
    const auto stream = [&](StreamKind kind, const char* name) { return options.overlap ? step.program().addStream(kind, name) : kComputeStream; };
    copyIn_ = stream(options.offload ? StreamKind::Copy : StreamKind::Compute, "all-gather copy-in");
    allGather_ = stream(StreamKind::Communication, "all-gather");
    reduceScatter_ = stream(StreamKind::Communication, "reduce-scatter");
    if (groups.replicas > 1) allReduce_ = stream(StreamKind::Communication, "all-reduce");
    if (types.reduce == DType::Fp16) divide_ = divideFactors(groups.shardRanks * groups.replicas);
    for (std::uint32_t u = 0; u < states_.size(); ++u)
        if (!units_.all[u].parameters.empty()) declare(step, u, groups);
}

void ShardedUnits::declare(StepWriter& step, std::uint32_t u, const ShardGroups& groups) {
    const FsdpUnit& unit = units_.all[u];
    State& state = states_[u];
    state.axis = unit.expert ? step.axes().expertData : groups.shardAxis;
    state.ranks = step.schedule().axes[state.axis].size;
    for (const std::uint32_t p : unit.parameters) state.shard += shardElements(shapeOf(step, p), state.ranks);
    state.padded = state.shard * state.ranks;
    describe(step, u);
    const auto index = static_cast<std::int32_t>(u);
    const Bytes kept = state.shard * sizeOf(types_.shard);
    if (options_.offload) {
        state.kept = step.addBuffer(hostBuffer(kept, MemoryCategory::Parameters, BufferRole::Shard, types_.shard, index));
        state.hostGradient = step.addBuffer(hostBuffer(kept, MemoryCategory::Gradients, BufferRole::GradientShard, types_.shard, index));
    } else {
        Buffer shard{kept, MemoryCategory::Parameters, BufferRole::Shard, types_.shard, true, false, -1, index};
        shard.layout = state.part;
        state.kept = step.addBuffer(shard);
    }
    need(step, state.gathered, u, state.padded, state.whole, types_.gather, MemoryCategory::Buckets, BufferRole::UnshardedUnit, kComputeStream);
    for (const std::uint32_t p : unit.parameters) step.parameters()[p].buffer = state.gathered;
}

/// What the unit's buffers hold. A tensor's rows are padded to a multiple of the ranks, wherever they are.
void ShardedUnits::describe(StepWriter& step, std::uint32_t u) {
    State& state = states_[u];
    ProgramWriter& program = step.program();
    Layout parts, whole;
    parts.cut = Cut::EachRow;
    parts.axis = state.axis;
    std::int64_t start = 0;
    for (const std::uint32_t p : units_.all[u].parameters) {
        Layout one = parts;
        one.pieces = {{p, 0}};
        layouts_[p].alone = layouts_[p].inUnit = program.addLayout(one);
        if (start > 0) {
            one.start = start;
            layouts_[p].inUnit = program.addLayout(std::move(one));
        }
        whole.pieces.push_back({p, start * state.ranks});
        start += shardElements(shapeOf(step, p), state.ranks);
    }
    whole.elements = state.padded;
    parts.pieces = whole.pieces;
    state.whole = program.addLayout(std::move(whole));
    state.part = program.addLayout(parts);
    parts.gathered = true;
    state.gatheredParts = program.addLayout(parts);
    if (options_.reshardRanks == 0) return;
    parts.axis = options_.reshardAxis;
    parts.paddedTo = state.ranks;
    state.gatheredPostForward = program.addLayout(parts);
    parts.gathered = false;
    state.postForwardPart = program.addLayout(std::move(parts));
}

void ShardedUnits::need(StepWriter& step, BufferId& buffer, std::uint32_t u, std::int64_t elements, std::int32_t layout, DType dtype, MemoryCategory category, BufferRole role,
                        StreamId stream) const {
    if (buffer != kNoBuffer) return;
    Buffer made{elements * sizeOf(dtype), category, role, dtype, false, false, -1, static_cast<std::int32_t>(u)};
    made.stream = stream;
    made.layout = layout;
    buffer = step.addBuffer(made);
}

std::vector<OptimizerTarget> ShardedUnits::targets(StepWriter& step) const {
    std::vector<OptimizerTarget> targets;
    targets.reserve(step.parameters().size());
    for (std::uint32_t u = 0; u < states_.size(); ++u)
        for (const std::uint32_t p : units_.all[u].parameters) {
            const State& state = states_[u];
            const ModelParameter& parameter = step.parameters()[p];
            const Shape& shape = shapeOf(step, p);
            targets.push_back({shardElements(shape, state.ranks), state.kept, options_.offload ? state.hostGradient : state.gradient, parameter.layer, parameter.index, false,
                               shardRows(shape, state.ranks), layouts_[p].alone, layouts_[p].inUnit});
        }
    return targets;
}

void ShardedUnits::dropGradients(StepWriter& step) {
    freeAllReduced(step);
    if (options_.offload) return;
    for (const State& state : states_)
        if (state.hasGradient) step.program().use(state.gradient, UseKind::Free);
}

void ShardedUnits::beginForward(StepWriter& step, const Pass&) {
    if (step.hasCompute()) copyInWaits_.push_back(step.lastCompute());  // the optimizer of the step before, or the last micro-step
}

void ShardedUnits::orderOnCopyIn(StepWriter& step) {
    for (const TaskId earlier : copyInWaits_) step.program().dependOn(earlier);
    copyInWaits_.clear();
}

/// This rank's shard of the unit, in the type that travels, at its place in the all-gather's output.
void ShardedUnits::copyIn(StepWriter& step, std::uint32_t u, Phase phase) {
    State& state = states_[u];
    ProgramWriter& program = step.program();
    BufferId source = state.hasPostForward ? state.postForward : state.kept;
    const std::int64_t shard = state.hasPostForward ? state.padded / options_.reshardRanks : state.shard;
    if (state.hasPostForward) copyInWaits_.push_back(state.resharded);
    if (options_.offload && !state.hasPostForward) {
        const Bytes bytes = shard * sizeOf(types_.shard);
        need(step, state.staged, u, shard, state.part, types_.shard, MemoryCategory::Buckets, BufferRole::Shard, copyIn_);
        step.copy(copyIn_, phase, TaskRole::OffloadToDevice, offloadCopy(step.input().cluster, CopyWork::Direction::HostToDevice, bytes), partOf(u));
        orderOnCopyIn(step);
        program.use(source, UseKind::Read);
        program.use(state.staged, UseKind::Allocate);
        program.use(state.staged, UseKind::Write);
        source = state.staged;
    }
    const Bytes width = sizeOf(types_.gather);
    if (types_.mixed() && !state.hasPostForward) {
        need(step, state.low, u, shard, state.part, types_.gather, MemoryCategory::Buckets, BufferRole::Shard, copyIn_);
        step.memoryKernel(copyIn_, phase, TaskRole::ShardCast, "cast", shard * (sizeOf(types_.shard) + width), -1, partOf(u));
        orderOnCopyIn(step);
        program.use(source, UseKind::Read);
        program.use(state.low, UseKind::Allocate);
        program.use(state.low, UseKind::Write);
        if (source == state.staged) program.use(source, UseKind::Free);
        source = state.low;
    }
    need(step, state.output, u, state.padded, state.gatheredParts, types_.gather, MemoryCategory::Buckets, BufferRole::UnshardOutput, copyIn_);
    step.memoryKernel(copyIn_, phase, TaskRole::UnshardCopyIn, "copy", 2 * shard * width, -1, partOf(u));
    orderOnCopyIn(step);
    program.use(state.output, UseKind::Allocate);
    program.use(source, UseKind::Read);
    program.use(state.output, UseKind::Write, state.hasPostForward ? state.gatheredPostForward : -1);
    if (source != state.kept && source != state.postForward) program.use(source, UseKind::Free);
}

void ShardedUnits::unshard(StepWriter& step, std::uint32_t u, Phase phase) {
    State& state = states_[u];
    if (state.isGathered || state.inFlight) return;
    state.inFlight = true;
    if (state.ranks == 1 && !options_.offload) return;  // experts that no other rank has: the copy-out takes them from the shard
    copyIn(step, u, phase);
    state.arrives = step.program().last();
    if (state.ranks == 1) return;
    const std::uint32_t axis = state.hasPostForward ? options_.reshardAxis : state.axis;
    const TaskId copied = state.arrives;
    state.arrives = step.collective(allGather_, phase, TaskRole::Unshard, CollectiveOp::AllGather, types_.gather, state.padded, axis, -1, partOf(u));
    step.program().dependOn(copied);
    step.program().use(state.output, UseKind::Read);
    step.program().use(state.output, UseKind::Write);
}

// Forward keeps the output until the next unit's copy-out, so that this copy-out runs beside the next all-gather: from then
// on the gathering streams wait for it, and at most two outputs are alive. Backward gives it back at once.
void ShardedUnits::awaitUnshard(StepWriter& step, std::uint32_t u, Phase phase) {
    State& state = states_[u];
    if (!state.inFlight) return;
    ProgramWriter& program = step.program();
    const bool local = state.arrives == kNoTask;
    const Bytes read = sizeOf(local ? types_.shard : types_.gather);
    const TaskId copy = step.memoryKernel(kComputeStream, phase, TaskRole::UnshardCopyOut, "copy", state.padded * (read + sizeOf(types_.gather)), -1, partOf(u));
    if (!local) program.dependOn(state.arrives);
    if (held_ != kNoUnit) {
        program.use(states_[held_].output, UseKind::Free);
        copyInWaits_.push_back(heldUntil_);
        held_ = kNoUnit;
    }
    program.use(state.gathered, UseKind::Allocate);
    program.use(local ? state.kept : state.output, UseKind::Read, state.hasPostForward ? state.gatheredPostForward : -1);
    program.use(state.gathered, UseKind::Write);
    if (local) {
        copyInWaits_.push_back(copy);
    } else if (phase == Phase::Forward) {
        held_ = u;
        heldUntil_ = copy;
    } else {
        program.use(state.output, UseKind::Free);
        copyInWaits_.push_back(copy);
    }
    if (state.hasPostForward) program.use(state.postForward, UseKind::Free);
    state.hasPostForward = state.inFlight = false;
    state.arrives = kNoTask;
    state.isGathered = true;
}

void ShardedUnits::preForward(StepWriter& step, std::uint32_t u) {
    const Phase phase = inBackward() ? Phase::Recompute : Phase::Forward;
    unshard(step, u, phase);
    awaitUnshard(step, u, phase);
    std::uint32_t next = units_.all[u].nextForward;
    for (std::int64_t ahead = 0; ahead < options_.forwardPrefetch && next != kNoUnit && !inBackward(); ++ahead, next = units_.all[next].nextForward)
        unshard(step, next, phase);
}

void ShardedUnits::postForward(StepWriter& step, std::uint32_t u) {
    State& state = states_[u];
    if (!(units_.all[u].isRoot() ? options_.reshardRoot : options_.reshard)) return;
    if (options_.reshardRanks > 0) {
        const std::int64_t shard = state.padded / options_.reshardRanks;
        need(step, state.postForward, u, shard, state.postForwardPart, types_.gather, MemoryCategory::Buckets, BufferRole::Shard, kComputeStream);
        state.resharded = step.memoryKernel(kComputeStream, inBackward() ? Phase::Recompute : Phase::Forward, TaskRole::Reshard, "copy", 2 * shard * sizeOf(types_.gather), -1, partOf(u));
        step.program().use(state.gathered, UseKind::Read);
        step.program().use(state.postForward, UseKind::Allocate);
        step.program().use(state.postForward, UseKind::Write);
        state.hasPostForward = true;
    }
    step.program().use(state.gathered, UseKind::Free);
    state.isGathered = false;
}

void ShardedUnits::endForward(StepWriter& step, const Pass&) {
    if (held_ == kNoUnit) return;
    step.program().use(states_[held_].output, UseKind::Free);
    copyInWaits_.push_back(heldUntil_);
    held_ = kNoUnit;
}

void ShardedUnits::beginBackward(StepWriter&, const Pass& pass) {
    sync_ = pass.last || !options_.noSync;
    reshardsAfterBackward_ = pass.last || !options_.keepInPipeline;
}

void ShardedUnits::preBackward(StepWriter& step, std::uint32_t u) {
    unshard(step, u, Phase::Backward);
    awaitUnshard(step, u, Phase::Backward);
    if (const std::uint32_t next = units_.all[u].nextBackward; next != kNoUnit) unshard(step, next, Phase::Backward);
}

void ShardedUnits::postBackward(StepWriter& step, std::uint32_t u) {
    State& state = states_[u];
    bool any = false;
    for (const std::uint32_t p : units_.all[u].parameters) any = any || step.parameters()[p].hasGradient;
    if (sync_ && any) return reduce(step, u);
    if (!reshardsAfterBackward_ || !state.isGathered) return;
    step.program().use(state.gathered, UseKind::Free);
    state.isGathered = false;
}

void ShardedUnits::reduce(StepWriter& step, std::uint32_t u) {
    State& state = states_[u];
    ProgramWriter& program = step.program();
    // One reduce-scatter may be under way: compute waits for that of the unit before.
    if (scattered_ != kNoTask) step.waitOnCompute(scattered_);
    need(step, state.input, u, state.padded, state.gatheredParts, types_.reduce, MemoryCategory::Buckets, BufferRole::UnitGradient, kComputeStream);
    step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::ReduceCopyIn, "chunk cat", units_.all[u].elements * sizeOf(step.gradientDtype()) + state.padded * sizeOf(types_.reduce), -1,
                      partOf(u));
    if (state.isGathered && reshardsAfterBackward_) {
        program.use(state.gathered, UseKind::Free);
        state.isGathered = false;
    }
    if (scattering_ != kNoUnit) program.use(states_[scattering_].input, UseKind::Free);
    else freeAllReduced(step);  // of the backward before
    program.use(state.input, UseKind::Allocate);
    for (const std::uint32_t p : units_.all[u].parameters)
        if (step.parameters()[p].hasGradient) program.use(step.parameters()[p].gradient, UseKind::Read);
    program.use(state.input, UseKind::Write);
    for (const std::uint32_t p : units_.all[u].parameters) step.dropGradient(p);
    scattering_ = u;
    scattered_ = scatter(step, u);

    StreamId stream = reduceScatter_;
    if (groups_.replicas > 1) {
        stream = allReduce_;
        const BufferId piece = state.hasGradient || types_.reduce != types_.shard ? state.reduced : state.gradient;
        tail(stream, step.collective(allReduce_, Phase::GradientSync, TaskRole::ReplicaReduce, reduction(CollectiveOp::AllReduce, state.shard, groups_.replicaAxis), -1, partOf(u)));
        program.dependOn(scattered_);
        program.use(piece, UseKind::Read);
        program.use(piece, UseKind::Write);
    }
    accumulate(step, u, stream);
}

CollectiveWork ShardedUnits::reduction(CollectiveOp op, std::int64_t elements, std::uint32_t axis) const {
    CollectiveWork work{op, types_.reduce, elements, axis};
    work.average = !divide_;
    return work;
}

TaskId ShardedUnits::scatter(StepWriter& step, std::uint32_t u) {
    State& state = states_[u];
    ProgramWriter& program = step.program();
    const TaskId copied = step.lastCompute();
    if (divide_ && divide_->before > 1) {
        tail(reduceScatter_, step.memoryKernel(reduceScatter_, Phase::GradientSync, TaskRole::UnitDivide, "divide", 2 * state.padded * sizeOf(types_.reduce), -1, partOf(u), divide_->before));
        program.dependOn(copied);
        program.use(state.input, UseKind::Write);
    }
    const bool kept = !state.hasGradient && types_.reduce == types_.shard;
    BufferId& piece = kept ? state.gradient : state.reduced;
    need(step, piece, u, state.shard, state.part, types_.reduce, kept ? MemoryCategory::Gradients : MemoryCategory::Buckets, BufferRole::GradientShard, reduceScatter_);
    const TaskId done = state.ranks == 1
        ? step.memoryKernel(reduceScatter_, Phase::GradientSync, TaskRole::ShardReduce, "copy", 2 * state.padded * sizeOf(types_.reduce), -1, partOf(u))
        : step.collective(reduceScatter_, Phase::GradientSync, TaskRole::ShardReduce, reduction(CollectiveOp::ReduceScatter, state.padded, state.axis), -1, partOf(u));
    program.dependOn(copied);
    program.use(state.input, UseKind::Read);
    program.use(piece, UseKind::Allocate);
    program.use(piece, UseKind::Write);
    return tail(reduceScatter_, done);
}

/// From the reduced piece to the gradients the optimizer reads: division, cast, sum over micro-steps (tensor by tensor).
void ShardedUnits::accumulate(StepWriter& step, std::uint32_t u, StreamId stream) {
    State& state = states_[u];
    ProgramWriter& program = step.program();
    const Bytes from = sizeOf(types_.reduce), to = sizeOf(types_.shard);
    const bool casts = types_.reduce != types_.shard;
    BufferId piece = state.hasGradient || casts ? state.reduced : state.gradient;
    if (divide_ && divide_->after > 1) {
        tail(stream, step.memoryKernel(stream, Phase::GradientSync, TaskRole::UnitDivide, "divide", 2 * state.shard * from, -1, partOf(u), divide_->after));
        program.use(piece, UseKind::Write);
    }
    if (casts) {
        BufferId& target = state.hasGradient ? state.cast : state.gradient;
        need(step, target, u, state.shard, state.part, types_.shard, state.hasGradient ? MemoryCategory::Buckets : MemoryCategory::Gradients, BufferRole::GradientShard, stream);
        tail(stream, step.memoryKernel(stream, Phase::GradientSync, TaskRole::ShardCast, "cast", state.shard * (from + to), -1, partOf(u)));
        program.use(piece, UseKind::Read);
        program.use(target, UseKind::Allocate);
        program.use(target, UseKind::Write);
        release(step, u, piece);
        piece = target;
    }
    if (state.hasGradient && !options_.offload) {
        for (const std::uint32_t p : units_.all[u].parameters) {
            tail(stream, step.memoryKernel(stream, Phase::GradientSync, TaskRole::ShardAccumulate, "add", 3 * shardElements(shapeOf(step, p), state.ranks) * to, -1, partOf(u)));
            program.use(piece, UseKind::Read, layouts_[p].inUnit);
            program.use(state.gradient, UseKind::Write, layouts_[p].inUnit);
        }
        release(step, u, piece);
    }
    state.hasGradient = true;
    if (options_.offload) offloadGradient(step, u, stream);
}

// What replicas all-reduce came from the reduce-scatter's stream, which does not wait for theirs: it is kept until backward ends.
void ShardedUnits::release(StepWriter& step, std::uint32_t u, BufferId piece) {
    if (groups_.replicas > 1 && piece == states_[u].reduced) allReduced_.push_back(piece);
    else step.program().use(piece, UseKind::Free);
}

void ShardedUnits::freeAllReduced(StepWriter& step) {
    for (const BufferId piece : allReduced_) step.program().use(piece, UseKind::Free);
    allReduced_.clear();
}

// The copy blocks the host where the host then has to add.
void ShardedUnits::offloadGradient(StepWriter& step, std::uint32_t u, StreamId stream) {
    State& state = states_[u];
    ProgramWriter& program = step.program();
    const Bytes bytes = state.shard * sizeOf(types_.shard);
    const TaskId copy = tail(stream, step.copy(stream, Phase::GradientSync, TaskRole::OffloadToHost, offloadCopy(step.input().cluster, CopyWork::Direction::DeviceToHost, bytes), partOf(u)));
    program.use(state.gradient, UseKind::Read);
    program.use(state.hostGradient, UseKind::Write);
    program.use(state.gradient, UseKind::Free);
    if (state.hostAccumulates) {
        step.hostWait(Phase::GradientSync, TaskRole::OffloadToHost, std::array{copy}, partOf(u));
        step.hostWork(kHostStream, Phase::GradientSync, TaskRole::ShardAccumulate, {HostWork::Kind::Memory, 3.0 * static_cast<double>(bytes)}, partOf(u));
        program.use(state.hostGradient, UseKind::Write);
    }
    state.hostAccumulates = true;
    state.hasGradient = false;
}

void ShardedUnits::endBackward(StepWriter& step, const Pass&) {
    if (!sync_) return;
    if (scattering_ != kNoUnit) step.program().use(states_[scattering_].input, UseKind::Free);
    // A stage that has sent its gradients meanwhile is behind: whoever waits for the reductions next frees them.
    if (step.program().last() == lastAllReduce_) freeAllReduced(step);
    std::vector<TaskId> tails;
    for (const TaskId last : {scattered_, lastScatter_, lastAllReduce_})
        if (last != kNoTask) tails.push_back(last);
    scattering_ = kNoUnit;
    scattered_ = kNoTask;
    step.waitOnCompute(tails);
    if (options_.offload) step.hostWait(Phase::GradientSync, TaskRole::OffloadToHost, tails);
}

}  // namespace ringside
