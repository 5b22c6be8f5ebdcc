#include "calibrate/execute/bind_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "calibrate/execute/contents.h"
#include "calibrate/execute/optimizer_kernels.h"
#include "calibrate/execute/value_binding.h"
#include "model/base/check.h"

namespace ringside {
namespace {

/// What a task does to the parameters or gradients in the buffers it names.
enum class Verb : std::uint8_t { Move, Add, Scale, Zero, Nothing, Unknown };

Verb verbOf(TaskRole role) {
    switch (role) {
        case TaskRole::BucketCopyIn: case TaskRole::BucketCopyOut: case TaskRole::BucketCompress: case TaskRole::BucketDecompress: case TaskRole::BucketFlatten:
        case TaskRole::BucketSlice: case TaskRole::GradientCast: case TaskRole::UnshardCopyIn: case TaskRole::UnshardCopyOut: case TaskRole::ReduceCopyIn: case TaskRole::ShardCast:
        case TaskRole::FlattenParameters: case TaskRole::Replicate: case TaskRole::Reshard: return Verb::Move;
        case TaskRole::GradientAccumulate: case TaskRole::UnitAccumulate: case TaskRole::ShardAccumulate: case TaskRole::SumGradient: return Verb::Add;
        case TaskRole::GradientDivide: case TaskRole::BucketDivide: case TaskRole::UnitDivide: return Verb::Scale;
        case TaskRole::BucketZero: return Verb::Zero;
        // Only joins streams, or computes a number that nothing here depends on (the norm without clipping).
        case TaskRole::ClipGradients: case TaskRole::RingJoin: return Verb::Nothing;
        default: return Verb::Unknown;
    }
}

/// The task is about one parameter: its layer and part say which.
bool isOfOneParameter(TaskRole role) {
    return role == TaskRole::BucketCopyIn || role == TaskRole::BucketCopyOut || role == TaskRole::GradientCast || role == TaskRole::GradientAccumulate || role == TaskRole::GradientDivide;
}

class Binder {
public:
    Binder(const Schedule& schedule, std::size_t rankClass, std::int64_t rank, const TrainingConfig& training, const Hyperparameters& hyper)
        : schedule_(schedule), class_(schedule.classes[rankClass]), program_(schedule.programs[class_.program]), rank_(rank), training_(training), hyper_(hyper),
          contents_(schedule, program_, rank), values_(schedule, program_, contents_) {}

    Result<BoundProgram> bind() {
        TRY_VOID(checkScope());
        out_.tasks.resize(program_.tasks.size());
        for (std::size_t t = 0; t < program_.tasks.size();) {
            const std::size_t group = groupAt(t);
            TRY_VOID(bindGroup(t, group));
            t += group;
        }
        return std::move(out_);
    }

private:
    Result<void> checkScope() const {
        const auto refuse = [&](std::string_view place, std::string message) { return failure(ErrorCode::MissingCapability, std::string(place), std::move(message)); };
        if (training_.precision.name != "fp32") return refuse("training.precision", fmt::format("{} cannot be run for real yet; use fp32", training_.precision.name));
        if (training_.gradientClipping) return refuse("training.gradient_clipping", "cannot be run for real yet; leave it off");
        if (!training_.zeroGradSetToNone) return refuse("training.zero_grad_set_to_none", "gradients that are kept cannot be run for real yet; leave it on");
        if (training_.compiled) return refuse("training.compile", "compiled kernels cannot be run for real yet; leave it off");
        if (training_.optimizerInBackward) return refuse("training.optimizer_in_backward", "cannot be run for real yet; leave it off");
        if (training_.offloadActivations) return refuse("training.offload_activations", "cannot be run for real yet; leave it off");
        for (const CommAxis& axis : schedule_.axes)
            for (const std::string_view cut : {"tp", "pp", "cp", "ep"})
                if (axis.name == cut && axis.size > 1) return refuse(fmt::format("strategy.{}", cut), "a model that is cut over ranks cannot be run for real yet; leave it at 1");
        if (schedule_.addsInProducts) return refuse("strategy.transformer_impl", "products that add to gradients cannot be run for real yet; leave it at local");
        if (!schedule_.exact) return refuse("strategy", fmt::format("this schedule of '{}' stands for ranks that differ; it can be played but not run", schedule_.strategy));
        if (schedule_.steady.times > 1) return refuse("schedule", "micro-steps that stand for several cannot be run");
        const bool serverOnHost = schedule_.servers.count > 0 && schedule_.servers.placement == ServerPlacement::Host;
        for (const Buffer& buffer : program_.buffers)
            if (buffer.onHost && !serverOnHost) return refuse("strategy", fmt::format("'{}' with state on the host cannot be run for real yet", schedule_.strategy));
        return {};
    }

