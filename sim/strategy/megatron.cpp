// Megatron-LM's DistributedDataParallel and distributed optimizer (core/distributed, core/optimizer): gradients accumulate in
// one contiguous buffer; a bucket of it is reduce-scattered, each rank updates its even slice, and parameters are gathered
// bucket by bucket, after the step or while the next forward runs. docs/models/megatron.md tells the rules.
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/strategy/megatron_buckets.h"
#include "sim/strategy/step_writer.h"

namespace ringside {
namespace {

/// Where one bucket is sharded, and between which copies of the shard it is summed.
struct BucketAxes {
    std::uint32_t shard = 0, replica = kNoAxis;
    std::int64_t shardRanks = 1;
};

struct Bucket {
    std::vector<std::uint32_t> parameters;
    std::int64_t elements = 0;
    std::size_t chunk = 0;
    BucketAxes axes;
    BufferId gradients = kNoBuffer, mainGradients = kNoBuffer;  // as accumulated and sent; as the optimizer reads them
    BufferId values = kNoBuffer;                                // its parameters, with the distributed optimizer
    std::int32_t shard = -1, shardInPlace = -1;                 // layouts of this rank's slice: by itself, and within those
    std::size_t pending = 0;
    TaskId reduced = kNoTask, gather = kNoTask;
    bool gathered = false;

    bool isReduced() const { return axes.shardRanks > 1 || axes.replica != kNoAxis; }
};

class GradientBuffers final : public StepHooks {
public:
    GradientBuffers(StepWriter& step, const StrategyInput& input, std::uint32_t replicaAxis, std::uint32_t instanceAxis)
        : config_(input.parallel), gradientDtype_(config_.gradReduceInFp32 ? DType::Fp32 : input.training.precision.parameter),
          parameterDtype_(input.training.precision.parameter), gathersInForward_(config_.overlapParamGather && input.step == StepKind::Steady) {
        const std::int64_t ranks = step.syncRanks() / config_.optimizerInstances;
        const BucketAxes dense{instanceAxis, config_.optimizerInstances > 1 ? replicaAxis : kNoAxis, ranks};
        const BucketAxes expert{step.axes().expertData, kNoAxis, step.mesh().expertCopies()};
        if (step.syncRanks() > 1 && config_.overlapGradReduce) reduction_ = step.program().addStream(StreamKind::Communication, "nccl dp");
        if (config_.optimizerInstances > 1) replicas_ = step.program().addStream(StreamKind::Communication, "nccl between instances");
        bucketOf_.resize(step.parameters().size());
        for (std::size_t c = 0; c < step.part().chunks.size(); ++c)
            for (const bool experts : {false, true}) fill(step, c, experts, experts ? expert : dense);
    }

    /// optimizer.zero_grad: the buffer is set to zero, as every gradient is added to it.
    void zero(StepWriter& step) {
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            step.memoryKernel(kComputeStream, Phase::Forward, TaskRole::BucketZero, "zero", buckets_[b].elements * sizeOf(gradientDtype_), -1, static_cast<std::uint16_t>(b));
            step.program().use(buckets_[b].gradients, UseKind::Write);
        }
    }

    void beforeForwardPass(StepWriter&, const Pass& pass) override { gathering_ = gathersInForward_ && pass.first; }
    void beforeForwardOp(StepWriter& step, std::size_t layer, int op) override {
        if (!gathering_) return;
        for (const int local : step.workload().typeOf(layer).ops[static_cast<std::size_t>(op)].parameters) finishGather(step, bucketOf_[step.parameterOf(layer, local)]);
    }

