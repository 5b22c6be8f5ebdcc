// DeepSpeed ZeRO stage 3 (deepspeed/runtime/zero/stage3.py): parameters too are shared out, 1/N of each on every rank; a
// submodule's are gathered before it runs and let go after. With ZeRO-Offload, ZeRO-Infinity and ZeRO++.
// docs/models/zero.md tells the rules and their surprises.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "sim/strategy/zero.h"
#include "sim/strategy/zero3_gather.h"
#include "sim/strategy/zero3_reducer.h"

namespace ringside {
namespace {

/// Pinned buffers through which parameters on NVMe pass: offload_param.buffer_count × buffer_size elements.
constexpr std::int64_t kParameterSwapElements = 5 * 100'000'000LL;

/// Communicators within a node and between nodes, where the strategy needs them.
struct Zero3Axes {
    std::uint32_t secondary = kNoAxis;  // hpZ
    QuantisedReduceAxes quantised;      // qgZ
};

/// Submodules with parameters, in the order in which forward and backward of one micro-step come to them.
std::vector<Zero3Visit> visitsOf(const StepWriter& step) {
    const Workload& workload = step.workload();
    const LayerRange layers = step.part().chunks.front();
    std::vector<Zero3Visit> visits;
    const auto visit = [&](std::size_t layer, std::size_t op) {
        const std::vector<int>& locals = workload.typeOf(layer).ops[op].parameters;
        if (locals.empty()) return;
        Zero3Visit& next = visits.emplace_back();
        for (const int local : locals) next.parameters.push_back(step.parameterOf(layer, local));
        std::sort(next.parameters.begin(), next.parameters.end());
    };
    const auto forward = [&](std::size_t l) {
        for (std::size_t o = 0; o < workload.typeOf(l).ops.size(); ++o) visit(l, o);
    };
    for (std::size_t l = layers.begin; l < layers.end; ++l) forward(l);
    for (std::size_t l = layers.end; l-- > layers.begin;) {
        if (step.input().training.checkpointsBlocks() && workload.typeOf(l).isBlock) forward(l);
        for (std::size_t o = workload.typeOf(l).ops.size(); o-- > 0;) visit(l, o);
    }
    return visits;
}

/// The trace is invalid in the first pass of a training, recorded in the second and followed from the third on.
constexpr int kPassesWithoutTrace = 2;

/// What is gathered and released when, before there is a trace and with it.
struct PassPlans {
    std::vector<Zero3VisitPlan> untraced, traced;
};

/// DeepSpeed's module hooks.
class ModuleHooks final : public StepHooks {
public:
    ModuleHooks(std::vector<Zero3Visit> visits, PassPlans plans, Zero3Gatherer* gatherer, Zero3Reducer* reducer)
        : visits_(std::move(visits)), plans_(std::move(plans)), gatherer_(gatherer), reducer_(reducer) {}

    void beforeForwardPass(StepWriter& step, const Pass& pass) override {
        next_ = 0;
        const bool early = step.input().step == StepKind::First && pass.microStep < kPassesWithoutTrace;
        plan_ = early ? plans_.untraced : plans_.traced;
    }
    void beforeForwardOp(StepWriter& step, std::size_t layer, int op) override { before(step, layer, op, inBackward_ ? Phase::Recompute : Phase::Forward); }
    void afterForwardOp(StepWriter& step, std::size_t layer, int op) override { after(step, layer, op); }
    void beforeBackwardPass(StepWriter&, const Pass& pass) override {
        inBackward_ = true;
        reducer_->beginPass(pass);
    }
    void beforeBackwardOp(StepWriter& step, std::size_t layer, int op) override { before(step, layer, op, Phase::Backward); }
    void onGradientReady(StepWriter&, std::uint32_t p) override { ready_.push_back(p); }
    void afterBackwardOp(StepWriter& step, std::size_t layer, int op) override {
        after(step, layer, op);  // parameters go with the kernel that used them last, before anything else is written
        for (const std::uint32_t p : ready_) reducer_->add(step, p);
        ready_.clear();
    }
    void afterBackwardPass(StepWriter& step, const Pass&) override {
        inBackward_ = false;
        reducer_->finishPass(step);
    }

private:
    static bool hasParameters(const StepWriter& step, std::size_t layer, int op) {
        return !step.workload().typeOf(layer).ops[static_cast<std::size_t>(op)].parameters.empty();
    }
    void before(StepWriter& step, std::size_t layer, int op, Phase phase) {
        if (gatherer_ && hasParameters(step, layer, op)) gatherer_->fetch(step, visits_[next_], plan_[next_], phase);
    }
    void after(StepWriter& step, std::size_t layer, int op) {
        if (!gatherer_ || !hasParameters(step, layer, op)) return;
        gatherer_->release(step, plan_[next_]);
        ++next_;
    }

