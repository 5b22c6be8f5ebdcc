// torch.nn.DataParallel (nn/parallel/{data_parallel,replicate,_functions}.py): one process drives all devices of a node. Every
// forward broadcasts the whole model from device 0, outputs are gathered there, the loss is computed there for the whole
// batch, and when all of backward is done everywhere the gradients are reduced onto device 0, which alone has an optimizer.
// docs/models/data-parallel.md tells the rules and their surprises.
#include <algorithm>

#include <fmt/format.h>

#include "model/base/check.h"
#include "sim/strategy/buckets.h"
#include "sim/strategy/cut_ranks.h"
#include "sim/strategy/step_writer.h"

namespace ringside {
namespace {

/// broadcast_coalesced and reduce_add_coalesced: a chunk is closed before the tensor that would bring it to this size.
constexpr Bytes kChunkBytes = 10 * kMiB;

const Op& lossOf(const LayerType& head) {
    CHECK(!head.ops.empty() && head.ops.back().kind == OpKind::CrossEntropy);
    return head.ops.back();
}

/// The model as it ends with its outputs.
Workload withoutLoss(const Workload& whole) {
    Workload workload = whole;
    LayerType head = whole.typeOf(whole.layers.size() - 1);
    const int logits = lossOf(head).inputs.front();
    head.ops.pop_back();
    head.values.resize(static_cast<std::size_t>(logits) + 1);  // what follows them is the loss' own
    head.output = logits;
    workload.types.push_back(std::move(head));
    workload.layers.back().type = static_cast<int>(workload.types.size() - 1);
    return workload;
}

/// The same with the loss of `batch` (the model for the whole batch) as a layer of its own.
Workload withLossOf(const Workload& replica, const Workload& batch) {
    Workload workload = replica;
    const LayerType& head = batch.typeOf(batch.layers.size() - 1);
    Op loss = lossOf(head);
    const int logits = loss.inputs.front();
    for (std::vector<int>* list : {&loss.inputs, &loss.outputs, &loss.saves})
        for (int& value : *list) value -= logits;
    LayerType type;
    type.name = "loss";
    type.values.assign(head.values.begin() + logits, head.values.end());
    type.ops = {loss};
    type.output = head.output - logits;
    workload.types.push_back(std::move(type));
    workload.layers.push_back({static_cast<int>(workload.types.size() - 1), "loss"});
    return workload;
}

/// Parameters that travel together, and the memory that their copies take.
struct Chunk {
    std::vector<std::uint32_t> parameters;
    std::int64_t elements = 0;
    BufferId copies = kNoBuffer;   ///< replicas: the parameters
    BufferId flat = kNoBuffer;     ///< tensors put together for the wire; one tensor alone travels as it is
    BufferId sum = kNoBuffer;      ///< device 0: the reduced gradients
    std::int32_t layout = -1;      ///< of all of them
};

class Replica final : public StepHooks {
public:
    Replica(StepWriter& step, const Value& outputs, std::int64_t ranks, bool isFirst) : outputs_(outputs), ranks_(ranks), isFirst_(isFirst) {
        step.program().program().interpreterThreads = static_cast<int>(ranks);
        fillChunks(step);
        const Bytes bytes = outputs.bytes();
        if (isFirst) gathered_ = step.addBuffer({bytes * ranks, MemoryCategory::Activations, BufferRole::Value, outputs.dtype, false, false, head(step), outputsIndex(step)});
        else gradient_ = step.addBuffer({bytes, MemoryCategory::Workspace, BufferRole::ValueGradient, outputs.dtype, false, false, head(step), outputsIndex(step)});
    }

    void beforeForwardPass(StepWriter& step, const Pass&) override {
        for (std::size_t c = 0; c < chunks_.size(); ++c) {
            Chunk& chunk = chunks_[c];
            const DType dtype = step.input().training.precision.parameter;
            const auto part = static_cast<std::uint16_t>(c);
            const bool flattens = isFirst_ && chunk.flat != kNoBuffer;
            if (flattens) {
                step.memoryKernel(kComputeStream, Phase::Forward, TaskRole::FlattenParameters, "copy", 2 * chunk.elements * sizeOf(dtype), -1, part);
                step.program().use(chunk.flat, UseKind::Allocate);
                readParameters(step, chunk);
                step.program().use(chunk.flat, UseKind::Write);
            }
            step.collective(kComputeStream, Phase::Forward, TaskRole::Replicate, CollectiveOp::Broadcast, dtype, chunk.elements, step.axes().data, -1, part);
            if (flattens) {
                step.program().use(chunk.flat, UseKind::Read);
                step.program().use(chunk.flat, UseKind::Free);
            } else if (isFirst_) {
                readParameters(step, chunk);
            }
            if (isFirst_) continue;
            step.program().use(chunk.copies, UseKind::Allocate);
            step.program().use(chunk.copies, UseKind::Write);
        }
        if (const std::int64_t buffers = bufferElementCount(step.workload()); buffers > 0)
            step.collective(kComputeStream, Phase::Forward, TaskRole::BufferBroadcast, CollectiveOp::Broadcast, DType::Fp32, buffers, step.axes().data);
    }