    void beforeBackwardPass(StepWriter&, const Pass& pass) override {
        last_ = pass.last;
        if (!last_) return;
        for (Bucket& bucket : buckets_)
            if (bucket.chunk == pass.chunk) bucket.pending = bucket.parameters.size();
    }
    void onGradientReady(StepWriter& step, std::uint32_t p) override {
        if (!last_) return;
        const std::size_t b = bucketOf_[p];
        if (--buckets_[b].pending == 0 && config_.overlapGradReduce) reduce(step, b, reduction_);
    }
    void afterBackwardPass(StepWriter& step, const Pass& pass) override {
        if (!last_ || pass.chunk != 0) return;  // chunk 0 is the last to run backward
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            if (buckets_[b].reduced == kNoTask) reduce(step, b, config_.overlapGradReduce ? reduction_ : kComputeStream);
            if (buckets_[b].reduced != kNoTask) step.waitOnCompute(buckets_[b].reduced);
        }
    }

    /// What this rank updates: an even slice of each bucket, or with plain data parallelism every parameter.
    std::vector<OptimizerTarget> targets(StepWriter& step) const {
        std::vector<OptimizerTarget> targets;
        if (config_.distributedOptimizer) {
            for (std::size_t b = 0; b < buckets_.size(); ++b) {
                OptimizerTarget& target = targets.emplace_back();
                target = {updatedElements(buckets_[b]), buckets_[b].values, buckets_[b].mainGradients, -1, static_cast<std::int32_t>(b), true};
                target.layout = buckets_[b].shard;
                target.view = buckets_[b].shardInPlace;
            }
        } else {
            for (std::uint32_t p = 0; p < step.parameters().size(); ++p) {
                const ModelParameter& parameter = step.parameters()[p];
                targets.push_back({parameter.elements, parameter.buffer, buckets_[bucketOf_[p]].mainGradients, parameter.layer, parameter.index, false});
            }
        }
        return targets;
    }

    /// main_param.grad = model_param.main_grad.float(): a copy only where the buffer is not fp32 already.
    void castToFp32(StepWriter& step) {
        if (!castsGradients(step)) return;
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            Bucket& bucket = buckets_[b];
            const std::int64_t elements = updatedElements(bucket);
            Buffer main{elements * 4, MemoryCategory::Gradients, BufferRole::GradientShard, DType::Fp32, false, false, -1, static_cast<std::int32_t>(b)};
            main.layout = bucket.shard;
            bucket.mainGradients = step.addBuffer(main);
            step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::ShardCast, "cast", elements * (sizeOf(gradientDtype_) + 4), -1, static_cast<std::uint16_t>(b));
            step.program().use(bucket.mainGradients, UseKind::Allocate);
            step.program().use(bucket.gradients, UseKind::Read);
            step.program().use(bucket.mainGradients, UseKind::Write);
        }
    }
    void dropMainGradients(StepWriter& step) {
        if (castsGradients(step))
            for (const Bucket& bucket : buckets_) step.program().use(bucket.mainGradients, UseKind::Free);
    }

    /// After the step: every bucket before anything else runs, or only the one that the next forward needs first.
    void gatherAfterStep(StepWriter& step) {
        for (std::size_t b = buckets_.size(); b-- > 0;) {
            if (buckets_[b].axes.shardRanks == 1 || (config_.overlapParamGather && !isFirstInForward(b))) continue;
            startGather(step, b, config_.overlapParamGather ? gatherStream(step) : kComputeStream);
        }
    }

