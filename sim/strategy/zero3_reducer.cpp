#include "sim/strategy/zero3_reducer.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ringside {
namespace {

constexpr std::size_t kMostOutstandingReductions = 2;

}  // namespace

Zero3Reducer::Zero3Reducer(StepWriter& step, const StrategyInput& input, const Zero3Shards& shards, BufferId shard, HostOptimizer* host, const QuantisedReduceAxes& quantised)
    : config_(input.parallel), shards_(shards), dtype_(input.training.precision.parameter), shard_(shard), host_(host), quantised_(quantised),
      overlap_(config_.overlapComm.value_or(true)), contiguous_(config_.contiguousGradients && shards.ranks > 1), limit_(std::llround(config_.reduceBucketElements)) {
    if (overlap_) {
        stream_ = step.program().addStream(StreamKind::Communication, "reduction");
        // record_stream: read on the reduction stream, made on the compute stream.
        for (const ModelParameter& p : step.parameters()) step.program().program().buffers[p.gradient].deferredFree = true;
    }
    if (contiguous_) buffer_ = step.addBuffer({limit_ * sizeOf(dtype_), MemoryCategory::Buckets, BufferRole::Bucket, dtype_, true, false, -1, 0});
}

void Zero3Reducer::add(StepWriter& step, std::uint32_t p) {
    const ModelParameter& parameter = step.parameters()[p];
    if (elements_ > 0 && elements_ + parameter.elements > limit_) flush(step);
    addToLayout(step, p);
    bucket_.push_back(p);
    elements_ += parameter.elements;
    if (!contiguous_ || elements_ > limit_) return;  // a larger one is reduced where it is
    last_ = step.memoryKernel(stream_, Phase::GradientSync, TaskRole::BucketCopyIn, "copy", 2 * parameter.elements * sizeOf(dtype_), parameter.layer,
                              static_cast<std::uint16_t>(parameter.index));
    if (overlap_) step.program().dependOn(step.lastCompute());
    step.program().use(parameter.gradient, UseKind::Read);
    step.program().use(buffer_, UseKind::Write, layouts_[number_].packed);
    step.dropGradient(p);
}

void Zero3Reducer::addToLayout(StepWriter& step, std::uint32_t p) {
    if (number_ < finished_) return;
    if (number_ == layouts_.size()) layouts_.push_back({step.program().addLayout({}), -1});
    Layout& layout = step.program().program().layouts[static_cast<std::size_t>(layouts_[number_].packed)];
    layout.pieces.push_back({p, layout.elements});
    layout.elements += step.parameters()[p].elements;
}

void Zero3Reducer::useSources(StepWriter& step, std::span<const std::uint32_t> parameters, BufferId source, UseKind kind) {
    if (source != kNoBuffer) return step.program().use(source, kind, source == buffer_ ? layouts_[number_].packed : -1);
    for (const std::uint32_t p : parameters) step.program().use(step.parameters()[p].gradient, kind);
}

void Zero3Reducer::flush(StepWriter& step) {
    if (bucket_.empty()) return;
    if (outstanding_.size() > kMostOutstandingReductions) {
        step.hostWait(Phase::GradientSync, TaskRole::RateLimit, std::array{outstanding_.front()}, number_);
        outstanding_.pop_front();
    }
    const bool inBuffer = contiguous_ && elements_ <= limit_;
    const BufferId bucket = inBuffer ? buffer_ : kNoBuffer;
    std::int64_t share = 0;
    for (const std::uint32_t p : bucket_) share += shards_.elements[p];
    if (shards_.ranks == 1) {
        keep(step, bucket, step.lastCompute(), share);
    } else if (inBuffer && !config_.reduceScatter) {
        keep(step, bucket, allReduce(step, bucket), share);
    } else if (quantised_.node != kNoAxis) {
        TaskId reduced = last_;
        for (const std::uint32_t p : bucket_) {
            BufferId source = bucket;
            reduced = quantises(step, p) ? allToAll(step, p, bucket) : reduceScatter(step, std::span(&p, 1), source);
            if (source != bucket) step.program().use(source, UseKind::Free);
        }
        keep(step, bucket, reduced, share);
    } else {
        BufferId source = bucket;
        const TaskId reduced = reduceScatter(step, bucket_, source);
        keep(step, source, reduced, share);
        if (source != bucket) step.program().use(source, UseKind::Free);
    }
    if (!inBuffer)
        for (const std::uint32_t p : bucket_) step.dropGradient(p);
    outstanding_.push_back(last_);
    bucket_.clear();
    elements_ = 0;
    ++number_;
    finished_ = std::max<std::size_t>(finished_, number_);
}

