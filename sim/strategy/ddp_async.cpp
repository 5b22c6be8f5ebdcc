#include "sim/strategy/ddp_async.h"

#include "sim/strategy/bucket_plan.h"

namespace ringside {
namespace {

/// Two sets of buckets: one travels, the other fills.
class StaleGradients final : public StepHooks {
public:
    explicit StaleGradients(StepWriter& step) : buckets_(readyOrderBuckets(step, step.input().parallel.bucketMb)), bucketOf_(step.parameters().size()) {
        communication_ = step.program().addStream(StreamKind::Communication, "nccl dp");
        const DType dtype = step.gradientDtype();
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            for (const std::uint32_t p : buckets_[b].parameters) bucketOf_[p] = b;
            Buffer bucket{buckets_[b].elements * sizeOf(dtype), MemoryCategory::Buckets, BufferRole::Bucket, dtype, true, false, -1, static_cast<std::int32_t>(b)};
            bucket.layout = step.program().addLayout(packed(buckets_[b].parameters, step.program().program().parameters));
            travelling_.push_back(step.addBuffer(bucket));
            bucket.turn = static_cast<std::int32_t>(travelling_.back());
            filling_.push_back(step.addBuffer(bucket));
        }
    }

    /// The gradients of the step before begin to travel as this one begins.
    void send(StepWriter& step) {
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            arrived_.push_back(step.collective(communication_, Phase::GradientSync, TaskRole::BucketReduce, CollectiveOp::AllReduce, step.gradientDtype(), buckets_[b].elements,
                                               step.axes().data, -1, static_cast<std::uint16_t>(b)));
            step.program().use(travelling_[b], UseKind::Write);
        }
    }

    void beforeBackwardPass(StepWriter&, const Pass& pass) override { last_ = pass.last; }

    void onGradientReady(StepWriter& step, std::uint32_t p) override {
        if (!last_) return;
        const ModelParameter& parameter = step.parameters()[p];
        step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketCopyIn, "divide", 2 * parameter.elements * sizeOf(step.gradientDtype()), parameter.layer,
                          static_cast<std::uint16_t>(parameter.index));
        step.program().use(parameter.gradient, UseKind::Read);
        step.program().use(filling_[bucketOf_[p]], UseKind::Write);
    }

    void apply(StepWriter& step) {
        std::vector<OptimizerTarget> targets = step.wholeParameters();
        for (std::size_t p = 0; p < targets.size(); ++p) targets[p].gradient = travelling_[bucketOf_[p]];
        step.waitOnCompute(arrived_);
        step.optimizerStep(targets);
    }

private:
    std::vector<PlannedBucket> buckets_;
    std::vector<std::size_t> bucketOf_;  // per parameter
    std::vector<BufferId> travelling_, filling_;
    std::vector<TaskId> arrived_;
    StreamId communication_ = 0;
    bool last_ = false;
};

}  // namespace

Result<void> writeAsyncGradients(StepWriter& step) {
    StaleGradients gradients(step);
    const bool hasOlder = step.input().step == StepKind::Steady;
    if (hasOlder) gradients.send(step);
    step.runPasses(gradients);
    if (hasOlder) gradients.apply(step);
    step.endStep();
    return {};
}

}  // namespace ringside
