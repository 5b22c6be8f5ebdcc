#include "sim/strategy/ddp_reducer.h"

#include <algorithm>
#include <limits>

#include "sim/strategy/buckets.h"

namespace ringside {
namespace {

CommHook hookOf(const ParallelConfig& parallel) {
    if (parallel.commHook == "fp16") return CommHook::Fp16;
    if (parallel.commHook == "bf16") return CommHook::Bf16;
    return parallel.commHook == "powersgd" ? CommHook::PowerSgd : CommHook::None;
}

/// Module buffers (batch-norm statistics) travel from rank 0 at the start of each forward, coalesced per dtype.
void broadcastBuffers(StepWriter& step) {
    std::map<DType, std::int64_t> elements;
    for (std::size_t l = 0; l < step.input().workload->layers.size(); ++l)
        for (const StateTensor& state : step.input().workload->typeOf(l).buffers) elements[state.dtype] += elementCount(state.shape);
    for (const auto& [dtype, count] : elements)
        step.collective(kComputeStream, Phase::Forward, TaskRole::BufferBroadcast, CollectiveOp::Broadcast, dtype, count, 0);
}

}  // namespace

DdpReducer::DdpReducer(StepWriter& step, const StrategyInput& input)
    : input_(input), hook_(hookOf(input.parallel)), chunks_(step.part().chunks.size()), waitForAll_(input.parallel.staticGraph && input.step == StepKind::First) {
    ProgramWriter& program = step.program();
    communication_ = program.addStream(StreamKind::Communication, "nccl dp");
    if (hook_ != CommHook::None) hookStream_ = program.addStream(StreamKind::Compute, "comm hook");
    if (hook_ == CommHook::PowerSgd && input.step == StepKind::Steady) powerSgd_.emplace(input.parallel.powerSgdRank, communication_, hookStream_);
    fillBuckets(step);
    bucketOf_.resize(step.parameters().size());
    const DType dtype = step.gradientDtype();
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        ReducerBucket& bucket = buckets_[b];
        for (const std::uint32_t p : bucket.parameters) {
            bucketOf_[p] = static_cast<std::uint32_t>(b);
            bucket.elements += step.parameters()[p].elements;
        }
        const std::int32_t layout = program.addLayout(packed(bucket.parameters, program.program().parameters));
        Buffer flat{bucket.elements * sizeOf(dtype), MemoryCategory::Buckets, BufferRole::Bucket, dtype, true, false, -1, static_cast<std::int32_t>(b)};
        flat.layout = layout;
        bucket.buffer = step.addBuffer(flat);
        if (powerSgd_) powerSgd_->declareBucket(step, bucket.parameters);
        if (hook_ == CommHook::Fp16 || hook_ == CommHook::Bf16) {
            Buffer wire{bucket.elements * 2, MemoryCategory::Buckets, BufferRole::CompressedBucket, wireDtype(), false, false, -1, static_cast<std::int32_t>(b)};
            wire.layout = layout;
            bucket.compressed = step.addBuffer(wire);
        }
    }
    if (input.parallel.findUnusedParameters && !input.parallel.staticGraph)
        bitmap_ = step.addBuffer({static_cast<Bytes>(step.parameters().size()) * 4, MemoryCategory::Buckets, BufferRole::Workspace, DType::Int32, true, false, -1, 0});
    if (input.step == StepKind::Steady && input.parallel.gradientAsBucketView) viewsAreSet_ = true;
}

void DdpReducer::beforeForwardPass(StepWriter& step, const Pass& pass) {
    if (isSync(pass) && input_.parallel.broadcastBuffers) broadcastBuffers(step);
}

void DdpReducer::beforeBackwardPass(StepWriter&, const Pass& pass) {
    sync_ = isSync(pass);
    if (!sync_ || pass.chunk + 1 != chunks_) return;  // an interleaved pipeline's last chunk is the first to run backward
    for (ReducerBucket& bucket : buckets_) bucket.pending = bucket.parameters.size();
    next_ = 0;
}

