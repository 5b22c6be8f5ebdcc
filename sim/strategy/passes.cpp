// StepWriter::runPasses: every micro-step of a program, alone or as a stage of a pipeline.
//
// Between stages, activations go forward and gradients back as sends on streams of their own: a stage computes while it
// sends, and waits only for what it receives. Sends and receives of one direction between two stages are in micro-batch order.
// As in Megatron, a plain pipeline posts a receive after the pass before it and the host waits for it (batch_p2p_sync); an
// interleaved one posts it a pass ahead and only the stream waits (overlap_p2p_comm).
#include <algorithm>
#include <array>
#include <utility>

#include "sim/strategy/pipeline_order.h"
#include "sim/strategy/step_writer.h"

namespace ringside {

class PipelineDriver {
public:
    PipelineDriver(StepWriter& step, StepHooks& hooks) : step_(step), hooks_(hooks), stages_(static_cast<int>(step.mesh_.pp)), stage_(static_cast<int>(step.part_.stage)) {}

    void run() {
        const int chunks = static_cast<int>(step_.part_.chunks.size());
        if (stages_ > 1) {
            ProgramWriter& program = step_.program();
            sendForward_ = program.addStream(StreamKind::Communication, "pp send activations");
            receiveForward_ = program.addStream(StreamKind::Communication, "pp receive activations");
            sendBackward_ = program.addStream(StreamKind::Communication, "pp send gradients");
            receiveBackward_ = program.addStream(StreamKind::Communication, "pp receive gradients");
        }
        std::vector<int> forwards(static_cast<std::size_t>(chunks)), backwards(static_cast<std::size_t>(chunks));
        const auto begin = [&](const PipelinePass& next) {
            int& done = (next.forward ? forwards : backwards)[static_cast<std::size_t>(next.chunk)];
            const Pass pass{next.microStep, static_cast<std::size_t>(next.chunk), done == 0, done + 1 == step_.microSteps_};
            ++done;
            step_.enterPass(pass);
            return pass;
        };
        const bool paired = step_.input_.parallel.overlapExpertExchange;
        const std::vector<PipelinePass> order = pipelineOrder(pipelineKindOf(step_.input_.parallel), stage_, stages_, chunks, step_.microSteps_, paired);
        // Where warm-up takes every forward, the first backward may wait for the last forward, here or through the other stages.
        const auto firstBackward = std::find_if(order.begin(), order.end(), [](const PipelinePass& next) { return !next.forward; });
        const bool steady = 2 * (firstBackward - order.begin()) < static_cast<std::ptrdiff_t>(order.size());
        const auto pairsAt = [&](std::size_t i) {
            if (!paired || i + 1 == order.size() || !order[i].forward || order[i + 1].forward) return false;
            return stages_ == 1 ? order[i].microStep != order[i + 1].microStep : steady;
        };
        for (std::size_t i = 0; i < order.size(); ++i) {
            const Pass pass = begin(order[i]);
            const TaskId begun = step_.hasCompute() ? step_.lastCompute() : kNoTask;
            if (pairsAt(i)) both(pass, begin(order[++i]));
            else if (order[i].forward) forward(pass);
            else backward(pass);
            passBefore_ = begun;
        }
        step_.flight_ = 0;
        step_.reducePartialGradients();
        reduceTiedEmbedding();
    }

private:
    int virtualStage(std::size_t chunk) const { return static_cast<int>(chunk) * stages_ + stage_; }
    bool isFirst(std::size_t chunk) const { return virtualStage(chunk) == 0; }
    bool isLast(std::size_t chunk) const { return virtualStage(chunk) + 1 == stages_ * static_cast<int>(step_.part_.chunks.size()); }

    const Value& outputOf(std::size_t layer) const {
        const LayerType& type = step_.workload_.typeOf(layer);
        return type.values[static_cast<std::size_t>(type.output)];
    }

    TaskId transfer(StreamId stream, Phase phase, TaskRole role, const Value& value, std::uint32_t axis, std::int32_t sender) {
        return step_.collective(stream, phase, role, CollectiveOp::SendRecv, value.dtype, elementCount(value.shape), axis, -1, 0, sender);
    }