    /// Tasks from `t` on that belong to one op's pass, or to the optimizer; else one.
    std::size_t groupAt(std::size_t t) const {
        const Task& first = program_.tasks[t];
        if (first.kind != TaskKind::Kernel) return 1;
        std::size_t n = 1;
        if (first.role == TaskRole::OptimizerKernel) {
            // Parts count the kernels of one update of everything; where each key is updated by itself, part is the key.
            const auto belongs = [&](const Task& task) {
                return task.role == TaskRole::OptimizerKernel && task.layer == first.layer && task.part == (first.layer < 0 ? n : first.part);
            };
            while (t + n < program_.tasks.size() && belongs(program_.tasks[t + n])) ++n;
            return n;
        }
        if (first.role != TaskRole::Op) return 1;
        const Op& op = opOf(first);
        return first.phase == Phase::Backward ? op.backward.size() : op.forward.size();
    }

    const Op& opOf(const Task& task) const { return program_.workload->typeOf(static_cast<std::size_t>(task.layer)).ops[static_cast<std::size_t>(task.op)]; }

    Result<void> bindGroup(std::size_t t, std::size_t count) {
        const Task& task = program_.tasks[t];
        switch (task.kind) {
            case TaskKind::Kernel:
                if (task.role == TaskRole::Op) return bindOp(t, count);
                if (task.role == TaskRole::OptimizerKernel) return bindUpdate(t, count);
                if (task.role == TaskRole::OuterOptimizer) return bindOuterStep(t);
                if (task.role == TaskRole::Elastic) return bindElastic(t);
                if (task.role == TaskRole::ShardReduce) return bindPartSum(t);
                return bindMove(t);
            case TaskKind::Collective: return bindCollective(t);
            case TaskKind::Copy: return bindCopy(t);
            case TaskKind::HostWork: case TaskKind::HostSync: return {};
            case TaskKind::Push: return bindMessage(t, UseKind::Read);
            case TaskKind::Pull: return bindMessage(t, UseKind::Write);
        }
        return {};
    }

    std::span<const Task> tasks(std::size_t t, std::size_t count) const { return {program_.tasks.data() + t, count}; }

    Result<void> bindOp(std::size_t t, std::size_t count) {
        for (std::size_t i = 1; i < count; ++i) CHECK(t + i < program_.tasks.size() && program_.tasks[t + i].layer == program_.tasks[t].layer && program_.tasks[t + i].op == program_.tasks[t].op);
        const Task& task = program_.tasks[t];
        const bool backward = task.phase == Phase::Backward;
        const LayerType& type = program_.workload->typeOf(static_cast<std::size_t>(task.layer));
        const Op& op = opOf(task);
        TRY(OpOperands operands, backward ? values_.backward(tasks(t, count)) : values_.forward(tasks(t, count)));
        operands.lossScale = class_.weight / static_cast<double>(training_.gradAccum);
        for (std::size_t k = 0; k < count; ++k) {
            BoundTask& bound = out_.tasks[t + k];
            bound.firstCall = static_cast<std::uint32_t>(out_.calls.size());
            if (backward) TRY_VOID(bindBackwardKernel(type, op, k, operands, out_.calls, out_.scratch));
            else TRY_VOID(bindForwardKernel(type, op, k, operands, out_.calls, out_.scratch));
            bound.calls = static_cast<std::uint32_t>(out_.calls.size()) - bound.firstCall;
        }
        if (!backward && op.kind == OpKind::CrossEntropy && task.phase == Phase::Forward) {
            out_.losses.push_back(operands.outputs[0]);
            out_.lossTasks.push_back(static_cast<std::uint32_t>(t + count - 1));
        }
        return {};
    }

