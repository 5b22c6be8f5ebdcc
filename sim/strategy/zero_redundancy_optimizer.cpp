// ZeroRedundancyOptimizer (torch/distributed/optim/zero_redundancy_optimizer.py): DDP reduces all gradients on every rank as
// ever; each rank then updates the whole tensors that it owns and broadcasts them. Only optimizer state is saved.
// docs/models/zero.md tells the rules.
#include <algorithm>

#include "model/cost/optimizer_work.h"
#include "sim/strategy/cut_ranks.h"
#include "sim/strategy/ddp_reducer.h"
#include "sim/strategy/greedy_partition.h"

namespace ringside {
namespace {

/// Clipping and unscaling go over every gradient: each rank has them all.
void finishGradients(StepWriter& step, const TrainingConfig& training) {
    std::vector<std::int64_t> all;
    for (const ModelParameter& p : step.parameters()) all.push_back(p.elements);
    const auto add = [&](const std::vector<KernelWork>& kernels, TaskRole role) {
        std::uint16_t part = 0;
        for (const KernelWork& work : kernels) step.kernel(kComputeStream, Phase::Optimizer, role, work, -1, part++);
    };
    if (training.precision.lossScaling) {
        add(gradientUnscaling(training.precision, all), TaskRole::Unscale);
        const TaskId unscaled = step.lastCompute();
        step.hostWait(Phase::Optimizer, TaskRole::Unscale, {&unscaled, 1});
    }
    if (training.gradientClipping) add(gradientClipping(training.precision, all), TaskRole::ClipGradients);
}

void broadcastParameters(StepWriter& step, const std::vector<OwnedTensors>& owned, bool oneBucketPerRank) {
    const StreamId stream = step.program().addStream(StreamKind::Communication, "nccl parameters");
    const DType dtype = step.input().training.precision.parameter;
    const TaskId updated = step.lastCompute();
    std::uint16_t number = 0;
    CollectiveWork work{CollectiveOp::Broadcast, dtype, 0, step.axes().data};
    const auto broadcast = [&](std::span<const std::uint32_t> tensors) {
        work.elements = 0;
        for (const std::uint32_t p : tensors) work.elements += step.parameters()[p].elements;
        step.collective(stream, Phase::Optimizer, TaskRole::ParameterBroadcast, work, -1, number++);
        step.program().dependOn(updated);
        for (const std::uint32_t p : tensors) step.program().use(step.parameters()[p].buffer, UseKind::Write);
    };
    for (const OwnedTensors& rank : owned) {
        if (oneBucketPerRank) broadcast(rank.tensors);
        else
            for (const std::uint32_t p : rank.tensors) broadcast({&p, 1});
        ++work.root;
    }
}

class ZeroRedundancyOptimizer final : public Strategy {
public:
    std::string_view name() const override { return "zero-redundancy-optimizer"; }
    std::string_view summary() const override {
        return "PyTorch ZeroRedundancyOptimizer on DDP: each rank updates the tensors it owns and broadcasts them.";
    }
    std::vector<Knob> knobs() const override {
        std::vector<Knob> own = ddpReducerKnobs();
        own.push_back({"parameters_as_bucket_view", "false", "one broadcast per rank instead of one per tensor"});
        return withMesh(std::move(own));
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        if (input.parallel.spreadsExperts())
            return badInput("strategy.ep", "ZeroRedundancyOptimizer would give experts to ranks that do not hold them; use ddp or megatron");
        TRY_VOID(checkReducer(input));
        TrainingConfig training = input.training;
        training.gradientClipping = false;
        training.precision.lossScaling = false;
        const StrategyInput updating{input.workload, input.model, input.cluster, training, input.parallel, input.step, input.mostMicroSteps, input.exactRanks};
        std::function<void(std::vector<ProgramPart>&)> cut;
        if (input.exactRanks) cut = giveEachRankAProgram;
        TRY(Schedule schedule, writeStep(
            updating, name(),
            [&](StepWriter& step) -> Result<void> {
                step.declareState({.parameters = true, .optimizer = false, .gradientDtype = {}});
                std::vector<std::int64_t> sizes;
                for (const ModelParameter& p : step.parameters()) sizes.push_back(p.elements);
                const std::vector<OwnedTensors> owned = greedyPartition(sizes, step.syncRanks());
                const OwnedTensors mine = tensorsOf(step, owned);
                const auto targetsNow = [&] {
                    std::vector<OptimizerTarget> targets;
                    for (const std::uint32_t i : mine.tensors) {
                        const ModelParameter& p = step.parameters()[i];
                        targets.push_back({p.elements, p.buffer, p.gradient, p.layer, p.index, false});
                    }
                    return targets;
                };
                step.declareOptimizerState(targetsNow());
                if (step.syncRanks() > 1) {
                    DdpReducer reducer(step, input);
                    step.runPasses(reducer);
                } else {
                    StepHooks nothing;
                    step.runPasses(nothing);
                }
                finishGradients(step, input.training);
                if (!mine.tensors.empty()) step.optimizerStep(targetsNow());  // gradients may have moved into their buckets meanwhile
                if (step.syncRanks() > 1) broadcastParameters(step, owned, input.parallel.parametersAsBucketView);
                step.endStep();
                return {};
            },
            false, cut));
        schedule.exact = input.exactRanks || schedule.axes.front().size == 1;
        return schedule;
    }

private:
    /// All ranks wait for the one with most to update, so every rank is written as that one, unless it is to be exact.
    static OwnedTensors tensorsOf(const StepWriter& step, const std::vector<OwnedTensors>& owned) {
        if (!step.input().exactRanks)
            return *std::max_element(owned.begin(), owned.end(), [](const OwnedTensors& a, const OwnedTensors& b) { return a.elements < b.elements; });
        const auto position = static_cast<std::size_t>(step.schedule().axes[step.axes().data].positionOf(step.part().ranks.front().first));
        return position < owned.size() ? owned[position] : OwnedTensors{};
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeZeroRedundancyOptimizer() { return std::make_unique<ZeroRedundancyOptimizer>(); }

}  // namespace ringside