    BufferId receive(StreamId stream, Phase phase, TaskRole role, BufferRole holds, const Value& value, std::uint32_t axis, std::int32_t sender, int microStep) {
        const BufferId buffer = step_.addBuffer({value.bytes(), holds == BufferRole::ReceivedActivation ? MemoryCategory::Activations : MemoryCategory::Workspace, holds,
                                                 value.dtype, false, false, -1, microStep});
        const TaskId task = transfer(stream, phase, role, value, axis, sender);
        const TaskId posted = interleaved_ ? passBefore_ : step_.hasCompute() ? step_.lastCompute() : kNoTask;
        if (posted != kNoTask) step_.program().dependOn(posted);
        step_.program().use(buffer, UseKind::Allocate);
        step_.program().use(buffer, UseKind::Write);
        step_.hold(buffer);
        step_.waitOnCompute(task);
        if (!interleaved_ && !step_.input_.parallel.capturesIteration()) step_.hostWait(phase, role, std::array{task});
        return buffer;
    }

    void forward(const Pass& pass) {
        startForward(pass);
        step_.forward(pass, hooks_);
        endForward(pass);
    }

    void backward(const Pass& pass) {
        startBackward(pass);
        step_.backward(pass, hooks_);
        endBackward(pass);
    }

    void both(const Pass& ahead, const Pass& behind) {
        step_.enterPass(ahead);
        startForward(ahead);
        std::vector<TaskId> waits = std::exchange(step_.pendingWaits_, {});
        step_.enterPass(behind);
        startBackward(behind);
        std::swap(waits, step_.pendingWaits_);
        step_.forwardBesideBackward(ahead, behind, std::move(waits), hooks_);
        step_.enterPass(ahead);
        endForward(ahead);
        step_.enterPass(behind);
        endBackward(behind);
    }

    void startForward(const Pass& pass) {
        const LayerRange layers = step_.part_.chunks[pass.chunk];
        if (isFirst(pass.chunk)) {
            step_.stepOverhead();
            step_.inputCopy(pass.microStep);
        } else {
            if (pass.chunk == 0) step_.stepOverhead();
            const std::uint32_t axis = stage_ > 0 ? step_.axes_.forward[static_cast<std::size_t>(stage_ - 1)] : step_.axes_.wrap;
            step_.received_[step_.flight_ * step_.part_.chunks.size() + pass.chunk] =
                receive(receiveForward_, Phase::Forward, TaskRole::ReceiveActivation, BufferRole::ReceivedActivation, outputOf(layers.begin - 1), axis, stage_ > 0 ? 0 : 1, pass.microStep);
        }
        hooks_.beforeForwardPass(step_, pass);
    }

    void endForward(const Pass& pass) {
        const LayerRange layers = step_.part_.chunks[pass.chunk];
        hooks_.afterForwardPass(step_, pass);
        if (isLast(pass.chunk)) return;
        const BufferId output = step_.valueBuffer(layers.end - 1, step_.workload_.typeOf(layers.end - 1).output);
        const bool wraps = stage_ + 1 == stages_;
        transfer(sendForward_, Phase::Forward, TaskRole::SendActivation, outputOf(layers.end - 1),
                 wraps ? step_.axes_.wrap : step_.axes_.forward[static_cast<std::size_t>(stage_)], wraps ? 1 : 0);
        step_.program().dependOn(step_.lastCompute());
        step_.program().use(output, UseKind::Read);
        step_.release(output);
    }

    void startBackward(const Pass& pass) {
        const LayerRange layers = step_.part_.chunks[pass.chunk];
        const std::size_t last = layers.end - 1;
        if (!isLast(pass.chunk)) {
            const bool wraps = stage_ + 1 == stages_;
            step_.gradients_[step_.valueOffset_[last] + static_cast<std::uint32_t>(step_.workload_.typeOf(last).output)] =
                receive(receiveBackward_, Phase::Backward, TaskRole::ReceiveGradient, BufferRole::ReceivedGradient, outputOf(last),
                        wraps ? step_.axes_.wrapBack : step_.axes_.backward[static_cast<std::size_t>(stage_)], wraps ? 0 : 1, pass.microStep);
        }
        hooks_.beforeBackwardPass(step_, pass);
    }