void DdpReducer::afterBackwardPass(StepWriter& step, const Pass& pass) {
    if (sync_ && pass.chunk == 0) finish(step);
}

void DdpReducer::onGradientReady(StepWriter& step, std::uint32_t p) {
    if (!sync_) return;
    ReducerBucket& bucket = buckets_[bucketOf_[p]];
    ModelParameter& parameter = step.parameters()[p];
    const Bytes bytes = parameter.elements * sizeOf(step.gradientDtype());
    const bool inBucketAlready = !parameter.ownsGradient;  // accumulated into the view by an earlier micro-step
    // bucket_view = grad / world: divided before the sum, so that it cannot overflow; a hook divides by itself. A gradient
    // that lives in its bucket already is only divided in place.
    if (!inBucketAlready || hook_ == CommHook::None) {
        bucket.lastCopyIn = step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketCopyIn, hook_ == CommHook::None ? "divide" : "copy",
                                              2 * bytes, parameter.layer, static_cast<std::uint16_t>(parameter.index));
        step.program().use(parameter.gradient, UseKind::Read);
        step.program().use(bucket.buffer, UseKind::Write);
    } else {
        bucket.lastCopyIn = step.lastCompute();
    }
    if (viewsAreSet_) step.moveGradient(p, bucket.buffer);
    --bucket.pending;
    while (!waitForAll_ && next_ < buckets_.size() && buckets_[next_].pending == 0) launch(step, next_++);
}

/// Waits for every bucket in order and copies the sums back.
void DdpReducer::finish(StepWriter& step) {
    while (next_ < buckets_.size()) launch(step, next_++);
    if (bitmap_ != 0) {
        const TaskId reduce = step.collective(communication_, Phase::GradientSync, TaskRole::UnusedBitmap, CollectiveOp::AllReduce, DType::Int32,
                                              static_cast<std::int64_t>(step.parameters().size()), 0);
        step.program().dependOn(step.lastCompute());
        step.program().use(bitmap_, UseKind::Write);
        bitmapDone_ = reduce;
    }
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        ReducerBucket& bucket = buckets_[b];
        bool first = true;
        for (const std::uint32_t p : bucket.parameters) {
            const ModelParameter& parameter = step.parameters()[p];
            if (!parameter.ownsGradient) continue;  // the gradient is a view of the bucket
            step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketCopyOut, "copy", 2 * parameter.elements * sizeOf(step.gradientDtype()),
                              parameter.layer, static_cast<std::uint16_t>(parameter.index));
            if (first) step.program().dependOn(bucket.done);
            first = false;
            step.program().use(bucket.buffer, UseKind::Read);
            step.program().use(parameter.gradient, UseKind::Write);
        }
        if (first) waitedFor_.push_back(bucket.done);  // no copy kernel to wait in: the optimizer waits
    }
    if (bitmap_ != 0) waitedFor_.push_back(bitmapDone_);
    // What no copy kernel waited for, a (free) event wait at the head of the next compute task does.
    if (!waitedFor_.empty()) {
        step.waitOnCompute(waitedFor_);
        waitedFor_.clear();
    }
    if (input_.parallel.gradientAsBucketView) viewsAreSet_ = true;
}

void DdpReducer::fillBuckets(StepWriter& step) {
    const bool registrationOrder = input_.parallel.findUnusedParameters && !input_.parallel.staticGraph;
    std::vector<std::uint32_t> order;
    if (registrationOrder || input_.step == StepKind::First)
        for (std::uint32_t p = 0; p < step.parameters().size(); ++p) order.push_back(p);
    else
        order = step.readyOrder();
    // The small first bucket exists only where the cap was left at its default. Step 1 has one bucket for everything,
    // unless unused parameters are searched for: those buckets are built at once and never rebuilt.
    std::vector<Bytes> limits = ddpBucketLimits(input_.parallel.bucketMb);
    if (input_.step == StepKind::First && !registrationOrder) limits = {std::numeric_limits<Bytes>::max()};

    std::vector<GradientSize> sizes;
    for (const std::uint32_t p : order) sizes.push_back({step.parameters()[p].elements, step.gradientDtype(), false, step.parameters()[p].expert ? 1 : 0});
    for (const GradientBucket& filled : fillDdpBuckets(sizes, limits)) {
        ReducerBucket bucket;
        for (const std::uint32_t i : filled) bucket.parameters.push_back(order[i]);
        bucket.axis = step.parameters()[bucket.parameters.front()].expert ? step.axes().expertData : step.axes().data;
        buckets_.push_back(std::move(bucket));
    }
    if (registrationOrder || input_.step == StepKind::First) std::reverse(buckets_.begin(), buckets_.end());
}