    Result<void> bindUpdate(std::size_t t, std::size_t count) {
        auto first = static_cast<std::uint32_t>(out_.calls.size());
        TRY(const std::vector<std::uint32_t> counts, bindOptimizer(schedule_, program_, tasks(t, count), contents_, training_.optimizer, hyper_, out_.calls, out_.scratch));
        for (std::size_t i = 0; i < count; ++i) {
            out_.tasks[t + i].firstCall = first;
            out_.tasks[t + i].calls = counts[i];
            first += counts[i];
        }
        return {};
    }

    /// Ranks that share what the buffer holds.
    std::int64_t ranksOf(const BufferUse& use) const {
        const std::int32_t index = use.layout >= 0 ? use.layout : program_.buffers[use.buffer].layout;
        return schedule_.axes[index >= 0 ? program_.layouts[static_cast<std::size_t>(index)].axis : 0].size;
    }

    /// By the task's own word, or the ranks over which what the buffer holds is averaged.
    double divisorOf(const Task& task, const BufferUse& use) const {
        const double own = schedule_.kernels[task.work].divisor;
        if (own > 0) return own;
        const std::int32_t index = use.layout >= 0 ? use.layout : program_.buffers[use.buffer].layout;
        const bool whole = index >= 0 && program_.layouts[static_cast<std::size_t>(index)].cut == Cut::Whole;
        return static_cast<double>(whole ? ranksOf(use) : schedule_.axes.front().size);
    }

    Operand element(BufferId buffer, std::int64_t at) const { return inBuffer(buffer, at * sizeOf(program_.buffers[buffer].dtype)); }

    void addCall(KernelOp op, DType dtype, Operand in, Operand out, std::int64_t elements, double scalar, std::int64_t second = 0) {
        BoundCall& call = out_.calls.emplace_back();
        call.call.op = op;
        call.call.dtype = dtype;
        call.call.dims = {elements, second};
        call.call.scalars = {scalar};
        call.in[0] = in;
        call.out[0] = out;
    }

    /// y = alpha·x over what both buffers hold.
    void move(const BufferUse& from, const BufferUse& to, std::optional<std::uint32_t> only, double alpha) {
        const DType source = program_.buffers[from.buffer].dtype, target = program_.buffers[to.buffer].dtype;
        for (const Overlap& overlap : contents_.meet(from, to, only)) {
            const Operand x = element(from.buffer, overlap.from), y = element(to.buffer, overlap.to);
            if (x == y && alpha == 1) continue;
            if (source != target) {
                addCall(KernelOp::Cast, target, x, y, overlap.count, 0, static_cast<std::int64_t>(source));
                if (alpha != 1) addCall(KernelOp::Scale, target, y, y, overlap.count, alpha);
            } else if (alpha != 1) addCall(KernelOp::Scale, target, x, y, overlap.count, alpha);
            else addCall(KernelOp::Copy, target, x, y, overlap.count, 0);
        }
    }

