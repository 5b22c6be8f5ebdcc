#include "sim/strategy/zero_offload.h"

#include <algorithm>
#include <array>

#include "model/memory/optimizer_state.h"

namespace ringside {
namespace {

/// Buffers that the optimizer swapper keeps in host memory (offload_optimizer.buffer_count).
constexpr std::int64_t kSwapBuffers = 4;

}  // namespace

int devicesSharingUplink(const Cluster& cluster) {
    const NodeKind& kind = cluster.nodes.front().kind;
    if (kind.fabric == IntraNodeFabric::PcieHost || kind.fabric == IntraNodeFabric::Loopback) return 1;  // a link of its own to the processor
    return static_cast<int>(std::max<std::int64_t>(1, std::min(kind.devicesPerPcieSwitch, kind.devices)));
}

HostOptimizer::HostOptimizer(StepWriter& step, std::span<const OptimizerTarget> shards, const Options& options)
    : options_(options), shards_(shards.begin(), shards.end()), sharing_(devicesSharingUplink(step.input().cluster)), dtype_(step.input().training.precision.parameter) {
    std::int64_t elements = 0, largest = 0;
    for (const OptimizerTarget& shard : shards_) {
        elements += shard.elements;
        largest = std::max(largest, shard.elements);
    }
    if (options.accumulatesOnHost) accumulated_ = hostBuffer(step, elements * sizeOf(dtype_), BufferRole::GradientShard, dtype_);
    if (options.nvme) {
        // State and fp32 gradients live on storage; the host holds the buffers that they pass through.
        storage_ = step.program().addStream(StreamKind::Copy, "nvme");
        mainGradients_ = hostBuffer(step, kSwapBuffers * largest * 4, BufferRole::Workspace, DType::Fp32);
    } else {
        mainGradients_ = hostBuffer(step, elements * 4, BufferRole::GradientShard, DType::Fp32);
        step.declareOptimizerState(shards_, true);
    }
    if (!options.parametersOnHost) parameters_ = hostBuffer(step, elements * sizeOf(dtype_), BufferRole::Shard, dtype_);
}

BufferId HostOptimizer::hostBuffer(StepWriter& step, Bytes bytes, BufferRole role, DType dtype) const {
    Buffer buffer{bytes, MemoryCategory::OptimizerState, role, dtype, true, false, -1, 0};
    buffer.onHost = true;
    return step.addBuffer(buffer);
}

TaskId HostOptimizer::toHost(StepWriter& step, StreamId stream, Bytes bytes, BufferId source, BufferId target, std::uint16_t part) const {
    const TaskId copy = step.copy(stream, Phase::GradientSync, TaskRole::OffloadToHost, {CopyWork::Direction::DeviceToHost, bytes, sharing_}, part);
    step.program().use(source, UseKind::Read);
    step.program().use(target, UseKind::Write);
    return copy;
}

TaskId HostOptimizer::toDevice(StepWriter& step, StreamId stream, Bytes bytes, BufferId source, BufferId target, std::uint16_t part) const {
    const TaskId copy = step.copy(stream, Phase::GradientSync, TaskRole::OffloadToDevice, {CopyWork::Direction::HostToDevice, bytes, sharing_}, part);
    step.program().use(target, UseKind::Allocate);
    step.program().use(source, UseKind::Read);
    step.program().use(target, UseKind::Write);
    return copy;
}

TaskId HostOptimizer::takeGradients(StepWriter& step, StreamId stream, const GradientSlice& slice, bool first, bool boundary) {
    ProgramWriter& program = step.program();
    const Bytes narrow = slice.elements * sizeOf(dtype_);
    const auto temporary = [&](Bytes bytes, DType dtype) {
        return step.addBuffer({bytes, MemoryCategory::Workspace, BufferRole::GradientShard, dtype, false, false, -1, slice.part});
    };
    BufferId sum = slice.buffer;
    if (accumulated_ != kNoBuffer) {
        if (first) {
            if (!boundary || options_.roundTrip) toHost(step, stream, narrow, slice.buffer, accumulated_, slice.part);
            if (options_.roundTrip) toDevice(step, stream, narrow, accumulated_, sum = temporary(narrow, dtype_), slice.part);
        } else {
            // Adding on the host would be slow: what is there comes back, is added to on the device, and leaves again.
            toDevice(step, stream, narrow, accumulated_, sum = temporary(narrow, dtype_), slice.part);
            step.memoryKernel(stream, Phase::GradientSync, TaskRole::ShardAccumulate, "add", 3 * narrow, -1, slice.part);
            program.use(slice.buffer, UseKind::Read);
            program.use(sum, UseKind::Write);
            if (!boundary || options_.roundTrip) toHost(step, stream, narrow, sum, accumulated_, slice.part);
        }
    }
    if (boundary) {
        const Bytes wide = slice.elements * 4;
        BufferId main = sum;
        if (sizeOf(dtype_) < 4) {
            main = temporary(wide, DType::Fp32);
            step.memoryKernel(stream, Phase::GradientSync, TaskRole::ShardCast, "cast", narrow + wide, -1, slice.part);
            program.use(main, UseKind::Allocate);
            program.use(sum, UseKind::Read);
            program.use(main, UseKind::Write);
        }
        toHost(step, stream, wide, main, mainGradients_, slice.part);
        if (main != sum) program.use(main, UseKind::Free);
        if (options_.nvme) {
            const TaskId onHost = program.last();
            if (sum != slice.buffer) program.use(sum, UseKind::Free);
            step.hostWork(storage_, Phase::GradientSync, TaskRole::StorageWrite, {HostWork::Kind::Storage, static_cast<double>(wide)}, slice.part);
            program.dependOn(onHost);
            program.use(mainGradients_, UseKind::Read);
            lastGradient_ = program.last();
            return onHost;
        }
    }
    if (sum != slice.buffer) program.use(sum, UseKind::Free);
    lastGradient_ = program.last();
    return program.last();
}

double HostOptimizer::hostBytes(const StepWriter& step, std::int64_t elements) const {
    // The fp32 gradient is scaled in place whether or not it is clipped (unscale_and_clip_grads); state (the fp32 master with it) is read and
    // written, the gradient read, the narrow parameter written.
    const TrainingConfig& training = step.input().training;
    const Bytes state = flatOptimizerStateBytes(training.optimizer, training.precision, elements), narrow = sizeOf(dtype_);
    Bytes each = 8 + 4 + narrow;
    // Stage 3 assigns the fp32 master to the narrow shard (Tensor.copy_, which blocks): the processor casts it by itself, and the driver brings
    // the result, which is not pinned, to the device by way of memory that is.
    if (options_.roundTrip) each += 4 + (options_.parametersOnHost ? 0 : 3 * narrow);
    return static_cast<double>(2 * state + elements * each);
}

void HostOptimizer::update(StepWriter& step) {
    ProgramWriter& program = step.program();
    const TrainingConfig& training = step.input().training;
    if (lastGradient_) step.hostWait(Phase::Optimizer, TaskRole::Synchronize, std::array{*lastGradient_});
    for (std::size_t s = 0; s < shards_.size(); ++s) {
        const OptimizerTarget& shard = shards_[s];
        const auto part = static_cast<std::uint16_t>(s);
        const Bytes state = flatOptimizerStateBytes(training.optimizer, training.precision, shard.elements);
        if (options_.nvme) {
            // pipeline_read and pipeline_write are off: read, update and write follow each other.
            const TaskId read = step.hostWork(storage_, Phase::Optimizer, TaskRole::StorageRead, {HostWork::Kind::Storage, static_cast<double>(state + 4 * shard.elements)}, part);
            program.use(mainGradients_, UseKind::Write);
            step.hostWait(Phase::Optimizer, TaskRole::StorageRead, std::array{read}, part);
        }
        const TaskId updated = step.hostWork(kHostStream, Phase::Optimizer, TaskRole::HostOptimizer, {HostWork::Kind::Memory, hostBytes(step, shard.elements)}, part);
        program.use(mainGradients_, UseKind::Read);
        program.use(options_.parametersOnHost ? shard.parameter : parameters_, UseKind::Write);
        if (step.input().step == StepKind::First && !options_.nvme) {
            Buffer moments{state - (training.precision.masterWeights ? 4 * shard.elements : 0), MemoryCategory::OptimizerState, BufferRole::OptimizerShard, DType::Fp32, false, true, -1, shard.index};
            moments.onHost = true;
            if (moments.bytes > 0) {
                const BufferId made = step.addBuffer(moments);
                program.use(made, UseKind::Allocate);
            }
        }
        if (options_.nvme) {
            const TaskId written = step.hostWork(storage_, Phase::Optimizer, TaskRole::StorageWrite, {HostWork::Kind::Storage, static_cast<double>(state)}, part);
            program.dependOn(updated);
            step.hostWait(Phase::Optimizer, TaskRole::StorageWrite, std::array{written}, part);
        }
        if (!options_.parametersOnHost) {
            step.copy(kComputeStream, Phase::Optimizer, TaskRole::OffloadToDevice, {CopyWork::Direction::HostToDevice, shard.elements * sizeOf(dtype_), sharing_}, part);
            program.use(parameters_, UseKind::Read);
            program.use(shard.parameter, UseKind::Write);
        }
    }
}

}  // namespace ringside
