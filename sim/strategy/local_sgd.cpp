// Local SGD, post-local SGD and DiLoCo: workers take optimizer steps of their own and average their parameters only every
// `period` steps. What happens only then is written as periodic tasks of the one Schedule. docs/models/local-sgd.md.
#include <numeric>

#include <fmt/format.h>

#include "sim/strategy/bucket_plan.h"

namespace ringside {
namespace {

constexpr std::int64_t kLocalSgdPeriod = 4, kDiLoCoPeriod = 500;

/// Post-local SGD: within groups of neighbours gradients are averaged in every step, in buckets, as DDP does.
class GroupReducer final : public StepHooks {
public:
    GroupReducer(StepWriter& step, std::uint32_t axis) : axis_(axis), plan_(readyOrderBuckets(step, {})), bucketOf_(step.parameters().size()), pending_(plan_.size()) {
        communication_ = step.program().addStream(StreamKind::Communication, "nccl group");
        for (std::size_t b = 0; b < plan_.size(); ++b) {
            for (const std::uint32_t p : plan_[b].parameters) bucketOf_[p] = b;
            Layout layout = packed(plan_[b].parameters, step.program().program().parameters);
            layout.axis = axis;
            Buffer bucket{plan_[b].elements * sizeOf(step.gradientDtype()), MemoryCategory::Buckets, BufferRole::Bucket, step.gradientDtype(), true, false, -1, static_cast<std::int32_t>(b)};
            bucket.layout = step.program().addLayout(std::move(layout));
            buffers_.push_back(step.addBuffer(bucket));
        }
    }

    void beforeBackwardPass(StepWriter&, const Pass& pass) override {
        sync_ = pass.last;
        for (std::size_t b = 0; b < plan_.size(); ++b) pending_[b] = plan_[b].parameters.size();
        next_ = 0;
        done_.clear();
    }

    void onGradientReady(StepWriter& step, std::uint32_t p) override {
        if (!sync_) return;
        copy(step, p, TaskRole::BucketCopyIn, "divide");
        step.program().use(step.parameters()[p].gradient, UseKind::Read);
        step.program().use(buffers_[bucketOf_[p]], UseKind::Write);
        --pending_[bucketOf_[p]];
        for (; next_ < plan_.size() && pending_[next_] == 0; ++next_) {
            const TaskId complete = step.lastCompute();
            done_.push_back(step.collective(communication_, Phase::GradientSync, TaskRole::BucketReduce, CollectiveOp::AllReduce, step.gradientDtype(), plan_[next_].elements, axis_, -1,
                                            static_cast<std::uint16_t>(next_)));
            step.program().dependOn(complete);
            step.program().use(buffers_[next_], UseKind::Write);
        }
    }

    void afterBackwardPass(StepWriter& step, const Pass&) override {
        if (!sync_) return;
        for (std::size_t b = 0; b < plan_.size(); ++b)
            for (const std::uint32_t p : plan_[b].parameters) {
                copy(step, p, TaskRole::BucketCopyOut, "copy");
                if (p == plan_[b].parameters.front()) step.program().dependOn(done_[b]);
                step.program().use(buffers_[b], UseKind::Read);
                step.program().use(step.parameters()[p].gradient, UseKind::Write);
            }
    }

private:
    static void copy(StepWriter& step, std::uint32_t p, TaskRole role, const char* name) {
        const ModelParameter& parameter = step.parameters()[p];
        step.memoryKernel(kComputeStream, Phase::GradientSync, role, name, 2 * parameter.elements * sizeOf(step.gradientDtype()), parameter.layer, static_cast<std::uint16_t>(parameter.index));
    }

    std::uint32_t axis_;
    std::vector<PlannedBucket> plan_;
    std::vector<std::size_t> bucketOf_, pending_;
    std::vector<BufferId> buffers_;
    std::vector<TaskId> done_;  // per bucket
    StreamId communication_ = 0;
    std::size_t next_ = 0;
    bool sync_ = false;
};

std::int64_t elementsOf(StepWriter& step) {
    std::int64_t elements = 0;
    for (const ModelParameter& p : step.parameters()) elements += p.elements;
    return elements;
}

/// All parameters, one after another.
std::int32_t layoutOfAll(StepWriter& step) {
    std::vector<std::uint32_t> all(step.parameters().size());
    std::iota(all.begin(), all.end(), 0U);
    return step.program().addLayout(packed(all, step.program().program().parameters));
}

void useAll(StepWriter& step, UseKind kind) {
    for (const ModelParameter& p : step.parameters()) step.program().use(p.buffer, kind);
}

/// model_averaging.utils.average_parameters: put together, divided, summed; the parameters then are views of the result.
void averageParameters(StepWriter& step) {
    const DType dtype = step.input().training.precision.parameter;
    const std::int64_t elements = elementsOf(step);
    const Bytes bytes = elements * sizeOf(dtype);
    Buffer together{bytes, MemoryCategory::Buckets, BufferRole::Bucket, dtype, false, false, -1, 0};
    together.layout = layoutOfAll(step);
    const BufferId flat = step.addBuffer(together);
    step.setPeriodic(true);
    step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::FlattenParameters, "copy", 2 * bytes);
    step.program().use(flat, UseKind::Allocate);
    useAll(step, UseKind::Read);
    step.program().use(flat, UseKind::Write);
    step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketDivide, "divide", 2 * bytes);
    step.program().use(flat, UseKind::Write);
    step.collective(kComputeStream, Phase::GradientSync, TaskRole::ParameterAverage, CollectiveOp::AllReduce, dtype, elements, step.axes().data);
    step.program().use(flat, UseKind::Write);
    useAll(step, UseKind::Write);
    step.program().use(flat, UseKind::Free);
    step.setPeriodic(false);
}