// Every parameter is padded to N equal pieces, and the pieces of one rank are put side by side. On return `source` is what
// holds the sum.
TaskId Zero3Reducer::reduceScatter(StepWriter& step, std::span<const std::uint32_t> parameters, BufferId& source) {
    ProgramWriter& program = step.program();
    std::int64_t padded = 0, elements = 0;
    for (const std::uint32_t p : parameters) {
        padded += shards_.elements[p] * shards_.ranks;
        elements += step.parameters()[p].elements;
    }
    const Bytes bytes = padded * sizeOf(dtype_);
    const BufferId from = source;
    if (parameters.size() > 1 || padded != elements) {
        Buffer flat{bytes, MemoryCategory::Buckets, BufferRole::FlattenedBucket, dtype_, false, false, -1, number_};
        if (quantised_.node == kNoAxis) {  // with qgZ parameters travel one by one, some of them quantised
            std::int32_t& byRank = layouts_[number_].byRank;
            if (byRank < 0) byRank = addCutLayout(step, parameters, step.axes().data, true);
            flat.layout = byRank;
        }
        source = step.addBuffer(flat);
        step.memoryKernel(stream_, Phase::GradientSync, TaskRole::BucketFlatten, "copy", 2 * bytes, -1, number_);
        if (overlap_) program.dependOn(step.lastCompute());
        program.use(source, UseKind::Allocate);
        useSources(step, parameters, from, UseKind::Read);
        program.use(source, UseKind::Write);
    }
    step.memoryKernel(stream_, Phase::GradientSync, TaskRole::BucketDivide, "divide", 2 * bytes, -1, number_);
    if (overlap_) program.dependOn(step.lastCompute());
    useSources(step, parameters, source, UseKind::Write);
    last_ = step.collective(stream_, Phase::GradientSync, TaskRole::ShardReduce, CollectiveOp::ReduceScatter, dtype_, padded, step.axes().data, -1, number_);
    useSources(step, parameters, source, UseKind::Write);
    return last_;
}

TaskId Zero3Reducer::allReduce(StepWriter& step, BufferId source) {
    step.collective(stream_, Phase::GradientSync, TaskRole::BucketReduce, CollectiveOp::AllReduce, dtype_, elements_, step.axes().data, -1, number_);
    useSources(step, bucket_, source, UseKind::Write);
    last_ = step.memoryKernel(stream_, Phase::GradientSync, TaskRole::BucketDivide, "divide", 2 * elements_ * sizeOf(dtype_), -1, number_);
    useSources(step, bucket_, source, UseKind::Write);
    return last_;
}

bool Zero3Reducer::quantises(StepWriter& step, std::uint32_t p) const {
    const ModelParameter& parameter = step.parameters()[p];
    const Shape& shape = step.workload().typeOf(static_cast<std::size_t>(parameter.layer)).parameters[static_cast<std::size_t>(parameter.index)].shape;
    return shape.size() >= 2 && parameter.elements % (2 * shards_.ranks) == 0;
}