    std::vector<Zero3Visit> visits_;
    PassPlans plans_;
    std::span<const Zero3VisitPlan> plan_;  // of this pass
    Zero3Gatherer* gatherer_;
    Zero3Reducer* reducer_;
    std::vector<std::uint32_t> ready_;
    std::size_t next_ = 0;
    bool inBackward_ = false;
};

class ZeroStage3 final : public Strategy {
public:
    std::string_view name() const override { return "zero3"; }
    std::string_view summary() const override {
        return "DeepSpeed ZeRO stage 3: parameters, gradients and optimizer state are shared out; parameters are gathered module by module.";
    }
    std::vector<Knob> knobs() const override {
        return zeroKnobs({{"overlap_comm", "true", "reduce on a stream of its own"},
                          {"prefetch_bucket_size", "5e7", "elements gathered ahead, from the second step on"},
                          {"max_live_parameters", "1e9", "elements beyond which nothing is prefetched"},
                          {"max_reuse_distance", "1e9", "a parameter stays if it is used again within so many elements"},
                          {"param_persistence_threshold", "1e5", "parameters of at most so many elements are never let go"},
                          {"sub_group_size", "1e9", "elements of a rank's shards that are updated together"},
                          {"zero_init", "true", "zero.Init: the model is built shared out; false: whole on each device at first"},
                          {"offload_optimizer", "none", "cpu or nvme: where optimizer state is; the host then runs the step"},
                          {"offload_param", "none", "cpu or nvme: where shards of parameters are"},
                          {"zero_quantized_weights", "false", "ZeRO++ qwZ: gather int8"},
                          {"zero_hpz_partition_size", "1", "ZeRO++ hpZ: ranks that share a second copy, for gathers within the node"},
                          {"zero_quantized_gradients", "false", "ZeRO++ qgZ: reduce by all-to-all of 4 bits; on one node it changes nothing"}},
                         {"ep", "etp", "moe_token_dispatcher", "pp", "pipeline_schedule", "virtual_stages", "pipeline_layout"});
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        const TrainingConfig training = zeroTraining(input.training);
        const StrategyInput own{input.workload, input.model, input.cluster, training, input.parallel, input.step, input.mostMicroSteps, input.exactRanks};
        std::optional<Zero3Axes> axes;
        TRY(Schedule schedule, writeStep(
            own, name(),
            [&](StepWriter& step) -> Result<void> {
                if (!axes) {
                    TRY(axes, addAxes(step));
                }
                writeProgram(step, own, *axes);
                return {};
            },
            false));
        schedule.exact = axes->quantised.node == kNoAxis;
        return schedule;
    }

private:
    static Result<Zero3Axes> addAxes(StepWriter& step) {
        const ParallelConfig& config = step.input().parallel;
        const std::int64_t ranks = step.syncRanks(), stride = step.mesh().tp;
        std::vector<CommAxis>& all = step.schedule().axes;
        const auto add = [&](CommAxis axis) {
            all.push_back(std::move(axis));
            return static_cast<std::uint32_t>(all.size() - 1);
        };
        Zero3Axes axes;
        const std::int64_t partition = config.hpzPartitionSize;
        if (partition > 1 && ranks % partition != 0)
            return badInput("strategy.zero_hpz_partition_size", fmt::format("{} does not divide {} data-parallel ranks; use the devices of a node", partition, ranks));
        if (partition > 1) axes.secondary = add({"hpz", partition, stride});
        const std::int64_t inNode = step.input().cluster.nodes.front().kind.devices / stride;
        if (config.quantizedGradients && inNode > 0 && ranks > inNode && ranks % inNode == 0)
            axes.quantised = {add({"dp within node", inNode, stride}), add({"dp between nodes", ranks / inNode, stride * inNode})};
        return axes;
    }