/// What DiLoCo keeps besides: the parameters of the last round and the outer momentum, in fp32.
struct OuterState {
    BufferId parameters = kNoBuffer, momentum = kNoBuffer;
    std::int32_t layout = -1;
};

OuterState declareOuterState(StepWriter& step) {
    const Bytes bytes = elementsOf(step) * 4;
    const std::int32_t layout = layoutOfAll(step);
    const auto add = [&](BufferRole role, std::int32_t index) {
        Buffer buffer{bytes, MemoryCategory::OptimizerState, role, DType::Fp32, true, false, -1, index};
        buffer.layout = layout;
        return step.addBuffer(buffer);
    };
    const BufferId parameters = add(BufferRole::MasterShard, 0), momentum = add(BufferRole::OptimizerShard, 1);
    return {parameters, momentum, layout};
}

/// The outer step: the difference to the last round is averaged and taken as the gradient of Nesterov momentum.
void outerStep(StepWriter& step, const OuterState& outer) {
    const Precision& precision = step.input().training.precision;
    const std::int64_t elements = elementsOf(step);
    const Bytes width = sizeOf(precision.parameter);
    Buffer difference{elements * width, MemoryCategory::Buckets, BufferRole::Bucket, precision.parameter, false, false, -1, 0};
    difference.layout = outer.layout;
    const BufferId delta = step.addBuffer(difference);
    step.setPeriodic(true);
    step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::OuterOptimizer, "difference", elements * (4 + 2 * width));
    step.program().use(delta, UseKind::Allocate);
    step.program().use(outer.parameters, UseKind::Read);
    useAll(step, UseKind::Read);
    step.program().use(delta, UseKind::Write);
    step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketDivide, "divide", elements * 2 * width);
    step.program().use(delta, UseKind::Write);
    step.collective(kComputeStream, Phase::GradientSync, TaskRole::ParameterAverage, CollectiveOp::AllReduce, precision.parameter, elements, step.axes().data);
    step.program().use(delta, UseKind::Write);
    // Momentum and outer parameters are read and written; the model's own (and its fp32 masters) written.
    step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::OuterOptimizer, "nesterov", elements * (width + 4 * 4));
    step.program().use(delta, UseKind::Read);
    step.program().use(outer.momentum, UseKind::Write);
    step.program().use(outer.parameters, UseKind::Write);
    step.program().use(delta, UseKind::Free);
    step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::OuterOptimizer, "copy", elements * (4 + width + (precision.masterWeights ? 4 : 0)));
    step.program().use(outer.parameters, UseKind::Read);
    useAll(step, UseKind::Write);
    step.setPeriodic(false);
}

class LocalSgd final : public Strategy {
public:
    explicit LocalSgd(bool diLoCo) : diLoCo_(diLoCo) {}

    std::string_view name() const override { return diLoCo_ ? "diloco" : "local-sgd"; }
    std::string_view summary() const override {
        return diLoCo_ ? "DiLoCo: hundreds of local steps, then an outer Nesterov step on the averaged change of the parameters."
                       : "Local SGD: workers step by themselves and average their parameters every few steps.";
    }
    std::vector<Knob> knobs() const override {
        std::vector<Knob> knobs = {{"period", std::to_string(diLoCo_ ? kDiLoCoPeriod : kLocalSgdPeriod), "local optimizer steps from one averaging to the next"}};
        if (!diLoCo_) knobs.push_back({"local_group", "0", "post-local SGD: gradients are still averaged in every step within groups of so many ranks; 0: not at all"});
        return knobs;
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        const std::int64_t group = input.parallel.localGroup, ranks = input.cluster.deviceCount();
        if (ranks > 1 && group > 1 && ranks % group != 0)
            return badInput("strategy.local_group", fmt::format("groups of {} do not divide {} ranks; choose a divisor, for example a node's devices", group, ranks));
        TRY(Schedule schedule, writeStep(input, name(), [&](StepWriter& step) -> Result<void> {
            const bool alone = step.syncRanks() == 1;
            OuterState outer;
            if (diLoCo_ && !alone) outer = declareOuterState(step);
            StepHooks nothing;
            if (group > 1 && !alone) {
                if (step.schedule().axes.size() == 1) step.schedule().axes.push_back({"local group", group, 1});
                GroupReducer reducer(step, 1);
                step.runPasses(reducer);
            } else {
                step.runPasses(nothing);
            }
            step.optimizerStep();
            if (!alone && diLoCo_) outerStep(step, outer);
            else if (!alone) averageParameters(step);
            step.endStep();
            return {};
        }));
        if (ranks > 1) schedule.period = input.parallel.period.value_or(diLoCo_ ? kDiLoCoPeriod : kLocalSgdPeriod);
        return schedule;
    }

private:
    bool diLoCo_;
};

}  // namespace

std::unique_ptr<const Strategy> makeLocalSgd() { return std::make_unique<LocalSgd>(false); }
std::unique_ptr<const Strategy> makeDiLoCo() { return std::make_unique<LocalSgd>(true); }

}  // namespace ringside