private:
    void fill(StepWriter& step, std::size_t chunk, bool experts, const BucketAxes& axes) {
        const LayerRange layers = step.part().chunks[chunk];
        std::vector<std::uint32_t> mine;
        std::vector<std::int64_t> sizes;
        for (std::uint32_t p = 0; p < step.parameters().size(); ++p) {
            const ModelParameter& parameter = step.parameters()[p];
            const auto layer = static_cast<std::size_t>(parameter.layer);
            if (parameter.expert != experts || layer < layers.begin || layer >= layers.end) continue;
            mine.push_back(p);
            sizes.push_back(parameter.elements);
        }
        // Small buckets serve overlap only, and overlap is worth it only where the reduction would be exposed: first stage, first chunk.
        MegatronFilling filling{0, config_.distributedOptimizer, axes.shardRanks, config_.padBuckets};
        if (config_.overlapGradReduce && step.part().stage == 0 && chunk == 0)
            filling.capElements = config_.bucketElements ? std::llround(*config_.bucketElements) : megatronBucketElements(step.syncRanks());
        for (const MegatronBucket& filled : fillMegatronBuckets(sizes, filling)) {
            const auto b = static_cast<std::int32_t>(buckets_.size());
            Bucket bucket;
            bucket.elements = filled.elements;
            bucket.chunk = chunk;
            bucket.axes = axes;
            const std::int32_t layout = addLayouts(step, bucket, filled, mine);
            const auto add = [&](MemoryCategory category, BufferRole role, DType dtype) {
                Buffer buffer{filled.elements * sizeOf(dtype), category, role, dtype, true, false, -1, b};
                buffer.layout = layout;
                return step.addBuffer(buffer);
            };
            bucket.gradients = add(MemoryCategory::Gradients, BufferRole::Bucket, gradientDtype_);
            if (config_.distributedOptimizer) bucket.values = add(MemoryCategory::Parameters, BufferRole::ParameterBucket, parameterDtype_);
            for (const std::uint32_t i : filled.parameters) {
                bucket.parameters.push_back(mine[i]);
                bucketOf_[mine[i]] = static_cast<std::uint32_t>(b);
                step.keepGradientIn(mine[i], bucket.gradients, gradientDtype_);
                if (config_.distributedOptimizer) step.parameters()[mine[i]].buffer = bucket.values;
            }
            bucket.mainGradients = bucket.gradients;
            buckets_.push_back(std::move(bucket));
        }
    }

    /// The bucket's, and with the distributed optimizer those of a rank's slice. Returns the former.
    std::int32_t addLayouts(StepWriter& step, Bucket& bucket, const MegatronBucket& filled, std::span<const std::uint32_t> parameters) const {
        ProgramWriter& program = step.program();
        Layout layout;
        layout.elements = filled.elements;
        for (std::size_t i = 0; i < filled.parameters.size(); ++i) layout.pieces.push_back({parameters[filled.parameters[i]], filled.offsets[i]});
        const std::int32_t whole = program.addLayout(layout);
        if (!config_.distributedOptimizer) return whole;
        layout.cut = Cut::Flat;
        layout.axis = bucket.axes.shard;
        bucket.shard = program.addLayout(layout);
        layout.inPlace = true;
        bucket.shardInPlace = program.addLayout(std::move(layout));
        return whole;
    }

    std::int64_t updatedElements(const Bucket& bucket) const { return config_.distributedOptimizer ? bucket.elements / bucket.axes.shardRanks : bucket.elements; }
    bool castsGradients(const StepWriter& step) const { return sizeOf(gradientDtype_) < 4 && step.input().training.precision.masterWeights; }
    /// The bucket that forward needs first: it is gathered right after the step, the others during the next forward.
    bool isFirstInForward(std::size_t b) const { return b == bucketOf_.front(); }

    void reduce(StepWriter& step, std::size_t b, StreamId stream) {
        Bucket& bucket = buckets_[b];
        if (!bucket.isReduced()) return;
        ProgramWriter& program = step.program();
        const auto part = static_cast<std::uint16_t>(b);
        const TaskId scaled = step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketDivide, "scale", 2 * bucket.elements * sizeOf(gradientDtype_), -1, part);
        program.use(bucket.gradients, UseKind::Write);
        if (!config_.distributedOptimizer || bucket.axes.shardRanks > 1) {
            bucket.reduced = step.collective(stream, Phase::GradientSync, TaskRole::BucketReduce,
                                             config_.distributedOptimizer ? CollectiveOp::ReduceScatter : CollectiveOp::AllReduce, gradientDtype_, bucket.elements, bucket.axes.shard, -1, part);
            program.dependOn(scaled);
            program.use(bucket.gradients, UseKind::Write);
        }
        if (bucket.axes.replica == kNoAxis) return;
        const TaskId before = bucket.reduced == kNoTask ? scaled : bucket.reduced;
        bucket.reduced = step.collective(replicas_, Phase::GradientSync, TaskRole::ReplicaReduce, CollectiveOp::AllReduce, gradientDtype_, bucket.elements / bucket.axes.shardRanks,
                                         bucket.axes.replica, -1, part);
        program.dependOn(before);
        program.use(bucket.gradients, UseKind::Write, bucket.shardInPlace);
    }

    StreamId gatherStream(StepWriter& step) {
        if (gather_ == 0) gather_ = step.program().addStream(StreamKind::Communication, "nccl parameters");
        return gather_;
    }

    void startGather(StepWriter& step, std::size_t b, StreamId stream) {
        Bucket& bucket = buckets_[b];
        bucket.gather = step.collective(stream, Phase::Optimizer, TaskRole::ParameterGather, CollectiveOp::AllGather, parameterDtype_, bucket.elements, bucket.axes.shard, -1,
                                        static_cast<std::uint16_t>(b));
        if (stream != kComputeStream && step.hasCompute()) step.program().dependOn(step.lastCompute());
        step.program().use(bucket.values, UseKind::Write);
    }

    /// A forward pre-hook: wait for the bucket of this module, then send the next one on its way (never more than one ahead).
    void finishGather(StepWriter& step, std::size_t b) {
        Bucket& bucket = buckets_[b];
        if (bucket.gathered) return;
        bucket.gathered = true;
        if (bucket.axes.shardRanks > 1 && !isFirstInForward(b)) {
            if (bucket.gather == kNoTask) startGather(step, b, gatherStream(step));
            step.waitOnCompute(bucket.gather);
        }
        if (b == 0) return;
        Bucket& next = buckets_[b - 1];
        if (next.axes.shardRanks > 1 && next.chunk == bucket.chunk && next.gather == kNoTask) startGather(step, b - 1, gatherStream(step));
    }

    const ParallelConfig& config_;
    DType gradientDtype_, parameterDtype_;
    bool gathersInForward_, gathering_ = false, last_ = false;
    StreamId reduction_ = kComputeStream, replicas_ = 0, gather_ = 0;
    std::vector<Bucket> buckets_;
    std::vector<std::uint32_t> bucketOf_;
};

