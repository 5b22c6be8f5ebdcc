// DeepSpeed ZeRO, stages 1 and 2 (deepspeed/runtime/zero/stage_1_and_2.py): optimizer state, then gradients too, are shared out
// over the data-parallel ranks. docs/models/zero.md tells the rules and their surprises.
#include "sim/strategy/zero.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "sim/strategy/zero_offload.h"
#include "sim/strategy/zero_reducer.h"

namespace ringside {

TrainingConfig zeroTraining(const TrainingConfig& training) {
    TrainingConfig own = training;
    own.precision.masterWeights = true;  // its optimizers update a flat fp32 copy, whatever the model's type
    return own;
}

std::vector<Knob> zeroKnobs(std::vector<Knob> own, const std::vector<std::string_view>& leftOut) {
    std::vector<Knob> all = {{"reduce_bucket_size", "5e8", "elements of a gradient bucket; it is reduced when the next gradient would not fit"},
                             {"reduce_scatter", "true", "false: all-reduce the bucket and scale it afterwards"},
                             {"contiguous_gradients", "true", "copy gradients into one buffer as they come"}};
    for (Knob& knob : own) all.push_back(std::move(knob));
    for (Knob& knob : meshKnobs())
        if (std::find(leftOut.begin(), leftOut.end(), knob.key) == leftOut.end()) all.push_back(std::move(knob));
    return all;
}

void zeroGradientNorm(StepWriter& step, BufferId gradients, std::int64_t elements) {
    if (!step.input().training.gradientClipping) {  // clipping computes it anyway
        step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::ClipGradients, "norm", elements * sizeOf(step.input().training.precision.parameter));
        if (gradients != kNoBuffer) step.program().use(gradients, UseKind::Read);
        for (const std::uint32_t axis : {step.axes().data, step.axes().tensor})
            if (axis != kNoAxis && step.schedule().axes[axis].size > 1)
                step.collective(kComputeStream, Phase::Optimizer, TaskRole::NormReduce, CollectiveOp::AllReduce, DType::Fp32, 1, axis);
    }
    step.hostWait(Phase::Optimizer, TaskRole::NormRead, std::array{step.lastCompute()});
}

namespace {

class ZeroStage12 final : public Strategy {
public:
    explicit ZeroStage12(int stage) : stage_(stage) {}

    std::string_view name() const override { return stage_ == 1 ? "zero1" : "zero2"; }
    std::string_view summary() const override {
        return stage_ == 1 ? "DeepSpeed ZeRO stage 1: each rank keeps the optimizer state of its share of the parameters."
                           : "DeepSpeed ZeRO stage 2: optimizer state and gradients are shared out; reduced in every micro-step.";
    }
    std::vector<Knob> knobs() const override {
        std::vector<std::string_view> leftOut{"ep", "etp", "moe_token_dispatcher"};
        if (stage_ == 2) leftOut.insert(leftOut.end(), {"pp", "pipeline_schedule", "virtual_stages", "pipeline_layout"});  // DeepSpeed refuses pipelines
        return zeroKnobs({{"overlap_comm", "false", "reduce on a stream of its own, with two buckets that alternate"},
                          {"use_multi_rank_bucket_allreduce", "true", "all-reduce the bucket and keep a slice; false: one reduce per owner"},
                          {"offload_optimizer", "none", "cpu: optimizer state and step on the host"}},
                         leftOut);
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        if (input.parallel.offloadOptimizer == "nvme")
            return badInput("strategy.offload_optimizer", fmt::format("DeepSpeed keeps optimizer state on NVMe only in stage 3, found {}; use cpu here, or zero3", name()));
        const TrainingConfig training = zeroTraining(input.training);
        const StrategyInput own{input.workload, input.model, input.cluster, training, input.parallel, input.step, input.mostMicroSteps, input.exactRanks};
        return writeStep(
            own, name(),
            [&](StepWriter& step) -> Result<void> {
                writeProgram(step, own);
                return {};
            },
            false);
    }

private:
    void writeProgram(StepWriter& step, const StrategyInput& input) const {
        const DType dtype = input.training.precision.parameter;
        step.declareState({.parameters = false, .optimizer = false, .gradientDtype = dtype});
        std::vector<std::int64_t> sizes;
        for (const ModelParameter& p : step.parameters()) {
            sizes.push_back(p.elements);
            step.program().program().setup.tensors.push_back(p.elements * sizeOf(dtype));  // flattened on the device, and then let go
        }
        const FlatPartition partition(sizes, step.syncRanks());
        const FlatLayouts layouts = addLayouts(step, partition);
        Buffer group{partition.padded() * sizeOf(dtype), MemoryCategory::Parameters, BufferRole::ParameterBucket, dtype, true, false, -1, 0};
        group.layout = layouts.whole;
        const BufferId flat = step.addBuffer(group);
        for (ModelParameter& p : step.parameters()) p.buffer = flat;
        OptimizerTarget owned{partition.share(), flat, kNoBuffer, -1, 0, true};
        owned.layout = layouts.shard;
        const std::array shard{owned};

        const bool offload = input.parallel.offloadOptimizer == "cpu";
        std::optional<HostOptimizer> host;
        if (offload) host.emplace(step, shard, HostOptimizer::Options{.accumulatesOnHost = stage_ == 2 && input.training.gradAccum > 1});
        else step.declareOptimizerState(shard);

        if (partition.ranks() == 1 && !offload) {  // nobody to reduce with
            StepHooks nothing;
            step.runPasses(nothing);
            updateOnDevice(step, shard.front(), kNoBuffer);
        } else {
            ZeroReducer reducer(step, input, stage_, partition, layouts.shard, host ? &*host : nullptr);
            step.runPasses(reducer);
            reducer.reduceAfterBackward(step);
            if (host) {
                zeroGradientNorm(step, kNoBuffer, partition.share());
                host->update(step);
            } else {
                updateOnDevice(step, shard.front(), reducer.gradientShard());
            }
        }
        if (partition.ranks() > 1) {
            // One all-gather per parameter group, before anything else may run.
            step.collective(kComputeStream, Phase::Optimizer, TaskRole::ParameterGather, CollectiveOp::AllGather, dtype, partition.padded(), step.axes().data);
            step.program().use(flat, UseKind::Write);
        }
        step.endStep();
    }