    Result<void> bindMove(std::size_t t) {
        const Task& task = program_.tasks[t];
        BoundTask& bound = out_.tasks[t];
        bound.firstCall = static_cast<std::uint32_t>(out_.calls.size());
        Verb verb = verbOf(task.role);
        if (verb == Verb::Add && schedule_.kernels[task.work].name == "copy") verb = Verb::Move;  // the first of several to be added
        if (verb == Verb::Unknown)
            return failure(ErrorCode::MissingCapability, schedule_.strategy, fmt::format("'{}' cannot be run for real; this strategy with these settings can only be predicted", taskName(schedule_, task)));
        std::optional<std::uint32_t> only;
        if (isOfOneParameter(task.role) && task.layer >= 0) only = contents_.parameterOf(task.layer, task.part);
        const bool divides = schedule_.kernels[task.work].name.find("divide") != std::string_view::npos;
        const std::vector<BufferUse> reads = usesOf(task, UseKind::Read), writes = usesOf(task, UseKind::Write);
        switch (verb) {
            case Verb::Move:
                for (const BufferUse& to : writes)
                    for (const BufferUse& from : reads) move(from, to, only, divides ? 1 / divisorOf(task, to) : 1);
                break;
            case Verb::Add:
                for (const BufferUse& to : writes)
                    for (const BufferUse& from : reads) {
                        if (from.buffer == to.buffer) continue;
                        for (const Overlap& overlap : contents_.meet(from, to, only))
                            addCall(KernelOp::Axpy, program_.buffers[to.buffer].dtype, element(from.buffer, overlap.from), element(to.buffer, overlap.to), overlap.count,
                                    divides ? 1 / divisorOf(task, to) : 1);
                    }
                break;
            case Verb::Scale:
                for (const BufferUse& to : writes) move(to, to, only, 1 / divisorOf(task, to));
                break;
            case Verb::Zero:
                for (const BufferUse& to : writes) {
                    const Buffer& buffer = program_.buffers[to.buffer];
                    addCall(KernelOp::Fill, buffer.dtype, {}, inBuffer(to.buffer), buffer.bytes / sizeOf(buffer.dtype), 0);
                }
                break;
            case Verb::Nothing: case Verb::Unknown: break;
        }
        bound.calls = static_cast<std::uint32_t>(out_.calls.size()) - bound.firstCall;
        return {};
    }

    std::vector<BufferUse> usesOf(const Task& task, UseKind kind) const {
        std::vector<BufferUse> out;
        for (const BufferUse& use : program_.usesOf(task))
            if (use.kind == kind) out.push_back(use);
        return out;
    }
    std::int64_t elementsOf(BufferId buffer) const { return program_.buffers[buffer].bytes / sizeOf(program_.buffers[buffer].dtype); }

    /// to += alpha·from over what both hold.
    void add(const BufferUse& from, const BufferUse& to, double alpha) {
        for (const Overlap& overlap : contents_.meet(from, to)) addCall(KernelOp::Axpy, DType::Fp32, element(from.buffer, overlap.from), element(to.buffer, overlap.to), overlap.count, alpha);
    }

    /// DiLoCo: δ = outer − inner; then Nesterov momentum on it: m = μ·m + δ, outer −= η·(δ + μ·m); then inner = outer.
    Result<void> bindOuterStep(std::size_t t) {
        const Task& task = program_.tasks[t];
        BoundTask& bound = out_.tasks[t];
        bound.firstCall = static_cast<std::uint32_t>(out_.calls.size());
        const std::vector<BufferUse> reads = usesOf(task, UseKind::Read), writes = usesOf(task, UseKind::Write);
        const std::string_view name = schedule_.kernels[task.work].name;
        if (name == "difference") {
            const BufferUse delta = writes.front();
            move(reads.front(), delta, {}, 1);
            for (std::size_t i = 1; i < reads.size(); ++i) add(reads[i], delta, -1);
        } else if (name == "nesterov") {
            const BufferUse delta = reads.front(), momentum = writes[0], outer = writes[1];
            move(momentum, momentum, {}, hyper_.outerMomentum);
            add(delta, momentum, 1);
            add(delta, outer, -hyper_.outerLearningRate);
            add(momentum, outer, -hyper_.outerLearningRate * hyper_.outerMomentum);
        } else {
            for (const BufferUse& parameter : writes) move(reads.front(), parameter, {}, 1);
        }
        bound.calls = static_cast<std::uint32_t>(out_.calls.size()) - bound.firstCall;
        return {};
    }