Result<void> checkKnobs(const ParallelConfig& config, std::int64_t ranks) {
    const auto refuse = [](const char* key, std::string message) { return badInput(fmt::format("strategy.{}", key), std::move(message)); };
    if (config.overlapParamGather && !(config.distributedOptimizer && config.overlapGradReduce))
        return refuse("overlap_param_gather", "needs use_distributed_optimizer and overlap_grad_reduce; set both to true");
    if (config.tpCommOverlap && (config.tp == 1 || !config.sequenceParallel))
        return refuse("tp_comm_overlap", "there is nothing to overlap without tensor and sequence parallelism; set tp above 1 and sequence_parallel to true");
    if (config.optimizerInstances > 1 && !config.distributedOptimizer)
        return refuse("num_distributed_optimizer_instances", "needs use_distributed_optimizer; set it to true, or leave instances at 1");
    if (config.optimizerInstances > 1 && config.spreadsExperts())
        return refuse("num_distributed_optimizer_instances", "cannot be combined with ep here; use one instance or ep 1");
    if (config.overlapExpertExchange && config.ep == 1) return refuse("overlap_moe_expert_parallel_comm", "needs experts that are shared out; give ep, or leave it out");
    if (config.overlapExpertExchange && config.pp > 1 && config.pipelineSchedule != "interleaved")
        return refuse("overlap_moe_expert_parallel_comm", "needs an interleaved pipeline, as in Megatron: stages of one chunk would wait for each other; set pipeline_schedule to interleaved");
    if (config.capturesIteration() && config.cudaGraphScope.size() > 1) return refuse("cuda_graph_scope", "full_iteration is everything; name it alone");
    if (config.fusesExpertMlp && config.transformerImpl != "transformer_engine")
        return refuse("use_transformer_engine_op_fuser", "fuses the modules of Transformer Engine; set transformer_impl to transformer_engine, or leave it out");
    if (config.captures("moe") && !config.padExpertInputToCapacity)
        return refuse("cuda_graph_scope", "'moe' needs experts of fixed sizes; set moe_pad_expert_input_to_capacity, or capture moe_router only");
    if (ranks % config.optimizerInstances != 0)
        return refuse("num_distributed_optimizer_instances", fmt::format("{} instances do not divide {} data-parallel ranks; choose a divisor", config.optimizerInstances, ranks));
    return {};
}

