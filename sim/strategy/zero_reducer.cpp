#include "sim/strategy/zero_reducer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringside {

ZeroReducer::ZeroReducer(StepWriter& step, const StrategyInput& input, int stage, const FlatPartition& partition, std::int32_t shardLayout, HostOptimizer* host)
    : config_(input.parallel), stage_(stage), partition_(partition), host_(host), overlap_(config_.overlapComm.value_or(false) && partition.ranks() > 1),
      // A pipeline's engine reduces after its last backward, whatever overlap_comm says.
      inHooks_(stage == 2 || (overlap_ && step.mesh().pp == 1)), dtype_(input.training.precision.parameter), bucketLimit_(std::llround(config_.reduceBucketElements)) {
    ProgramWriter& program = step.program();
    if (overlap_) {
        work_ = program.addStream(StreamKind::Compute, "reduction");
        communication_ = program.addStream(StreamKind::Communication, "nccl dp");
    }
    if (contiguous())
        for (int i = 0; i < (overlap_ ? 2 : 1); ++i)
            buffers_.push_back(step.addBuffer({bucketLimit_ * sizeOf(dtype_), MemoryCategory::Buckets, BufferRole::Bucket, dtype_, false, false, -1, i}));
    if (!host_) {
        const auto shard = [&](MemoryCategory category) {
            Buffer slice{partition.share() * sizeOf(dtype_), category, BufferRole::GradientShard, dtype_, false, false, -1, 0};
            slice.layout = shardLayout;
            return step.addBuffer(slice);
        };
        accumulated_ = shard(MemoryCategory::Gradients);
        incoming_ = shard(MemoryCategory::Workspace);
    }
}

void ZeroReducer::beforeBackwardPass(StepWriter&, const Pass& pass) {
    boundary_ = pass.last;
    firstPass_ = pass.first || stage_ == 1;
    active_ = inHooks_ && (stage_ == 2 || pass.last);
}

void ZeroReducer::onGradientReady(StepWriter& step, std::uint32_t p) {
    if (active_) add(step, p);
}

void ZeroReducer::afterBackwardPass(StepWriter& step, const Pass&) {
    if (active_) epilogue(step);
}

void ZeroReducer::reduceAfterBackward(StepWriter& step) {
    if (inHooks_) return;
    boundary_ = firstPass_ = true;
    for (std::uint32_t p = 0; p < step.parameters().size(); ++p) add(step, p);
    epilogue(step);
}

void ZeroReducer::add(StepWriter& step, std::uint32_t p) {
    const ModelParameter& parameter = step.parameters()[p];
    // A bucket is flushed only when the next gradient would not fit: a small model reduces once, when backward is over.
    if (elements_ > 0 && elements_ + parameter.elements > bucketLimit_) {
        flush(step);
        if (contiguous() && overlap_) current_ = 1 - current_;
    }
    addToLayout(step, p);
    if (contiguous() && parameter.elements <= bucketLimit_) {  // a larger one is reduced where it is
        step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketCopyIn, "copy", 2 * parameter.elements * sizeOf(dtype_), parameter.layer,
                          static_cast<std::uint16_t>(parameter.index));
        if (!allocated_)
            for (const BufferId buffer : buffers_) step.program().use(buffer, UseKind::Allocate);
        allocated_ = true;
        step.program().use(parameter.gradient, UseKind::Read);
        step.program().use(buffers_[current_], UseKind::Write, bucketLayout());
        step.dropGradient(p);
    }
    bucket_.push_back(p);
    elements_ += parameter.elements;
}

void ZeroReducer::addToLayout(StepWriter& step, std::uint32_t p) {
    ProgramWriter& program = step.program();
    if (number_ < finished_) return;
    if (number_ == layouts_.size()) layouts_.push_back(program.addLayout({}));
    Layout& layout = program.program().layouts[static_cast<std::size_t>(bucketLayout())];
    layout.pieces.push_back({p, layout.elements});
    layout.elements += step.parameters()[p].elements;
}

void ZeroReducer::flush(StepWriter& step) {
    if (bucket_.empty()) return;
    // The compute stream waits for what is on the reduction stream already: one bucket may be under way, not two.
    if (overlap_ && lastReduction_) step.waitOnCompute(*lastReduction_);
    const std::vector<std::uint32_t> previous = std::exchange(reduced_, {});
    const bool inBuffer = contiguous() && elements_ <= bucketLimit_;
    BufferId source = inBuffer ? buffers_[current_] : kNoBuffer;
    const TaskId done = partition_.ranks() > 1 ? reduce(step, source) : step.lastCompute();
    keepSlice(step, source, done);
    for (const std::uint32_t p : previous) step.dropGradient(p);
    if (!inBuffer) dropGradients(step);
    bucket_.clear();
    elements_ = 0;
    ++number_;
    finished_ = std::max<std::size_t>(finished_, number_);
}

void ZeroReducer::useSources(StepWriter& step, BufferId source, UseKind kind) {
    if (source != kNoBuffer) return step.program().use(source, kind, bucketLayout());
    for (const std::uint32_t p : bucket_) step.program().use(step.parameters()[p].gradient, kind);
}