    /// EASGD: d = α(x − x̃), x −= d; or x̃ += Σd.
    Result<void> bindElastic(std::size_t t) {
        const Task& task = program_.tasks[t];
        BoundTask& bound = out_.tasks[t];
        bound.firstCall = static_cast<std::uint32_t>(out_.calls.size());
        const BufferUse read = usesOf(task, UseKind::Read).front();
        const std::vector<BufferUse> writes = usesOf(task, UseKind::Write);
        if (writes.size() == 1) {
            add(read, writes.front(), 1);
        } else {
            const BufferUse force = writes.front();
            for (std::size_t i = 1; i < writes.size(); ++i) move(writes[i], force, {}, 1);
            add(read, force, -1);
            move(force, force, {}, hyper_.elasticity / static_cast<double>(schedule_.world));
            for (std::size_t i = 1; i < writes.size(); ++i) add(force, writes[i], -1);
        }
        bound.calls = static_cast<std::uint32_t>(out_.calls.size()) - bound.firstCall;
        return {};
    }

    /// Every rank's gradients of this rank's part lie one after another: their mean goes to the first place.
    Result<void> bindPartSum(std::size_t t) {
        BoundTask& bound = out_.tasks[t];
        bound.firstCall = static_cast<std::uint32_t>(out_.calls.size());
        for (const BufferUse& use : usesOf(program_.tasks[t], UseKind::Write)) {
            const auto ranks = ranksOf(use);
            const std::int64_t part = elementsOf(use.buffer) / ranks;
            addCall(KernelOp::Scale, DType::Fp32, inBuffer(use.buffer), inBuffer(use.buffer), part, 1.0 / static_cast<double>(ranks));
            for (std::int64_t r = 1; r < ranks; ++r) addCall(KernelOp::Axpy, DType::Fp32, element(use.buffer, r * part), inBuffer(use.buffer), part, 1.0 / static_cast<double>(ranks));
        }
        bound.calls = static_cast<std::uint32_t>(out_.calls.size()) - bound.firstCall;
        return {};
    }

    /// The tensors of a key, one after another.
    Result<void> bindMessage(std::size_t t, UseKind kind) {
        BoundTask& bound = out_.tasks[t];
        bound.firstPiece = static_cast<std::uint32_t>(out_.pieces.size());
        for (const BufferUse& use : usesOf(program_.tasks[t], kind)) out_.pieces.push_back({inBuffer(use.buffer), elementsOf(use.buffer)});
        bound.pieces = static_cast<std::uint32_t>(out_.pieces.size()) - bound.firstPiece;
        return {};
    }

    Result<void> bindCopy(std::size_t t) {
        const Task& task = program_.tasks[t];
        if (task.role != TaskRole::InputCopy)
            return failure(ErrorCode::MissingCapability, schedule_.strategy, fmt::format("'{}' cannot be run for real; this strategy with these settings can only be predicted", taskName(schedule_, task)));
        for (const BufferUse& use : program_.usesOf(task))
            if (use.kind == UseKind::Write) {
                out_.tasks[t].input = inBuffer(use.buffer);
                values_.enterInput(task.microStep, use.buffer);
            }
        return {};
    }

    /// Where the shard begins that this rank hands over: `from` may hold those of other parameters too.
    Operand gathersFrom(const BufferUse& from, const BufferUse& to, std::int64_t place) {
        const std::vector<Overlap> own = contents_.meet(from, to);
        if (!own.empty()) return element(from.buffer, std::max<std::int64_t>(0, own.front().from - (own.front().to - place)));
        // Nothing of the parameter but padding: that may be anything. Or no layout says what is where: then it is all of it.
        return contents_.of(to).empty() ? inBuffer(from.buffer) : element(to.buffer, place);
    }

