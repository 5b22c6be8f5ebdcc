// FullyShardedDataParallel, the first one: a unit is one flat parameter, gathered before its forward and backward and reduced
// behind its backward, on streams that the host runs ahead of as far as the rate limiter lets it. docs/models/fsdp.md tells the
// rules and their surprises.
#include "sim/strategy/fsdp1_units.h"

namespace ringside {
namespace {

/// MixedPrecision(buffer_dtype): floating-point buffers are cast once and stay so.
void castModuleBuffers(StepWriter& step, DType dtype) {
    for (Buffer& buffer : step.program().program().buffers) {
        if (buffer.role != BufferRole::State) continue;
        buffer.bytes = 0;
        for (const StateTensor& state : step.workload().typeOf(static_cast<std::size_t>(buffer.layer)).buffers)
            buffer.bytes += elementCount(state.shape) * sizeOf(state.dtype == DType::Fp32 ? dtype : state.dtype);
    }
}

class Fsdp1 final : public Strategy {
public:
    std::string_view name() const override { return "fsdp1"; }
    std::string_view summary() const override {
        return "PyTorch FullyShardedDataParallel: flat parameters are gathered unit by unit, gradients reduce-scattered.";
    }
    std::vector<Knob> knobs() const override {
        return {{"sharding_strategy", "full_shard", "shard_grad_op keeps parameters gathered until backward; hybrid_shard(_zero2) shards within groups; no_shard all-reduces"},
                {"shard_group", "0", "hybrid: ranks that hold one copy between them; 0: a node"},
                {"wrap", "block", "what becomes a unit: each block, modules by size, the layers of wrap_layers, or none (one unit)"},
                {"wrap_layers", "none", "names of layers, each a unit of its own"},
                {"min_wrap_elements", "1e8", "wrap by size: elements from which a module becomes a unit"},
                {"backward_prefetch", "pre", "gather the next unit before the current one's backward, post: behind it, or none"},
                {"forward_prefetch", "0", "1: gather the next unit before the current one's forward is issued"},
                {"limit_all_gathers", "true", "the host waits so that at most two units are in flight"},
                {"use_orig_params", "true", "tensors of a unit are aligned to 16 bytes"},
                {"param_dtype", "by the precision", "parameters are gathered and computed with in this type, and kept in fp32"},
                {"reduce_dtype", "that of the gathered parameters", "gradients are reduced in this type"},
                {"buffer_dtype", "as the model has them", "module buffers are kept in this type"},
                {"keep_low_precision_grads", "false", "the optimizer reads gradients in reduce_dtype instead of fp32"},
                {"cpu_offload", "false", "shards, their gradients and the optimizer live on the host"},
                {"no_sync", "true", "with gradient accumulation, reduce only in the last micro-step; whole gradients are kept until then"}};
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        const ParallelConfig& parallel = input.parallel;
        if (parallel.cpuOffload && parallel.shardingStrategy == "no_shard")
            return badInput("strategy.cpu_offload", "needs shards, but sharding_strategy is no_shard; choose another one or leave cpu_offload out");
        if (parallel.cpuOffload && input.training.gradAccum > 1 && !parallel.noSync)
            return badInput("strategy.cpu_offload", "FSDP1 cannot accumulate gradients on the host; set no_sync to true or grad_accum to 1");
        return writeStep(input, name(), [&](StepWriter& step) { return writeProgram(step, input); }, false);
    }

private:
    static Result<void> writeProgram(StepWriter& step, const StrategyInput& input) {
        if (step.syncRanks() == 1) {  // FSDP1 falls back to no_shard, and there is nobody to reduce with
            step.declareState();
            StepHooks nothing;
            step.runPasses(nothing);
            step.optimizerStep();
            step.endStep();
            return {};
        }
        const FsdpTypes types = fsdpTypes(input.training, input.parallel);
        const Fsdp1Options options = fsdp1Options(input, types.gather);
        const Precision precision = shardPrecision(input.training, types);
        StateOptions state;
        state.parameters = state.optimizer = false;
        state.gradientDtype = types.gather;
        state.optimizerPrecision = precision;
        step.declareState(state);
        if (input.parallel.bufferDtype) castModuleBuffers(step, *input.parallel.bufferDtype);
        TRY(FsdpUnits units, fsdpUnits(step, {types.mixed(), false}));
        TRY(const ShardGroups groups, shardGroups(step, options.hybrid));
        FlatUnits hooks(step, std::move(units), types, groups, options);
        step.declareOptimizerState(hooks.targets(), options.offload);
        step.runPasses(hooks);
        const std::optional<std::uint32_t> normAxis = options.shards ? std::optional(groups.shardAxis) : std::nullopt;
        if (options.offload) hostOptimizerStep(step, hooks.targets(), precision, normAxis);
        else step.optimizerStep(hooks.targets(), normAxis);
        hooks.dropGradients(step);
        step.endStep();
        return {};
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeFsdp1() { return std::make_unique<Fsdp1>(); }

}  // namespace ringside
