// Picotron's DataParallelBucket: gradients accumulate in fp32 main_grad buckets, filled in registration order (not in ready
// order) and never beyond the cap; a bucket is reduced as soon as its last gradient is there, in any order; afterwards
// every gradient is cast back to the parameter's type. 4 bytes per parameter on the wire even for bf16 models.
#include <cmath>

#include "sim/strategy/buckets.h"
#include "sim/strategy/step_writer.h"

namespace ringside {
namespace {

constexpr double kDefaultBucketMb = 25;

class MainGradBuckets final : public StepHooks {
public:
    MainGradBuckets(StepWriter& step, const StrategyInput& input) : chunks_(step.part().chunks.size()) {
        communication_ = step.program().addStream(StreamKind::Communication, "nccl dp");
        std::vector<GradientSize> sizes;
        for (const ModelParameter& p : step.parameters()) sizes.push_back({p.elements, DType::Fp32, false});
        const auto cap = static_cast<Bytes>(std::llround(input.parallel.bucketMb.value_or(kDefaultBucketMb) * static_cast<double>(kMiB)));
        bucketOf_.resize(sizes.size());
        for (const GradientBucket& filled : fillPicotronBuckets(sizes, cap)) {
            State state;
            state.size = filled.size();
            for (const std::uint32_t p : filled) {
                bucketOf_[p] = static_cast<std::uint32_t>(buckets_.size());
                state.elements += sizes[p].elements;
            }
            Buffer flat{state.elements * 4, MemoryCategory::Buckets, BufferRole::Bucket, DType::Fp32, true, false, -1, static_cast<std::int32_t>(buckets_.size())};
            flat.layout = step.program().addLayout(packed(filled, step.program().program().parameters));
            state.buffer = step.addBuffer(flat);
            for (const std::uint32_t p : filled) step.keepGradientIn(p, state.buffer, DType::Fp32);
            buckets_.push_back(state);
        }
    }

    void zero(StepWriter& step) {
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            step.memoryKernel(kComputeStream, Phase::Forward, TaskRole::BucketZero, "zero", buckets_[b].elements * 4, -1, static_cast<std::uint16_t>(b));
            step.program().use(buckets_[b].buffer, UseKind::Write);
        }
    }

    void beforeBackwardPass(StepWriter&, const Pass& pass) override {
        sync_ = pass.last;
        if (sync_ && pass.chunk + 1 == chunks_)
            for (State& bucket : buckets_) bucket.pending = bucket.size;
    }
    void afterBackwardPass(StepWriter& step, const Pass& pass) override {
        step.readLoss();  // loss.item() in every micro-step
        if (sync_ && pass.chunk == 0) finish(step);
    }

    void onGradientReady(StepWriter& step, std::uint32_t p) override {
        if (!sync_) return;
        State& bucket = buckets_[bucketOf_[p]];
        if (--bucket.pending > 0) return;
        const auto part = static_cast<std::uint16_t>(bucketOf_[p]);
        step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketDivide, "divide", bucket.elements * 8, -1, part);
        step.program().use(bucket.buffer, UseKind::Write);
        const TaskId divided = step.program().last();
        bucket.done = step.collective(communication_, Phase::GradientSync, TaskRole::BucketReduce, CollectiveOp::AllReduce, DType::Fp32, bucket.elements, 0, -1, part);
        step.program().dependOn(divided);
        step.program().use(bucket.buffer, UseKind::Write);
    }

private:
    void finish(StepWriter& step) {
        std::vector<TaskId> all;
        for (const State& bucket : buckets_) all.push_back(bucket.done);
        step.waitOnCompute(all);
    }

    struct State {
        std::size_t size = 0, pending = 0;
        std::int64_t elements = 0;
        BufferId buffer = 0;
        TaskId done = 0;
    };
    std::size_t chunks_;
    bool sync_ = false;
    StreamId communication_ = 0;
    std::vector<State> buckets_;
    std::vector<std::uint32_t> bucketOf_;
};

/// loss.item() in every micro-step.
class LossEachMicroStep final : public StepHooks {
public:
    void afterBackwardPass(StepWriter& step, const Pass&) override { step.readLoss(); }
};

class Picotron final : public Strategy {
public:
    std::string_view name() const override { return "picotron"; }
    std::string_view summary() const override {
        return "Picotron's bucketed data parallelism: fp32 main gradients, buckets in registration order, reduced in any order.";
    }
    std::vector<Knob> knobs() const override {
        std::vector<Knob> knobs = withMesh({{"bucket_mb", "25", "bucket size in MiB of fp32 gradients; a bucket never exceeds it"}});
        for (Knob& knob : knobs) {  // as applyDefaults has it
            if (knob.key == "tensor_style") knob.defaultValue = "picotron";
            if (knob.key == "context_balanced") knob.defaultValue = "false";
        }
        return knobs;
    }

    /// Its own way to cut tensors, and a ring that is not balanced.
    void applyDefaults(ParallelConfig& parallel) const override {
        parallel.tensorStyle = "picotron";
        parallel.contextBalanced = false;
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        if (input.parallel.spreadsExperts()) return badInput("strategy.ep", "Picotron has no expert parallelism; use ddp or megatron");
        return writeStep(input, name(), [&](StepWriter& step) -> Result<void> {
            if (step.mesh().dp == 1) {  // train.py wraps the model only if dp > 1: with cp alone gradients are not averaged
                LossEachMicroStep hooks;
                step.runPasses(hooks);
            } else {
                MainGradBuckets buckets(step, input);
                buckets.zero(step);
                step.runPasses(buckets);
                step.castGradientsToParameterType();
            }
            step.optimizerStep();
            step.endStep();
            return {};
        });
    }
};

}  // namespace

std::unique_ptr<const Strategy> makePicotron() { return std::make_unique<Picotron>(); }

}  // namespace ringside