    void endBackward(const Pass& pass) {
        const LayerRange layers = step_.part_.chunks[pass.chunk];
        if (!isFirst(pass.chunk)) {
            const std::size_t before = layers.begin - 1;
            BufferId& gradient = step_.gradients_[step_.valueOffset_[before] + static_cast<std::uint32_t>(step_.workload_.typeOf(before).output)];
            const bool wraps = stage_ == 0;
            transfer(sendBackward_, Phase::Backward, TaskRole::SendGradient, outputOf(before), wraps ? step_.axes_.wrapBack : step_.axes_.backward[static_cast<std::size_t>(stage_ - 1)],
                     wraps ? 0 : 1);
            step_.program().dependOn(step_.lastCompute());
            step_.program().use(gradient, UseKind::Read);
            step_.release(gradient);
            gradient = kNoBuffer;
        }
        hooks_.afterBackwardPass(step_, pass);
    }

    /// The first and the last stage each hold the tied embedding and add up its gradient.
    void reduceTiedEmbedding() {
        if (stages_ == 1 || step_.workload_.ties.empty() || (stage_ != 0 && stage_ + 1 != stages_)) return;
        for (const TiedParameter& tie : step_.workload_.ties) {
            const bool first = stage_ == 0;
            const std::uint32_t p = step_.parameterOf(static_cast<std::size_t>(first ? tie.ownerLayer : tie.layer), first ? tie.ownerParameter : tie.parameter);
            const ModelParameter& parameter = step_.parameters_[p];
            if (!parameter.hasGradient) continue;
            step_.collective(kComputeStream, Phase::GradientSync, TaskRole::GradientReduce, CollectiveOp::AllReduce, parameter.gradientDtype, parameter.elements,
                             step_.axes_.tiedEmbedding, parameter.layer, static_cast<std::uint16_t>(parameter.index));
            step_.program().use(parameter.gradient, UseKind::Read);
            step_.program().use(parameter.gradient, UseKind::Write);
        }
    }

    StepWriter& step_;
    StepHooks& hooks_;
    int stages_, stage_;
    bool interleaved_ = pipelineKindOf(step_.input_.parallel) == PipelineKind::Interleaved;
    TaskId passBefore_ = kNoTask;  // the task written last before the previous pass
    StreamId sendForward_ = 0, receiveForward_ = 0, sendBackward_ = 0, receiveBackward_ = 0;
};

void StepWriter::runPasses(StepHooks& hooks) {
    if (mesh_.pp > 1 || input_.parallel.overlapExpertExchange) return PipelineDriver(*this, hooks).run();
    for (int m = 0; m < microSteps_; ++m) {
        const Pass pass{m, 0, m == 0, m + 1 == microSteps_};
        enterPass(pass);
        stepOverhead();
        inputCopy(m);
        hooks.beforeForwardPass(*this, pass);
        forward(pass, hooks);
        hooks.afterForwardPass(*this, pass);
        hooks.beforeBackwardPass(*this, pass);
        backward(pass, hooks);
        hooks.afterBackwardPass(*this, pass);
    }
    reducePartialGradients();
}

// Norms of a sequence-parallel model see part of the tokens: their gradients are summed over the tensor axis, in one piece.
void StepWriter::reducePartialGradients() {
    std::int64_t elements = 0;
    for (const ModelParameter& p : parameters_) elements += p.partialOverTensor ? p.elements : 0;
    if (elements == 0) return;
    collective(kComputeStream, Phase::GradientSync, TaskRole::ReplicatedGradientReduce, CollectiveOp::AllReduce, gradientDtype_, elements, axes_.tensor);
    for (const ModelParameter& p : parameters_)
        if (p.partialOverTensor && p.hasGradient) {
            writer_.use(p.gradient, UseKind::Read);
            writer_.use(p.gradient, UseKind::Write);
        }
}

}  // namespace ringside