    struct FlatLayouts {
        std::int32_t whole = -1, shard = -1;
    };
    /// The flat group, and a rank's piece of it.
    static FlatLayouts addLayouts(StepWriter& step, const FlatPartition& partition) {
        ProgramWriter& program = step.program();
        std::vector<std::uint32_t> all(step.parameters().size());
        std::iota(all.begin(), all.end(), 0U);
        Layout layout = packed(all, program.program().parameters);
        layout.elements = partition.padded();
        FlatLayouts layouts;
        layouts.whole = program.addLayout(layout);
        layout.cut = Cut::Flat;
        layout.axis = step.axes().data;
        layouts.shard = program.addLayout(std::move(layout));
        return layouts;
    }

    /// The slice becomes the fp32 gradient of the flat fp32 parameter: for a moment both exist.
    static void updateOnDevice(StepWriter& step, OptimizerTarget shard, BufferId gradients) {
        ProgramWriter& program = step.program();
        const Precision& precision = step.input().training.precision;
        zeroGradientNorm(step, gradients, shard.elements);
        const DType wide = precision.masterWeights ? DType::Fp32 : precision.parameter;
        Buffer slice{shard.elements * sizeOf(wide), MemoryCategory::Gradients, BufferRole::GradientShard, wide, false, false, -1, 0};
        slice.layout = shard.layout;
        shard.gradient = step.addBuffer(slice);
        const BufferId flattened = step.addBuffer({shard.elements * sizeOf(precision.parameter), MemoryCategory::Workspace, BufferRole::Workspace, precision.parameter, false, false, -1, 0});
        step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::ShardCast, "cast", shard.elements * (sizeOf(precision.parameter) + sizeOf(wide)));
        program.use(flattened, UseKind::Allocate);  // the gradients in one piece, then that in fp32
        program.use(shard.gradient, UseKind::Allocate);
        if (gradients != kNoBuffer) program.use(gradients, UseKind::Read);
        else
            for (const ModelParameter& p : step.parameters()) program.use(p.gradient, UseKind::Read);
        program.use(shard.gradient, UseKind::Write);
        program.use(flattened, UseKind::Free);
        if (gradients != kNoBuffer) program.use(gradients, UseKind::Free);
        else
            for (std::uint32_t p = 0; p < step.parameters().size(); ++p) step.dropGradient(p);
        step.optimizerStep(std::span(&shard, 1), step.syncRanks() > 1 ? std::optional(step.axes().data) : std::nullopt);
        program.use(shard.gradient, UseKind::Free);
    }

    int stage_;
};

}  // namespace

std::unique_ptr<const Strategy> makeZero1() { return std::make_unique<ZeroStage12>(1); }
std::unique_ptr<const Strategy> makeZero2() { return std::make_unique<ZeroStage12>(2); }

}  // namespace ringside
