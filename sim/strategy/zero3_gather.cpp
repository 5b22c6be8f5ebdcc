#include "sim/strategy/zero3_gather.h"

#include <array>

#include "sim/strategy/zero_offload.h"

namespace ringside {
namespace {

constexpr std::size_t kMostOutstandingFetches = 2;
/// qwZ: elements that share a scale (CUDAQuantizer's target).
constexpr std::int64_t kQuantisationGroup = 8000;

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::int32_t addCutLayout(StepWriter& step, std::span<const std::uint32_t> parameters, std::uint32_t axis, bool gathered) {
    Layout layout = packed(parameters, step.program().program().parameters);
    layout.cut = Cut::EachPiece;
    layout.axis = axis;
    layout.gathered = gathered;
    return step.program().addLayout(std::move(layout));
}

std::int32_t Zero3Gatherer::gatheredLayout(StepWriter& step, const std::vector<std::uint32_t>& parameters, std::uint32_t axis) {
    const auto [it, isNew] = layouts_.try_emplace({axis, parameters}, -1);
    if (isNew) it->second = addCutLayout(step, parameters, axis, true);
    return it->second;
}

Zero3Gatherer::Zero3Gatherer(StepWriter& step, const StrategyInput& input, const Zero3Shards& shards, const std::vector<bool>& persistent,
                             std::span<const Zero3Visit> visits, std::uint32_t nodeAxis)
    : config_(input.parallel), shards_(shards), persistent_(persistent), dtype_(input.training.precision.parameter), nodeAxis_(nodeAxis),
      nodeRanks_(nodeAxis == kNoAxis ? 1 : step.schedule().axes[nodeAxis].size), sharing_(devicesSharingUplink(input.cluster)),
      stream_(step.program().addStream(StreamKind::Communication, "allgather")), unit_(step.parameters().size()), hasSecondary_(step.parameters().size()), gatherOf_(step.parameters().size(), -1) {
    for (std::size_t v = visits.size(); v-- > 0;)
        for (const std::uint32_t p : visits[v].parameters) unit_[p] = static_cast<std::uint16_t>(v);
    if (shards.onHost) copies_ = step.program().addStream(StreamKind::Copy, "parameters to device");
    if (shards.onStorage) storage_ = step.program().addStream(StreamKind::Copy, "nvme parameters");
    std::int64_t secondary = 0;
    std::vector<std::uint32_t> comeAndGo;
    for (std::uint32_t p = 0; p < step.parameters().size(); ++p) {
        const ModelParameter& parameter = step.parameters()[p];
        if (persistent[p]) {
            gathered_.push_back(parameter.buffer);
            continue;
        }
        secondary += ceilDivide(parameter.elements, nodeRanks_);
        gathered_.push_back(kNoBuffer);
        comeAndGo.push_back(p);
    }
    if (nodeAxis_ == kNoAxis) return;
    Buffer buffer{secondary * sizeOf(dtype_), MemoryCategory::Parameters, BufferRole::SecondaryShard, dtype_, true, false, -1, 0};
    buffer.layout = addCutLayout(step, comeAndGo, nodeAxis_, false);
    secondary_ = step.addBuffer(buffer);
}

void Zero3Gatherer::fetch(StepWriter& step, const Zero3Visit& visit, const Zero3VisitPlan& plan, Phase phase) {
    phase_ = phase;
    gather(step, plan.fetch);
    bool waits = false;
    for (const std::uint32_t p : visit.parameters) {
        if (gatherOf_[p] < 0) continue;
        Gather& under = gathers_[static_cast<std::size_t>(gatherOf_[p])];
        copyOut(step, under);
        gatherOf_[p] = -1;
        waits = true;
        outstanding_.push_back(last_);
    }
    if (waits) limit(step, unit_[visit.parameters.front()]);
    // The compute stream waits for the whole gather stream: for this submodule's parameters and for all prefetched before.
    if (last_ != waited_) step.waitOnCompute(last_);
    waited_ = last_;
    gather(step, plan.prefetch);
}

// The host blocks while more than two fetches are outstanding, so that it cannot run far ahead of the device's memory.
void Zero3Gatherer::limit(StepWriter& step, std::uint16_t number) {
    TaskId oldest = kNoTask;
    while (outstanding_.size() > kMostOutstandingFetches + 1) {
        oldest = outstanding_.front();
        outstanding_.pop_front();
    }
    if (oldest != kNoTask) step.hostWait(phase_, TaskRole::RateLimit, std::array{oldest}, number);
}

void Zero3Gatherer::gather(StepWriter& step, std::span<const std::uint32_t> parameters) {
    std::vector<std::uint32_t> primary, secondary;
    for (const std::uint32_t p : parameters) (hasSecondary_[p] ? secondary : primary).push_back(p);
    if (!secondary.empty()) gatherTogether(step, std::move(secondary), true);
    if (!primary.empty()) gatherTogether(step, std::move(primary), false);
}

void Zero3Gatherer::readShards(StepWriter& step, std::span<const std::uint32_t> parameters, BufferId local) {
    if (local != kNoBuffer) return step.program().use(local, UseKind::Read);
    std::uint32_t last = 0xffffffffU;
    for (const std::uint32_t p : parameters) {
        if (shards_.group[p] != last) step.program().use(shards_.buffers[shards_.group[p]], UseKind::Read);
        last = shards_.group[p];
    }
}

/// From storage and the host into `target` on the device.
TaskId Zero3Gatherer::bringShards(StepWriter& step, std::span<const std::uint32_t> parameters, std::int64_t elements, BufferId target, std::uint16_t number) {
    const Bytes bytes = elements * sizeOf(dtype_);
    TaskId read = kNoTask;
    if (shards_.onStorage) {
        read = step.hostWork(storage_, phase_, TaskRole::StorageRead, {HostWork::Kind::Storage, static_cast<double>(bytes)}, number);
        for (const BufferId buffer : shards_.buffers) step.program().use(buffer, UseKind::Write);
    }
    const TaskId copy = step.copy(copies_, phase_, TaskRole::OffloadToDevice, {CopyWork::Direction::HostToDevice, bytes, sharing_}, number);
    if (read != kNoTask) step.program().dependOn(read);
    if (phase_ == Phase::Optimizer) step.program().dependOn(step.lastCompute());  // which has written them
    if (target != kNoBuffer) step.program().use(target, UseKind::Allocate);
    else
        for (const std::uint32_t p : parameters) step.program().use(gathered_[p], UseKind::Allocate);
    readShards(step, parameters, kNoBuffer);
    if (target != kNoBuffer) step.program().use(target, UseKind::Write);
    else
        for (const std::uint32_t p : parameters) step.program().use(gathered_[p], UseKind::Write);
    return copy;
}

void Zero3Gatherer::gatherQuantised(StepWriter& step, std::span<const std::uint32_t> parameters, std::int64_t elements, std::int64_t ranks, std::uint32_t axis,
                                    std::uint16_t number, const std::function<void()>& readShards) {
    ProgramWriter& program = step.program();
    const std::int64_t scales = ceilDivide(elements, kQuantisationGroup);
    const Bytes bytes = ranks * (elements + scales * 4);
    const BufferId wire = step.addBuffer({bytes, MemoryCategory::Buckets, BufferRole::CompressedBucket, DType::Int8, false, false, -1, number});
    step.memoryKernel(stream_, phase_, TaskRole::Quantise, "quantise", elements * (sizeOf(dtype_) + 1) + scales * 4, -1, number);
    program.use(wire, UseKind::Allocate);
    readShards();
    program.use(wire, UseKind::Write);
    step.collective(stream_, phase_, TaskRole::Unshard, CollectiveOp::AllGather, DType::Int8, elements * ranks, axis, -1, number);
    program.use(wire, UseKind::Write);
    step.collective(stream_, phase_, TaskRole::Unshard, CollectiveOp::AllGather, DType::Fp32, scales * ranks, axis, -1, number);
    program.use(wire, UseKind::Write);
    last_ = step.memoryKernel(stream_, phase_, TaskRole::Dequantise, "dequantise", ranks * elements * (sizeOf(dtype_) + 1), -1, number);
    program.use(wire, UseKind::Read);
    for (const std::uint32_t p : parameters) {
        program.use(gathered_[p], UseKind::Allocate);
        program.use(gathered_[p], UseKind::Write);
    }
    program.use(wire, UseKind::Free);
}

/// A buffer of its own for every gather. DeepSpeed marks it with record_stream; that it comes back late is left out, because
/// the Python hooks between gathers keep the host near the device (docs/models/zero.md).
void Zero3Gatherer::makeRoom(StepWriter& step, std::uint32_t p) {
    ModelParameter& parameter = step.parameters()[p];
    Buffer buffer{shards_.elements[p] * shards_.ranks * sizeOf(dtype_), MemoryCategory::Buckets, BufferRole::Parameter, dtype_, false, false, parameter.layer, parameter.index};
    buffer.stream = stream_;
    parameter.buffer = gathered_[p] = step.addBuffer(buffer);
}

void Zero3Gatherer::gatherTogether(StepWriter& step, std::vector<std::uint32_t> parameters, bool fromSecondary) {
    ProgramWriter& program = step.program();
    for (const std::uint32_t p : parameters) makeRoom(step, p);
    const std::uint16_t number = unit_[parameters.front()];
    const std::int64_t ranks = fromSecondary ? nodeRanks_ : shards_.ranks;
    const std::uint32_t axis = fromSecondary ? nodeAxis_ : step.axes().data;
    std::int64_t elements = 0;  // of this rank's shards
    for (const std::uint32_t p : parameters) elements += fromSecondary ? ceilDivide(step.parameters()[p].elements, nodeRanks_) : shards_.elements[p];
    const Bytes bytes = elements * sizeOf(dtype_);
    const auto under = [&](Gather gather) {
        for (const std::uint32_t p : gather.parameters) gatherOf_[p] = static_cast<std::int32_t>(gathers_.size());
        gathers_.push_back(std::move(gather));
    };
    if (ranks == 1) {  // one rank, whose shard is elsewhere
        last_ = bringShards(step, parameters, elements, kNoBuffer, number);
        return under({std::move(parameters), kNoBuffer, number});
    }
    BufferId local = kNoBuffer;  // this rank's shards on the device, where they are not always
    TaskId ready = kNoTask;
    if (fromSecondary) {
        local = secondary_;
        ready = secondaryWritten_;
    } else if (shards_.onHost) {
        local = step.addBuffer({bytes, MemoryCategory::Buckets, BufferRole::Shard, dtype_, false, false, -1, number});
        ready = bringShards(step, parameters, elements, local, number);
    }
    const auto afterShards = [&] {
        if (ready != kNoTask) program.dependOn(ready);
        readShards(step, parameters, local);
        if (!fromSecondary && local != kNoBuffer) program.use(local, UseKind::Free);
    };
    if (config_.quantizedWeights) {
        gatherQuantised(step, parameters, elements, ranks, axis, number, afterShards);
        return under({std::move(parameters), kNoBuffer, number});
    }
    if (parameters.size() == 1) {  // straight into the parameter
        last_ = step.collective(stream_, phase_, TaskRole::Unshard, CollectiveOp::AllGather, dtype_, elements * ranks, axis, -1, number);
        program.use(gathered_[parameters.front()], UseKind::Allocate);
        afterShards();
        program.use(gathered_[parameters.front()], UseKind::Write);
        return under({std::move(parameters), kNoBuffer, number});
    }
    Buffer buffer{bytes * ranks, MemoryCategory::Buckets, BufferRole::UnshardedUnit, dtype_, false, false, -1, number};
    buffer.stream = stream_;
    buffer.layout = gatheredLayout(step, parameters, axis);
    const BufferId flat = step.addBuffer(buffer);
    step.memoryKernel(stream_, phase_, TaskRole::UnshardCopyIn, "copy", 2 * bytes, -1, number);
    program.use(flat, UseKind::Allocate);
    afterShards();
    program.use(flat, UseKind::Write);
    last_ = step.collective(stream_, phase_, TaskRole::Unshard, CollectiveOp::AllGather, dtype_, elements * ranks, axis, -1, number);
    program.use(flat, UseKind::Write);
    under({std::move(parameters), flat, number});
}

// Shards of several parameters lie rank by rank in what was gathered: each parameter is put together when the first is waited for.
void Zero3Gatherer::copyOut(StepWriter& step, Gather& gather) {
    if (gather.flat == kNoBuffer) return;
    Bytes bytes = 0;
    for (const std::uint32_t p : gather.parameters) bytes += shards_.elements[p] * shards_.ranks * sizeOf(dtype_);
    last_ = step.memoryKernel(stream_, phase_, TaskRole::UnshardCopyOut, "copy", 2 * bytes, -1, gather.number);
    step.program().use(gather.flat, UseKind::Read);
    for (const std::uint32_t p : gather.parameters) {
        step.program().use(gathered_[p], UseKind::Allocate);
        step.program().use(gathered_[p], UseKind::Write);
    }
    step.program().use(gather.flat, UseKind::Free);
    gather.flat = kNoBuffer;
}

void Zero3Gatherer::release(StepWriter& step, const Zero3VisitPlan& plan) {
    if (secondary_ != kNoBuffer) {
        // hpZ: before the parameter goes, 1/P of it stays for gathers within the node, until the optimizer changes it.
        Bytes bytes = 0;
        for (const std::uint32_t p : plan.release)
            if (!hasSecondary_[p]) bytes += 2 * ceilDivide(step.parameters()[p].elements, nodeRanks_) * sizeOf(dtype_);
        if (bytes > 0) {
            secondaryWritten_ = step.memoryKernel(kComputeStream, phase_, TaskRole::ShardCast, "copy", bytes, -1, unit_[plan.release.front()]);
            for (const std::uint32_t p : plan.release) {
                step.program().use(gathered_[p], UseKind::Read);
                hasSecondary_[p] = true;
            }
            step.program().use(secondary_, UseKind::Write);
        }
    }
    for (const std::uint32_t p : plan.release) step.program().use(gathered_[p], UseKind::Free);
}

void Zero3Gatherer::storeShards(StepWriter& step) {
    if (!shards_.onStorage) return;
    std::int64_t elements = 0;
    for (const std::int64_t shard : shards_.elements) elements += shard;
    const TaskId updated = step.lastCompute();
    const TaskId written = step.hostWork(storage_, Phase::Optimizer, TaskRole::StorageWrite, {HostWork::Kind::Storage, static_cast<double>(elements * sizeOf(dtype_))});
    step.program().dependOn(updated);
    for (const BufferId buffer : shards_.buffers) step.program().use(buffer, UseKind::Read);
    step.hostWait(Phase::Optimizer, TaskRole::StorageWrite, std::array{written});
}

void Zero3Gatherer::regatherPersistent(StepWriter& step) {
    ProgramWriter& program = step.program();
    std::vector<std::uint32_t> parameters;
    std::int64_t elements = 0;
    for (std::uint32_t p = 0; p < step.parameters().size(); ++p)
        if (persistent_[p]) {
            parameters.push_back(p);
            elements += shards_.elements[p];
        }
    if (parameters.empty() || shards_.ranks == 1) return;
    const Bytes bytes = elements * sizeOf(dtype_);
    phase_ = Phase::Optimizer;
    BufferId local = kNoBuffer;
    if (shards_.onHost) {
        local = step.addBuffer({bytes, MemoryCategory::Buckets, BufferRole::Shard, dtype_, false, false, -1, 0});
        step.waitOnCompute(bringShards(step, parameters, elements, local, 0));
    }
    Buffer together{bytes * shards_.ranks, MemoryCategory::Buckets, BufferRole::UnshardedUnit, dtype_, false, false, -1, 0};
    together.layout = gatheredLayout(step, parameters, step.axes().data);
    const BufferId flat = step.addBuffer(together);
    step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::UnshardCopyIn, "copy", 2 * bytes);
    program.use(flat, UseKind::Allocate);
    readShards(step, parameters, local);
    if (local != kNoBuffer) program.use(local, UseKind::Free);
    program.use(flat, UseKind::Write);
    step.collective(kComputeStream, Phase::Optimizer, TaskRole::ParameterGather, CollectiveOp::AllGather, dtype_, elements * shards_.ranks, step.axes().data);
    program.use(flat, UseKind::Write);
    step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::UnshardCopyOut, "copy", 2 * bytes * shards_.ranks);
    program.use(flat, UseKind::Read);
    for (const std::uint32_t p : parameters) program.use(gathered_[p], UseKind::Write);
    program.use(flat, UseKind::Free);
}

}  // namespace ringside
