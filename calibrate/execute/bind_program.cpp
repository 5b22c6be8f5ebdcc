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
        if (!schedule_.exact) return refuse("strategy", fmt::format("this schedule of '{}' stands for ranks that differ; it can be played but not run", schedule_.strategy));
        if (schedule_.steady.times > 1) return refuse("schedule", "micro-steps that stand for several cannot be run");
        for (const Buffer& buffer : program_.buffers)
            if (buffer.onHost) return refuse("strategy", fmt::format("'{}' with state on the host cannot be run for real yet", schedule_.strategy));
        return {};
    }

    /// Tasks from `t` on that belong to one op's pass, or to the optimizer; else one.
    std::size_t groupAt(std::size_t t) const {
        const Task& first = program_.tasks[t];
        if (first.kind != TaskKind::Kernel) return 1;
        std::size_t n = 1;
        if (first.role == TaskRole::OptimizerKernel) {
            while (t + n < program_.tasks.size() && program_.tasks[t + n].role == TaskRole::OptimizerKernel && program_.tasks[t + n].part == n) ++n;
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
                return bindMove(t);
            case TaskKind::Collective: return bindCollective(t);
            case TaskKind::Copy: return bindCopy(t);
            case TaskKind::HostWork: case TaskKind::HostSync: return {};
            case TaskKind::Push: case TaskKind::Pull:
                return failure(ErrorCode::MissingCapability, schedule_.strategy, "parameter servers cannot be run for real yet");
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

    double divisorOf(const Task& task) const {
        const double own = schedule_.kernels[task.work].divisor;
        return own > 0 ? own : static_cast<double>(schedule_.axes.front().size);
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
        const double alpha = divides ? 1 / divisorOf(task) : 1;
        std::vector<BufferUse> reads, writes;
        for (const BufferUse& use : program_.usesOf(task)) {
            if (use.kind == UseKind::Read) reads.push_back(use);
            if (use.kind == UseKind::Write) writes.push_back(use);
        }
        switch (verb) {
            case Verb::Move:
                for (const BufferUse& to : writes)
                    for (const BufferUse& from : reads) move(from, to, only, alpha);
                break;
            case Verb::Add:
                for (const BufferUse& to : writes)
                    for (const BufferUse& from : reads) {
                        if (from.buffer == to.buffer) continue;
                        for (const Overlap& overlap : contents_.meet(from, to, only))
                            addCall(KernelOp::Axpy, program_.buffers[to.buffer].dtype, element(from.buffer, overlap.from), element(to.buffer, overlap.to), overlap.count, alpha);
                    }
                break;
            case Verb::Scale:
                for (const BufferUse& to : writes) move(to, to, only, 1 / divisorOf(task));
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

    Result<void> bindCollective(std::size_t t) {
        const Task& task = program_.tasks[t];
        const CollectiveWork& work = schedule_.collectives[task.work];
        const CommAxis& axis = schedule_.axes[work.axis];
        std::vector<BufferUse> reads, writes;
        for (const BufferUse& use : program_.usesOf(task)) {
            if (use.kind == UseKind::Read) reads.push_back(use);
            if (use.kind == UseKind::Write) writes.push_back(use);
        }
        BoundCollective bound{work.op, work.dtype, work.axis, work.elements, {}, {}, work.root, work.sender, work.average};
        const bool shards = work.op == CollectiveOp::AllGather || work.op == CollectiveOp::ReduceScatter;
        if (shards) bound.elements = (work.elements + axis.size - 1) / axis.size;
        BoundTask& out = out_.tasks[t];
        out.firstCollective = static_cast<std::uint32_t>(out_.collectives.size());
        if (reads.empty() && writes.empty()) {
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