    // Device 0 has the loss as a layer of its own, which begins with everybody's outputs.
    void beforeForward(StepWriter& step, std::size_t layer) override {
        if (isFirst_ && layer + 1 == step.workload().layers.size()) gather(step);
    }
    void afterForwardPass(StepWriter& step, const Pass&) override {
        if (!isFirst_) gather(step);
    }
    void afterBackward(StepWriter& step, std::size_t layer) override {
        if (isFirst_ && layer + 1 == step.workload().layers.size()) {
            scatterGradient(step);
            step.program().use(gathered_, UseKind::Free);
        }
        if (!isFirst_ && layer + 1 == step.workload().layers.size()) step.program().use(gradient_, UseKind::Free);
    }
    void beforeBackwardPass(StepWriter& step, const Pass&) override {
        if (isFirst_) return;
        scatterGradient(step);
        step.program().use(gradient_, UseKind::Allocate);
        step.program().use(gradient_, UseKind::Write);
    }

    // The broadcast is one node of the graph: its backward runs when every gradient of every replica is there.
    void afterBackwardPass(StepWriter& step, const Pass& pass) override {
        for (std::size_t c = 0; c < chunks_.size(); ++c) reduce(step, chunks_[c], static_cast<std::uint16_t>(c), pass.first);
        for (std::uint32_t p = 0; p < step.parameters().size(); ++p) step.dropGradient(p);
        if (!isFirst_)
            for (const Chunk& chunk : chunks_) step.program().use(chunk.copies, UseKind::Free);
    }

    /// Device 0: what the optimizer updates.
    std::vector<OptimizerTarget> targets(StepWriter& step) const {
        std::vector<OptimizerTarget> targets = step.wholeParameters();
        for (const Chunk& chunk : chunks_)
            for (const std::uint32_t p : chunk.parameters) targets[p].gradient = chunk.sum;
        return targets;
    }
    /// Device 0: zero_grad, with the task written last.
    void freeSums(StepWriter& step) const {
        for (const Chunk& chunk : chunks_) step.program().use(chunk.sum, UseKind::Free);
    }

private:
    std::int32_t head(StepWriter& step) const { return static_cast<std::int32_t>(step.workload().layers.size()) - (isFirst_ ? 2 : 1); }
    std::int32_t outputsIndex(StepWriter& step) const { return step.workload().typeOf(static_cast<std::size_t>(head(step))).output; }

    void fillChunks(StepWriter& step) {
        const DType parameter = step.input().training.precision.parameter, gradient = step.gradientDtype();
        std::vector<GradientSize> sizes;
        for (const ModelParameter& p : step.parameters()) sizes.push_back({p.elements, parameter, false});
        for (const GradientBucket& filled : fillPicotronBuckets(sizes, kChunkBytes - 1)) {
            Chunk chunk;
            chunk.parameters = filled;
            for (const std::uint32_t p : filled) chunk.elements += sizes[p].elements;
            const auto index = static_cast<std::int32_t>(chunks_.size());
            chunk.layout = step.program().addLayout(packed(filled, step.program().program().parameters));
            const auto add = [&](MemoryCategory category, DType dtype) {
                Buffer buffer{chunk.elements * sizeOf(dtype), category, BufferRole::Bucket, dtype, false, false, -1, index};
                buffer.layout = chunk.layout;
                return step.addBuffer(buffer);
            };
            if (filled.size() > 1) chunk.flat = add(MemoryCategory::Buckets, sizeOf(gradient) > sizeOf(parameter) ? gradient : parameter);
            if (isFirst_) {
                chunk.sum = add(MemoryCategory::Gradients, gradient);
            } else {
                chunk.copies = add(MemoryCategory::Parameters, parameter);
                for (const std::uint32_t p : filled) step.parameters()[p].buffer = chunk.copies;
            }
            chunks_.push_back(std::move(chunk));
        }
    }

    static void readParameters(StepWriter& step, const Chunk& chunk) {
        for (const std::uint32_t p : chunk.parameters) step.program().use(step.parameters()[p].buffer, UseKind::Read);
    }

    void gather(StepWriter& step) {
        step.collective(kComputeStream, Phase::Forward, TaskRole::GatherOutput, CollectiveOp::Gather, outputs_.dtype, elementCount(outputs_.shape) * ranks_, step.axes().data);
        if (!isFirst_) return;
        step.program().use(gathered_, UseKind::Allocate);
        step.program().use(gathered_, UseKind::Write);
    }