// qgZ: four bits within the node, summed there, four bits again between nodes: n/2 bytes leave over the fast links, n/(2P)
// over the network.
TaskId Zero3Reducer::allToAll(StepWriter& step, std::uint32_t p, BufferId source) {
    ProgramWriter& program = step.program();
    const ModelParameter& parameter = step.parameters()[p];
    const Shape& shape = step.workload().typeOf(static_cast<std::size_t>(parameter.layer)).parameters[static_cast<std::size_t>(parameter.index)].shape;
    const std::int64_t nodeRanks = step.schedule().axes[quantised_.node].size;
    const std::int64_t n = parameter.elements, scales = std::max({shape[0], shape[1], shards_.ranks}), outerScales = scales / nodeRanks;
    const auto part = number_;
    const BufferId wire = step.addBuffer({n + 8 * scales, MemoryCategory::Buckets, BufferRole::CompressedBucket, DType::Int8, false, false, -1, part});
    const auto kernel = [&](TaskRole role, std::string_view name, Bytes bytes) {
        last_ = step.memoryKernel(stream_, Phase::GradientSync, role, name, bytes, parameter.layer, part);
    };
    const auto exchange = [&](DType dtype, std::int64_t elements, std::uint32_t axis) {
        last_ = step.collective(stream_, Phase::GradientSync, TaskRole::ShardReduce, CollectiveOp::AllToAll, dtype, elements, axis, -1, part);
        program.use(wire, UseKind::Write);
    };
    kernel(TaskRole::Quantise, "quantise", n * sizeOf(dtype_) + n / 2 + 4 * scales);
    if (overlap_) program.dependOn(step.lastCompute());
    program.use(wire, UseKind::Allocate);
    useSources(step, std::span(&p, 1), source, UseKind::Read);
    program.use(wire, UseKind::Write);
    exchange(DType::Int8, n / 2, quantised_.node);
    exchange(DType::Fp32, scales, quantised_.node);
    kernel(TaskRole::Quantise, "reduce and quantise", n / 2 + n / (2 * nodeRanks) + 4 * (scales + outerScales));
    program.use(wire, UseKind::Write);
    exchange(DType::Int8, n / (2 * nodeRanks), quantised_.between);
    if (outerScales > 0) exchange(DType::Fp32, outerScales, quantised_.between);
    kernel(TaskRole::Dequantise, "dequantise and sum", n / (2 * nodeRanks) + shards_.elements[p] * sizeOf(dtype_));
    program.use(wire, UseKind::Read);
    useSources(step, std::span(&p, 1), source, UseKind::Write);
    program.use(wire, UseKind::Free);
    return last_;
}

/// This rank's slice goes where gradients wait for the optimizer: copied in the first micro-step, added in the others.
void Zero3Reducer::keep(StepWriter& step, BufferId source, TaskId reduced, std::int64_t share) {
    ProgramWriter& program = step.program();
    const Bytes bytes = share * sizeOf(dtype_);
    if (!host_) {
        last_ = step.memoryKernel(stream_, Phase::GradientSync, TaskRole::ShardAccumulate, first_ ? "copy" : "add", (first_ ? 2 : 3) * bytes, -1, number_);
        program.dependOn(reduced);
        useSources(step, bucket_, source, UseKind::Read);
        program.use(shard_, UseKind::Write);
        return;
    }
    const BufferId slice = step.addBuffer({bytes, MemoryCategory::Workspace, BufferRole::GradientShard, dtype_, false, false, -1, number_});
    step.memoryKernel(stream_, Phase::GradientSync, TaskRole::BucketSlice, "copy", 2 * bytes, -1, number_);
    program.dependOn(reduced);
    program.use(slice, UseKind::Allocate);
    useSources(step, bucket_, source, UseKind::Read);
    program.use(slice, UseKind::Write);
    last_ = host_->takeGradients(step, stream_, {share, slice, number_}, first_, boundary_);
    program.use(slice, UseKind::Free);
}

void Zero3Reducer::finishPass(StepWriter& step) {
    flush(step);
    number_ = 0;
    outstanding_.clear();
    if (!overlap_ || last_ == kNoTask) return;
    step.waitOnCompute(last_);
    step.hostWait(Phase::GradientSync, TaskRole::Synchronize, std::array{last_});
}

}  // namespace ringside