class Megatron final : public Strategy {
public:
    std::string_view name() const override { return "megatron"; }
    std::string_view summary() const override {
        return "Megatron-LM: one gradient buffer, reduce-scattered; each rank updates its slice of the parameters and gathers the rest.";
    }
    std::vector<Knob> knobs() const override {
        return withMesh({{"use_distributed_optimizer", "true", "false: every rank updates everything, and buckets are all-reduced"},
                         {"overlap_grad_reduce", "false", "cut the buffer into buckets and reduce them while backward goes on"},
                         {"overlap_param_gather", "false", "gather parameters during the next forward, one bucket ahead"},
                         {"grad_reduce_in_fp32", "false", "gradients accumulate and travel in fp32"},
                         {"tp_comm_overlap", "false", "with tp and sequence_parallel: gathers and reduce-scatters go on beside the products next to them"},
                         {"overlap_moe_expert_parallel_comm", "false", "tokens travel to and from experts while another micro-batch is computed: each forward runs beside a backward"},
                         {"use_transformer_engine_op_fuser", "false", "with precision fp8: each product of all experts is one kernel, which activates and quantises as well (transformer_engine)"},
                         {"moe_pad_expert_input_to_capacity", "false", "experts take a fixed number of tokens, so that the host need not wait for the router (transformer_engine)"},
                         {"cuda_graph_scope", "nothing", "what is launched as one graph of kernels: attn, mlp, moe_router and moe_preprocess, or moe, of each layer; or full_iteration"},
                         {"transformer_impl", "local", "transformer_engine: q, k, v and gate, up are one product each; products add to the main gradients, of which placeholders stay in memory; the host issues those of every expert one by one"},
                         {"num_distributed_optimizer_instances", "1", "shard within each instance, and all-reduce between them"},
                         {"bucket_elements", "max(40e6, 1e6 per rank)", "elements per bucket, with overlap_grad_reduce"},
                         {"pad_buckets_for_high_nccl_busbw", "false", "buckets end at multiples of 65,536 elements"}});
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        const ParallelConfig& config = input.parallel;
        std::uint32_t instanceAxis = kNoAxis, replicaAxis = kNoAxis;
        return writeStep(
            input, name(),
            [&](StepWriter& step) -> Result<void> {
                TRY_VOID(checkKnobs(config, step.syncRanks()));
                if (config.overlapExpertExchange && input.training.checkpointsBlocks())
                    return badInput("strategy.overlap_moe_expert_parallel_comm", "cannot be combined with full recompute, as in Megatron; use selective or none");
                if (config.overlapExpertExchange && input.training.recomputes(RecomputeModule::Experts))
                    return badInput("training.recompute_modules", "'moe' cannot be combined with overlap_moe_expert_parallel_comm, as in Megatron; leave one of them out");
                if (config.tpCommOverlap && input.training.recompute == Recompute::Operators)
                    return badInput("training.recompute", "selective-op cannot be combined with tp_comm_overlap: a collective would wait for pieces of a product that does not run again; choose selective or full");
                if (config.fusesExpertMlp && input.training.precision.math != DType::Fp8)
                    return badInput("strategy.use_transformer_engine_op_fuser", fmt::format("needs precision fp8, found {}: its kernels of experts write eight bits", input.training.precision.name));
                if (config.fusesExpertMlp && input.training.recomputes(RecomputeModule::ExpertActivation))
                    return badInput("training.recompute_modules", "'moe_act' is part of the experts' products with use_transformer_engine_op_fuser, so that nothing can run again; leave one of them out");
                if (instanceAxis == kNoAxis) addInstanceAxes(step, instanceAxis, replicaAxis);
                step.declareState({.parameters = !config.distributedOptimizer, .optimizer = !config.distributedOptimizer, .gradientDtype = {}});
                GradientBuffers buffers(step, input, replicaAxis, instanceAxis);
                if (config.distributedOptimizer) step.declareOptimizerState(buffers.targets(step));
                if (config.transformerImpl == "transformer_engine") {
                    step.addGradientsInProducts();
                    keepPlaceholders(step);
                }
                if (config.tpCommOverlap) keepUserBuffers(step);
                buffers.zero(step);
                step.runPasses(buffers);
                buffers.castToFp32(step);
                // Ranks hold different slices, so that the norm is summed over them; without slices each has all of it.
                const bool sharded = config.distributedOptimizer && step.syncRanks() > 1;
                step.optimizerStep(buffers.targets(step), sharded ? std::optional(step.axes().data) : std::nullopt);
                buffers.dropMainGradients(step);
                if (sharded) buffers.gatherAfterStep(step);
                step.endStep();
                return {};
            },
            false);
    }

private:
    /// Transformer Engine adds weight gradients to main_grad inside the product and hands autograd a placeholder instead, which it keeps: one for
    /// each shape (module/base.py, get_dummy_wgrad). The head is Megatron's own module.
    static void keepPlaceholders(StepWriter& step) {
        const DType dtype = step.input().training.precision.parameter;
        std::set<Shape> seen;
        for (const ModelParameter& p : step.parameters()) {
            const LayerType& type = step.workload().typeOf(static_cast<std::size_t>(p.layer));
            const Shape& shape = type.parameters[static_cast<std::size_t>(p.index)].shape;
            if (!type.isBlock || shape.size() < 2 || !seen.insert(shape).second) continue;
            step.addBuffer({p.elements * sizeOf(dtype), MemoryCategory::Workspace, BufferRole::Workspace, dtype, true, false, p.layer, p.index});
        }
    }