    void scatterGradient(StepWriter& step) {
        step.collective(kComputeStream, Phase::Backward, TaskRole::ScatterGradient, CollectiveOp::Scatter, outputs_.dtype, elementCount(outputs_.shape) * ranks_, step.axes().data);
    }

    void reduce(StepWriter& step, Chunk& chunk, std::uint16_t part, bool first) {
        const DType dtype = step.gradientDtype();
        const Bytes bytes = chunk.elements * sizeOf(dtype);
        ProgramWriter& program = step.program();
        const auto readGradients = [&] {
            for (const std::uint32_t p : chunk.parameters) program.use(step.parameters()[p].gradient, UseKind::Read);
        };
        if (chunk.flat != kNoBuffer) {
            step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::ReduceCopyIn, "copy", 2 * bytes, -1, part);
            program.use(chunk.flat, UseKind::Allocate);
            readGradients();
            program.use(chunk.flat, UseKind::Write);
        }
        step.collective(kComputeStream, Phase::GradientSync, TaskRole::SumGradient, CollectiveOp::Reduce, dtype, chunk.elements, step.axes().data, -1, part);
        if (chunk.flat != kNoBuffer) program.use(chunk.flat, UseKind::Read);
        else readGradients();
        // The result becomes .grad, or is added to it.
        Buffer addend{bytes, MemoryCategory::Workspace, BufferRole::Bucket, dtype, false, false, -1, part};
        addend.layout = chunk.layout;
        const BufferId result = !isFirst_ || first ? chunk.sum : step.addBuffer(addend);
        if (isFirst_) {
            program.use(result, UseKind::Allocate);
            program.use(result, UseKind::Write);
        }
        if (chunk.flat != kNoBuffer) program.use(chunk.flat, UseKind::Free);
        if (!isFirst_ || first) return;
        step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::ShardAccumulate, "add", 3 * bytes, -1, part);
        program.use(result, UseKind::Read);
        program.use(chunk.sum, UseKind::Write);
        program.use(result, UseKind::Free);
    }

    Value outputs_;
    std::int64_t ranks_;
    bool isFirst_;
    std::vector<Chunk> chunks_;
    BufferId gathered_ = kNoBuffer, gradient_ = kNoBuffer;
};

class DataParallel final : public Strategy {
public:
    std::string_view name() const override { return "dp"; }
    std::string_view summary() const override {
        return "PyTorch DataParallel: one process; the model is broadcast in each forward, outputs and gradients return to device 0.";
    }
    std::vector<Knob> knobs() const override { return {}; }

    Result<Schedule> write(const StrategyInput& input) const override {
        const std::int64_t ranks = input.cluster.deviceCount();
        if (input.cluster.nodeCount() > 1)
            return badInput("strategy", fmt::format("'dp' is one process and cannot leave its node, but the cluster has {} nodes; use 'ddp', or one node", input.cluster.nodeCount()));
        if (!input.training.rankBatches.empty())
            return badInput("training.rank_batches", "'dp' cuts the batch evenly by itself; leave rank_batches out, or use 'ddp'");
        if (input.training.loss == LossKernel::FusedLinear)
            return badInput("training.loss", "'dp' gathers the logits of all devices before the loss, and fused-linear never has them; use another loss, or 'ddp'");
        if (ranks == 1)
            return writeStep(input, name(), [](StepWriter& step) -> Result<void> {
                StepHooks nothing;
                step.runPasses(nothing);
                step.optimizerStep();
                step.endStep();
                return {};
            });
        TrainingConfig whole = input.training;
        whole.microBatch *= ranks;
        TRY(const Workload batch, buildWorkload(input.model, whole));
        const auto replica = std::make_shared<const Workload>(withoutLoss(*input.workload));
        const auto first = std::make_shared<const Workload>(withLossOf(*replica, batch));
        const LayerType& head = replica->typeOf(replica->layers.size() - 1);
        const Value outputs = head.values[static_cast<std::size_t>(head.output)];
        const auto cut = [&](std::vector<ProgramPart>& parts) {
            giveOwnPrograms(parts, 1);
            for (ProgramPart& part : parts) {
                part.workload = part.ranks.front().first == 0 ? first : replica;
                part.chunks = {{0, part.workload->layers.size()}};
            }
        };
        return writeStep(input, name(), [&](StepWriter& step) -> Result<void> {
            const bool isFirst = step.part().ranks.front().first == 0;
            step.declareState({isFirst, isFirst, {}, {}});
            Replica hooks(step, outputs, ranks, isFirst);
            step.runPasses(hooks);
            if (isFirst) {
                step.optimizerStep(hooks.targets(step));
                hooks.freeSums(step);
            }
            step.endStep();
            return {};
        }, false, cut);
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeDataParallel() { return std::make_unique<DataParallel>(); }

}  // namespace ringside