    /// DataParallel: the outputs of all ranks come together on rank 0, which has the loss of them all; its gradient goes back.
    void bindOutputs(std::size_t t, BoundCollective bound) {
        const Task& task = program_.tasks[t];
        const std::vector<BufferUse> writes = usesOf(task, UseKind::Write);
        const Workload& workload = *program_.workload;
        const bool hasLoss = workload.typeOf(workload.layers.size() - 1).ops.back().kind == OpKind::CrossEntropy;
        const std::size_t head = workload.layers.size() - (hasLoss ? 2 : 1);
        const int outputs = workload.typeOf(head).output;
        if (task.role == TaskRole::GatherOutput) {
            bound.in = values_.value(task.microStep, head, outputs);
            if (hasLoss) {
                bound.out = inBuffer(writes.front().buffer);
                values_.enterValue(task.microStep, head, outputs, writes.front().buffer);
                values_.takeLabelsFrom(inScratch(kLabelScratch));
                out_.labelsOfAll = true;
                out_.scratch[kLabelScratch] = schedule_.world * (workload.inputBytes - workload.typeOf(0).values[0].bytes());
            }
        } else if (hasLoss) {
            bound.in = bound.out = values_.gradient(head, outputs);  // rank 0's samples come first: they stay where they are
        } else {
            bound.out = inBuffer(writes.front().buffer);
            values_.enterGradient(task.microStep, head, outputs, writes.front().buffer);
        }
        out_.collectives.push_back(bound);
    }

    /// Tensors as one line in scratch, before or after the collective.
    void putInLine(std::span<const BufferUse> uses, std::uint32_t slot) {
        std::int64_t at = 0;
        for (const BufferUse& use : uses) {
            addCall(KernelOp::Copy, DType::Fp32, inBuffer(use.buffer), inScratch(slot, at * 4), elementsOf(use.buffer), 0);
            at += elementsOf(use.buffer);
        }
    }
    void takeFromLine(std::span<const BufferUse> uses, std::uint32_t slot) {
        std::int64_t at = 0;
        for (const BufferUse& use : uses) {
            addCall(KernelOp::Copy, DType::Fp32, inScratch(slot, at * 4), inBuffer(use.buffer), elementsOf(use.buffer), 0);
            at += elementsOf(use.buffer);
        }
    }

    Result<void> bindCollective(std::size_t t) {
        const std::size_t first = out_.calls.size();
        out_.tasks[t].firstCall = static_cast<std::uint32_t>(first);
        TRY_VOID(bindCollectiveAt(t));
        out_.tasks[t].calls = static_cast<std::uint32_t>(out_.calls.size() - first);
        return {};
    }

    void endCallsBefore(std::size_t t) { out_.tasks[t].callsBefore = static_cast<std::uint32_t>(out_.calls.size()) - out_.tasks[t].firstCall; }