TaskId ZeroReducer::reduce(StepWriter& step, BufferId& source) {
    ProgramWriter& program = step.program();
    const Bytes bytes = elements_ * sizeOf(dtype_);
    TaskId ready = step.lastCompute();
    const auto divide = [&](TaskId after) {
        const TaskId divided = step.memoryKernel(work_, Phase::GradientSync, TaskRole::BucketDivide, "divide", 2 * bytes, -1, number_);
        program.dependOn(after);
        useSources(step, source, UseKind::Write);
        return divided;
    };
    const bool alone = source == kNoBuffer && bucket_.size() == 1 && contiguous();  // larger than a bucket: reduced in place
    if (config_.reduceScatter) {
        // Called a reduce-scatter, it is none: an all-reduce of a flattened copy, of which each rank keeps its slice …
        ready = divide(ready);
        if (!config_.multiRankBucketAllReduce) return reduceToOwners(step, source, ready);  // … or one reduce for each owner.
    }
    if (config_.reduceScatter || (source == kNoBuffer && !alone)) {
        BufferId flattened = kNoBuffer;
        ready = flatten(step, source, ready, flattened);
        source = flattened;
    }
    const TaskId reduced = step.collective(communication_, Phase::GradientSync, TaskRole::BucketReduce, CollectiveOp::AllReduce, dtype_, elements_, step.axes().data, -1, number_);
    program.dependOn(ready);
    useSources(step, source, UseKind::Write);
    return config_.reduceScatter ? reduced : divide(reduced);
}

TaskId ZeroReducer::flatten(StepWriter& step, BufferId from, TaskId ready, BufferId& flattened) {
    const Bytes bytes = elements_ * sizeOf(dtype_);
    Buffer flat{bytes, MemoryCategory::Buckets, BufferRole::FlattenedBucket, dtype_, false, false, -1, number_};
    flat.layout = bucketLayout();
    flattened = step.addBuffer(flat);
    const TaskId task = step.memoryKernel(work_, Phase::GradientSync, TaskRole::BucketFlatten, "copy", 2 * bytes, -1, number_);
    step.program().dependOn(ready);
    step.program().use(flattened, UseKind::Allocate);
    useSources(step, from, UseKind::Read);
    step.program().use(flattened, UseKind::Write);
    return task;
}

TaskId ZeroReducer::reduceToOwners(StepWriter& step, BufferId source, TaskId ready) {
    TaskId last = ready;
    CollectiveWork work{CollectiveOp::Reduce, dtype_, 0, step.axes().data};
    for (const OwnedRun& run : partition_.ownersOf(bucket_)) {
        work.first += work.elements;
        work.elements = run.elements;
        work.root = static_cast<std::int32_t>(run.owner);
        last = step.collective(communication_, Phase::GradientSync, TaskRole::BucketReduce, work, -1, number_);
        step.program().dependOn(ready);
        useSources(step, source, UseKind::Write);
    }
    return last;
}

// Which part of a bucket a rank owns differs from rank to rank; over the whole model each owns 1/N. Every rank is written with
// that share of every bucket.
void ZeroReducer::keepSlice(StepWriter& step, BufferId source, TaskId reduced) {
    ProgramWriter& program = step.program();
    const std::int64_t share = (elements_ + partition_.ranks() - 1) / partition_.ranks();
    // Out of the sum into the gradient, and from there into the slice that outlives the bucket.
    const TaskId kept = step.memoryKernel(work_, Phase::GradientSync, TaskRole::BucketSlice, "copy", (host_ ? 2 : 4) * share * sizeOf(dtype_), -1, number_);
    program.dependOn(reduced);
    BufferId slice = kNoBuffer;
    if (host_) {
        slice = step.addBuffer({share * sizeOf(dtype_), MemoryCategory::Workspace, BufferRole::GradientShard, dtype_, false, false, -1, number_});
        program.use(slice, UseKind::Allocate);
    } else {
        slice = firstPass_ ? accumulated_ : incoming_;
        if (!shardAllocated_) program.use(slice, UseKind::Allocate);
        shardAllocated_ = true;
    }
    useSources(step, source, UseKind::Read);
    program.use(slice, UseKind::Write);
    const bool temporary = source != kNoBuffer && (!contiguous() || source != buffers_[current_]);
    if (temporary) program.use(source, UseKind::Free);
    lastReduction_ = kept;
    if (host_) {
        lastReduction_ = host_->takeGradients(step, work_, {share, slice, number_}, firstPass_, boundary_);
        program.use(slice, UseKind::Free);
    }
}

void ZeroReducer::dropGradients(StepWriter& step) {
    if (overlap_) {  // they are read on another stream: cleared at the next reduction
        reduced_.insert(reduced_.end(), bucket_.begin(), bucket_.end());
        return;
    }
    for (const std::uint32_t p : bucket_) step.dropGradient(p);
}

void ZeroReducer::epilogue(StepWriter& step) {
    flush(step);
    if (overlap_) {
        const std::vector<TaskId> all{step.lastCompute(), *lastReduction_};
        step.waitOnCompute(*lastReduction_);
        step.hostWait(Phase::GradientSync, TaskRole::Synchronize, all, number_);  // a device-wide synchronize
        for (const std::uint32_t p : reduced_) step.dropGradient(p);
        reduced_.clear();
    }
    if (allocated_)
        for (const BufferId buffer : buffers_) step.program().use(buffer, UseKind::Free);
    allocated_ = false;
    current_ = 0;
    number_ = 0;
    if (host_) return;
    if (!firstPass_) {
        step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::ShardAccumulate, "add", 3 * partition_.share() * sizeOf(dtype_));
        step.program().use(incoming_, UseKind::Read);
        step.program().use(accumulated_, UseKind::Write);
        step.program().use(incoming_, UseKind::Free);
    }
    shardAllocated_ = false;
}

}  // namespace ringside