void DdpReducer::launch(StepWriter& step, std::size_t b) {
    ReducerBucket& bucket = buckets_[b];
    ProgramWriter& program = step.program();
    const DType dtype = step.gradientDtype();
    const auto part = static_cast<std::uint16_t>(b);
    TaskId ready = bucket.lastCopyIn;
    if (powerSgd_) {
        bucket.done = powerSgd_->reduceBucket(step, b, bucket.buffer, ready, bucket.axis);
        return;
    }
    // PowerSGD begins after a thousand steps; before that buckets travel as they are.
    const bool compresses = hook_ == CommHook::Fp16 || hook_ == CommHook::Bf16;
    if (compresses) {
        // buffer.to(half).div_(world): a cast and a divide on the stream that runs the hook.
        ready = step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketCompress, "cast and divide",
                                  bucket.elements * (sizeOf(dtype) + 2 + 2 + 2), -1, part);
        program.use(bucket.compressed, UseKind::Allocate);
        program.use(bucket.buffer, UseKind::Read);
        program.use(bucket.compressed, UseKind::Write);
    }
    const BufferId onWire = compresses ? bucket.compressed : bucket.buffer;
    bucket.done = step.collective(communication_, Phase::GradientSync, TaskRole::BucketReduce, CollectiveOp::AllReduce,
                                  compresses ? wireDtype() : dtype, bucket.elements, bucket.axis, -1, part);
    program.dependOn(ready);
    program.use(onWire, UseKind::Read);
    program.use(onWire, UseKind::Write);
    if (compresses) {
        const TaskId reduce = bucket.done;
        bucket.done = step.memoryKernel(hookStream_, Phase::GradientSync, TaskRole::BucketDecompress, "cast", bucket.elements * (2 + sizeOf(dtype)), -1, part);
        program.dependOn(reduce);
        program.use(bucket.compressed, UseKind::Read);
        program.use(bucket.buffer, UseKind::Write);
        program.use(bucket.compressed, UseKind::Free);
    }
}

Result<void> checkReducer(const StrategyInput& input) {
    const ParallelConfig& parallel = input.parallel;
    if (parallel.pp > 1 && parallel.pipelineSchedule == "interleaved" && !parallel.noSync && input.training.gradAccum > 1)
        return badInput("strategy.no_sync", "an interleaved pipeline mixes the backwards of its chunks, so buckets cannot be reduced in every micro-step; leave no_sync on, or use 1f1b");
    return {};
}

std::vector<Knob> ddpReducerKnobs() {
    return {{"bucket_mb", "25, the first 1", "bucket size in MiB; giving it also makes the first bucket that size"},
            {"gradient_as_bucket_view", "false", "gradients are views of their bucket: no copy back, one gradient's memory saved"},
            {"find_unused_parameters", "false", "buckets in registration order, never rebuilt, and a bitmap all-reduce per step"},
            {"static_graph", "false", "the graph never changes: step 1 reduces after backward, then as usual"},
            {"comm_hook", "none", "fp16 or bf16: compress buckets on the wire; powersgd: send low-rank factors"},
            {"powersgd_rank", "1", "powersgd: rank of the factors"},
            {"no_sync", "true", "with gradient accumulation, reduce only in the last micro-step"},
            {"broadcast_buffers", "true", "send rank 0's module buffers in each forward"}};
}

}  // namespace ringside