    /// One buffer of the size of a gathered input for each product that a collective runs beside (Transformer Engine's initialize_ub): forward, and for
    /// the input's gradient, of all four layers of a block; and for the weight's of the two that are cut by columns.
    static void keepUserBuffers(StepWriter& step) {
        constexpr int kUserBuffers = 10;
        for (const LayerType& type : step.workload().types)
            for (const Op& op : type.ops) {
                if (op.kind != OpKind::SequenceGather || op.forwardPieces == 1) continue;
                const OpCollective& gathered = op.forwardCollectives.front();
                for (int i = 0; i < kUserBuffers; ++i) step.addBuffer({gathered.bytes(), MemoryCategory::Workspace, BufferRole::Workspace, gathered.dtype, true, false, -1, i});
                return;
            }
    }

    /// Consecutive data-parallel ranks share an instance.
    static void addInstanceAxes(StepWriter& step, std::uint32_t& instance, std::uint32_t& replica) {
        const std::int64_t instances = step.input().parallel.optimizerInstances;
        if (instances == 1) {
            instance = step.axes().data;
            return;
        }
        const std::int64_t ranks = step.syncRanks() / instances, stride = step.mesh().tp;
        std::vector<CommAxis>& axes = step.schedule().axes;
        instance = static_cast<std::uint32_t>(axes.size());
        axes.push_back({"dp within instance", ranks, stride});
        replica = static_cast<std::uint32_t>(axes.size());
        axes.push_back({"dp between instances", instances, stride * ranks});
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeMegatron() { return std::make_unique<Megatron>(); }

}  // namespace ringside