    static Zero3Shards declareShards(StepWriter& step, const StrategyInput& input) {
        const DType dtype = input.training.precision.parameter;
        Zero3Shards shards;
        shards.ranks = step.syncRanks();
        shards.onStorage = input.parallel.offloadParam == "nvme";
        shards.onHost = shards.onStorage || input.parallel.offloadParam == "cpu";
        const std::int64_t most = std::llround(input.parallel.subGroupElements);
        std::vector<std::int64_t> groups;
        for (const ModelParameter& p : step.parameters()) {
            shards.elements.push_back((p.elements + shards.ranks - 1) / shards.ranks);
            if (groups.empty() || groups.back() >= most) groups.push_back(0);
            groups.back() += shards.elements.back();
            shards.group.push_back(static_cast<std::uint32_t>(groups.size() - 1));
        }
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const std::int64_t kept = shards.onStorage ? std::min(groups[g], kParameterSwapElements) : groups[g];
            Buffer buffer{kept * sizeOf(dtype), MemoryCategory::Parameters, BufferRole::Shard, dtype, true, false, -1, static_cast<std::int32_t>(g)};
            buffer.onHost = shards.onHost;
            std::vector<std::uint32_t> members;
            for (std::uint32_t p = 0; p < shards.group.size(); ++p)
                if (shards.group[p] == g) members.push_back(p);
            buffer.layout = addCutLayout(step, members, step.axes().data, false);
            shards.layouts.push_back(buffer.layout);
            shards.buffers.push_back(step.addBuffer(buffer));
        }
        return shards;
    }

    /// Small parameters are never let go; with one rank that holds its shard there is nothing to gather.
    static std::vector<bool> declarePersistent(StepWriter& step, const StrategyInput& input, const Zero3Shards& shards, bool gathers) {
        const DType dtype = input.training.precision.parameter;
        std::vector<bool> persistent;
        for (std::uint32_t i = 0; i < step.parameters().size(); ++i) {
            ModelParameter& p = step.parameters()[i];
            persistent.push_back(!gathers || static_cast<double>(p.elements) <= input.parallel.paramPersistenceThreshold);
            if (!gathers) p.buffer = shards.buffers[shards.group[i]];
            else if (persistent.back())
                p.buffer = step.addBuffer({p.elements * sizeOf(dtype), MemoryCategory::Parameters, BufferRole::Parameter, dtype, true, false, p.layer, p.index});
        }
        return persistent;
    }

