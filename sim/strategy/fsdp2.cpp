// fully_shard (FSDP2) and its hybrid form (HSDP): every parameter is cut along its first dimension, units are gathered and
// reduced on streams that depend on each other alone: the host never waits. docs/models/fsdp.md tells the rules.
#include <fmt/format.h>

#include "sim/strategy/fsdp2_units.h"

namespace ringside {
namespace {

/// reshard_after_forward: not given, no, yes, or over how many ranks.
Result<void> readReshard(Fsdp2Options& options, StepWriter& step, const ShardGroups& groups) {
    const std::optional<std::int64_t> given = step.input().parallel.reshardAfterForward;
    if (!given) return {};  // every unit but the root
    options.reshard = options.reshardRoot = *given != 0;
    if (*given <= 1 || *given >= groups.shardRanks) return {};
    if (groups.shardRanks % *given != 0)
        return badInput("strategy.reshard_after_forward", fmt::format("{} ranks cannot be cut into groups of {}; give a number that divides {}", groups.shardRanks, *given, groups.shardRanks));
    if (step.input().parallel.spreadsExperts()) return badInput("strategy.reshard_after_forward", "cannot be a number of ranks together with ep; give true or false");
    options.reshardRanks = *given;
    options.reshardAxis = axisNamed(step.schedule(), {"reshard", *given, step.mesh().tp});
    return {};
}

Result<void> writeProgram(StepWriter& step, const StrategyInput& input, bool hybrid) {
    if (step.syncRanks() == 1) {  // nobody to shard with
        step.declareState();
        StepHooks nothing;
        step.runPasses(nothing);
        step.optimizerStep();
        step.endStep();
        return {};
    }
    const ParallelConfig& parallel = input.parallel;
    const FsdpTypes types = fsdpTypes(input.training, parallel);
    TRY(const ShardGroups groups, shardGroups(step, hybrid));
    Fsdp2Options options;
    options.forwardPrefetch = parallel.forwardPrefetch;
    options.noSync = parallel.noSync;
    options.keepInPipeline = step.mesh().pp > 1;
    options.offload = parallel.cpuOffload;
    options.overlap = parallel.overlapComm.value_or(true);
    TRY_VOID(readReshard(options, step, groups));

    StateOptions state;
    state.parameters = state.optimizer = false;
    // Whole gradients that wait for a later micro-step are kept in the type they will be reduced in.
    state.gradientDtype = parallel.noSync && input.training.gradAccum > 1 ? types.reduce : types.gather;
    state.optimizerPrecision = shardPrecision(input.training, types);
    step.declareState(state);
    TRY(FsdpUnits units, fsdpUnits(step, {false, step.input().parallel.spreadsExperts()}));
    ShardedUnits hooks(step, std::move(units), types, groups, options);
    step.declareOptimizerState(hooks.targets(step), options.offload);
    step.runPasses(hooks);
    if (options.offload) hostOptimizerStep(step, hooks.targets(step), *state.optimizerPrecision, groups.shardAxis);
    else step.optimizerStep(hooks.targets(step), groups.shardAxis);
    hooks.dropGradients(step);
    step.endStep();
    return {};
}

class Fsdp2 final : public Strategy {
public:
    explicit Fsdp2(bool hybrid) : hybrid_(hybrid) {}

    std::string_view name() const override { return hybrid_ ? "hsdp" : "fsdp2"; }
    std::string_view summary() const override {
        return hybrid_ ? "PyTorch fully_shard on a 2-D mesh: parameters are sharded within groups of ranks and replicated across them."
                       : "PyTorch fully_shard (FSDP2): each parameter is sharded by rows, gathered unit by unit, gradients reduce-scattered.";
    }
    std::vector<Knob> knobs() const override {
        std::vector<Knob> own;
        if (hybrid_) own.push_back({"shard_group", "0", "ranks that hold one copy between them; 0: a node"});
        for (Knob& knob : std::vector<Knob>{{"reshard_after_forward", "true, the root false", "false keeps units gathered until backward; a number reshards over so many ranks"},
                                            {"forward_prefetch", "0", "units gathered explicitly ahead of the current one's forward"},
                                            {"overlap_comm", "true", "false: a collective holds the rank that calls it and nothing is hidden, as in PyTorch on CPU tensors, which have no streams"},
                                            {"wrap", "block", "what becomes a unit: each block, modules by size, the layers of wrap_layers, or none (one unit)"},
                                            {"wrap_layers", "none", "names of layers, each a unit of its own"},
                                            {"min_wrap_elements", "1e8", "wrap by size: elements from which a module becomes a unit"},
                                            {"param_dtype", "by the precision", "parameters are gathered and computed with in this type, and kept in fp32"},
                                            {"reduce_dtype", "that of the gathered parameters", "gradients are reduced in this type"},
                                            {"cpu_offload", "false", "shards, their gradients and the optimizer live on the host"},
                                            {"no_sync", "true", "with gradient accumulation, reduce only in the last micro-step; whole gradients are kept until then"}})
            own.push_back(std::move(knob));
        return withMesh(std::move(own));
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        const ParallelConfig& parallel = input.parallel;
        if (parallel.pp > 1 && !input.workload->ties.empty())
            return badInput("strategy.pp", fmt::format("{} ties parameters of its first and last layer, which {} cannot shard across stages; use pp 1 or a model without tied embeddings",
                                                       input.workload->name, name()));
        if (hybrid_ && parallel.spreadsExperts()) return badInput("strategy.ep", "experts cannot be sharded within groups; use fsdp2, or ep 1");
        return writeStep(input, name(), [&](StepWriter& step) { return writeProgram(step, input, hybrid_); }, false);
    }

private:
    bool hybrid_;
};

}  // namespace

std::unique_ptr<const Strategy> makeFsdp2() { return std::make_unique<Fsdp2>(false); }
std::unique_ptr<const Strategy> makeHsdp() { return std::make_unique<Fsdp2>(true); }

}  // namespace ringside