    Result<void> bindCollectiveAt(std::size_t t) {
        const Task& task = program_.tasks[t];
        const CollectiveWork& work = schedule_.collectives[task.work];
        const CommAxis& axis = schedule_.axes[work.axis];
        const std::vector<BufferUse> reads = usesOf(task, UseKind::Read), writes = usesOf(task, UseKind::Write);
        BoundCollective bound{work.op, work.dtype, work.axis, work.elements, {}, {}, work.root, work.sender, work.average};
        const bool shards = work.op == CollectiveOp::AllGather || work.op == CollectiveOp::ReduceScatter;
        const bool parts = work.op == CollectiveOp::AllToAll || work.op == CollectiveOp::Gather || work.op == CollectiveOp::Scatter;
        if (shards || parts) bound.elements = (work.elements + axis.size - 1) / axis.size;
        BoundTask& out = out_.tasks[t];
        out.firstCollective = static_cast<std::uint32_t>(out_.collectives.size());
        if (task.role == TaskRole::GatherOutput || task.role == TaskRole::ScatterGradient) {
            bindOutputs(t, bound);
        } else if (work.op == CollectiveOp::AllToAll && writes.size() == 1) {
            out_.scratch[kPushScratch] = std::max(out_.scratch[kPushScratch], work.bytes());
            putInLine(reads, kPushScratch);
            endCallsBefore(t);
            bound.in = inScratch(kPushScratch);
            bound.out = inBuffer(writes.front().buffer);
            out_.collectives.push_back(bound);
        } else if (task.role == TaskRole::Pull) {
            out_.scratch[kPullScratch] = std::max(out_.scratch[kPullScratch], work.bytes());
            putInLine(writes, kPullScratch);
            endCallsBefore(t);
            bound.in = inScratch(kPullScratch, axis.positionOf(rank_) * bound.elements * sizeOf(work.dtype));
            bound.out = inScratch(kPullScratch);
            out_.collectives.push_back(bound);
            takeFromLine(writes, kPullScratch);
        } else if (task.role == TaskRole::ParameterAverage && writes.size() > 1) {
            bound.in = bound.out = inBuffer(writes.front().buffer);
            out_.collectives.push_back(bound);
            for (std::size_t i = 1; i < writes.size(); ++i) move(writes.front(), writes[i], {}, 1);
        } else if (reads.empty() && writes.empty()) {
            // A number or a bitmap that nothing here depends on: it travels all the same.
            out_.scratch[kMessageScratch] = std::max(out_.scratch[kMessageScratch], work.bytes() + sizeOf(work.dtype) * axis.size);
            bound.in = bound.out = inScratch(kMessageScratch);
            out_.collectives.push_back(bound);
        } else if (shards) {
            if (writes.size() != 1 || reads.size() > 1)
                return failure(ErrorCode::MissingCapability, schedule_.strategy, fmt::format("'{}' gathers from several buffers; it cannot be run for real yet", taskName(schedule_, task)));
            const Bytes mine = axis.positionOf(rank_) * bound.elements * sizeOf(work.dtype);
            const bool inPlace = reads.empty() || reads.front().buffer == writes.front().buffer;
            bound.in = inPlace ? inBuffer(writes.front().buffer, work.op == CollectiveOp::AllGather ? mine : 0) : inBuffer(reads.front().buffer);
            if (!inPlace && work.op == CollectiveOp::AllGather) bound.in = gathersFrom(reads.front(), writes.front(), mine / sizeOf(work.dtype));
            bound.out = inBuffer(writes.front().buffer, inPlace && work.op == CollectiveOp::ReduceScatter ? mine : 0);
            out_.collectives.push_back(bound);
        } else if (reads.size() == 1 && writes.size() == 1 && reads.front().buffer != writes.front().buffer) {
            move(reads.front(), writes.front(), {}, 1);
            endCallsBefore(t);
            bound.in = bound.out = inBuffer(writes.front().buffer);
            out_.collectives.push_back(bound);
        } else {
            // Several buffers are one line: of each the part that the collective is about, one after another, as a group call would.
            const std::vector<BufferUse>& all = writes.empty() ? reads : writes;
            std::int64_t at = 0;
            for (const BufferUse& use : all) {
                const Buffer& buffer = program_.buffers[use.buffer];
                const std::int64_t begin = contents_.beginOf(use), end = at + buffer.bytes / sizeOf(buffer.dtype) - begin;
                const std::int64_t from = std::max(work.first, at), to = std::min(work.first + work.elements, end);
                bound.elements = to - from;
                bound.in = bound.out = element(use.buffer, begin + from - at);
                if (from < to) out_.collectives.push_back(bound);
                at = end;
            }
        }
        out.collectives = static_cast<std::uint32_t>(out_.collectives.size()) - out.firstCollective;
        return {};
    }

    const Schedule& schedule_;
    const RankClass& class_;
    const RankProgram& program_;
    std::int64_t rank_;
    const TrainingConfig& training_;
    const Hyperparameters& hyper_;
    Contents contents_;
    ValueBinding values_;
    BoundProgram out_;
};

}  // namespace

Result<BoundProgram> bindProgram(const Schedule& schedule, std::size_t rankClass, std::int64_t rank, const TrainingConfig& training, const Hyperparameters& hyper) {
    return Binder(schedule, rankClass, rank, training, hyper).bind();
}

}  // namespace ringside