    static void writeProgram(StepWriter& step, const StrategyInput& input, const Zero3Axes& axes) {
        const ParallelConfig& config = input.parallel;
        const DType dtype = input.training.precision.parameter;
        step.declareState({.parameters = false, .optimizer = false, .gradientDtype = dtype});
        const Zero3Shards shards = declareShards(step, input);
        const bool gathers = shards.ranks > 1 || shards.onHost;
        const std::vector<bool> persistent = declarePersistent(step, input, shards, gathers);
        if (!config.zeroInit) {  // zero.Init on a module: each parameter is cut in its turn; defragment() then moves the shards by way of the host and empties the cache
            SetupTensors& setup = step.program().program().setup;
            setup.shards = shards.ranks;
            setup.cacheEmptied = true;
            for (const ModelParameter& p : step.parameters()) setup.tensors.push_back(p.elements * sizeOf(dtype));
        }

        std::vector<OptimizerTarget> targets;
        for (std::size_t g = 0; g < shards.buffers.size(); ++g) {
            targets.push_back({0, shards.buffers[g], kNoBuffer, -1, static_cast<std::int32_t>(g), true});
            targets.back().layout = shards.layouts[g];
        }
        std::vector<std::int64_t> sizes;
        std::int64_t total = 0;
        for (std::size_t p = 0; p < shards.elements.size(); ++p) {
            targets[shards.group[p]].elements += shards.elements[p];
            total += shards.elements[p];
            sizes.push_back(step.parameters()[p].elements);
        }

        std::optional<HostOptimizer> host;
        BufferId gradients = kNoBuffer;
        if (config.offloadOptimizer != "none") {
            host.emplace(step, targets, HostOptimizer::Options{.nvme = config.offloadOptimizer == "nvme", .accumulatesOnHost = true, .roundTrip = true, .parametersOnHost = shards.onHost});
        } else {
            step.declareOptimizerState(targets);
            Buffer all{total * sizeOf(dtype), MemoryCategory::Gradients, BufferRole::GradientShard, dtype, true, false, -1, 0};
            std::vector<std::uint32_t> everyone(step.parameters().size());
            std::iota(everyone.begin(), everyone.end(), 0U);
            all.layout = targets.size() == 1 ? targets.front().layout : addCutLayout(step, everyone, step.axes().data, false);
            gradients = step.addBuffer(all);
        }
        std::vector<Zero3Visit> visits = visitsOf(step);
        PassPlans plans;
        std::optional<Zero3Gatherer> gatherer;
        if (gathers) {
            Zero3TraceOptions options{true, std::llround(config.prefetchBucketElements), std::llround(config.maxLiveParameters), std::llround(config.maxReuseDistance)};
            plans.traced = planZero3Pass(visits, sizes, persistent, options);
            options.traced = false;
            if (input.step == StepKind::First) plans.untraced = planZero3Pass(visits, sizes, persistent, options);
            gatherer.emplace(step, input, shards, persistent, visits, axes.secondary);
        }
        Zero3Reducer reducer(step, input, shards, gradients, host ? &*host : nullptr, axes.quantised);
        ModuleHooks hooks(std::move(visits), std::move(plans), gatherer ? &*gatherer : nullptr, &reducer);
        step.runPasses(hooks);

        zeroGradientNorm(step, gradients, total);
        if (host) host->update(step);
        else updateOnDevice(step, targets, gradients, shards.onHost);
        if (gatherer) {
            gatherer->storeShards(step);
            gatherer->regatherPersistent(step);
        }
        step.endStep();
    }

    /// Sub-group by sub-group: only one of them has its fp32 gradient at a time.
    static void updateOnDevice(StepWriter& step, std::span<OptimizerTarget> targets, BufferId gradients, bool parametersOnHost) {
        ProgramWriter& program = step.program();
        const Precision& precision = step.input().training.precision;
        const DType wide = precision.masterWeights ? DType::Fp32 : precision.parameter;
        for (OptimizerTarget& target : targets) {
            const auto part = static_cast<std::uint16_t>(target.index);
            const BufferId flat = step.addBuffer({target.elements * sizeOf(precision.parameter), MemoryCategory::Workspace, BufferRole::Workspace, precision.parameter, false, false, -1, target.index});
            Buffer main{target.elements * sizeOf(wide), MemoryCategory::Gradients, BufferRole::GradientShard, wide, false, false, -1, target.index};
            main.layout = target.layout;
            target.gradient = step.addBuffer(main);
            step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::ShardCast, "cast", target.elements * (sizeOf(precision.parameter) + sizeOf(wide)), -1, part);
            program.use(flat, UseKind::Allocate);  // the gradients in one piece, then that in fp32
            program.use(target.gradient, UseKind::Allocate);
            program.use(gradients, UseKind::Read);
            program.use(target.gradient, UseKind::Write);
            program.use(flat, UseKind::Free);
            const bool normed = target.index == 0 && step.syncRanks() > 1;
            const BufferId onHost = parametersOnHost ? target.parameter : kNoBuffer;
            if (parametersOnHost) {
                target.parameter = step.addBuffer({target.elements * sizeOf(precision.parameter), MemoryCategory::Workspace, BufferRole::Shard, precision.parameter, false, false, -1, target.index});
                program.use(target.parameter, UseKind::Allocate);
            }
            step.optimizerStep(std::span(&target, 1), normed ? std::optional(step.axes().data) : std::nullopt);
            program.use(target.gradient, UseKind::Free);
            if (!parametersOnHost) continue;
            step.copy(kComputeStream, Phase::Optimizer, TaskRole::OffloadToHost,
                      {CopyWork::Direction::DeviceToHost, target.elements * sizeOf(precision.parameter), devicesSharingUplink(step.input().cluster)}, part);
            program.use(target.parameter, UseKind::Read);
            program.use(onHost, UseKind::Write);
            program.use(target.parameter, UseKind::Free);
        }
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeZero3() { return std::make_unique<ZeroStage3>(); }

}  // namespace ringside
