// StepWriter::backward, which can be left at an exchange of tokens and taken up again, and what that is for: a forward that runs beside it
// (Megatron's combined_1f1b). docs/models/experts.md
#include <utility>

#include "sim/strategy/step_writer.h"

namespace ringside {

bool StepWriter::exchangesTokens(const Op& op, bool forward) {
    for (const OpCollective& work : forward ? op.forwardCollectives : op.backwardCollectives)
        if (work.axis == MeshAxis::Expert) return true;
    return false;
}

void StepWriter::backward(const Pass& pass, StepHooks& hooks) {
    BackwardRun run = beginBackward(pass);
    advanceBackward(run, hooks, false);
}

StepWriter::BackwardRun StepWriter::beginBackward(const Pass& pass) {
    const LayerRange layers = part_.chunks[pass.chunk];
    for (ModelParameter& p : parameters_)
        if (static_cast<std::size_t>(p.layer) >= layers.begin && static_cast<std::size_t>(p.layer) < layers.end) p.pendingUses = p.uses;
    inputGradientTask_ = kNoTask;
    BackwardRun run;
    run.pass = pass;
    run.layer = layers.end - 1;
    if (layers.end == workload_.layers.size()) run.loss = valueBuffer(run.layer, workload_.typeOf(run.layer).output);
    return run;
}

void StepWriter::advanceBackward(BackwardRun& run, StepHooks& hooks, bool toExchange) {
    const LayerRange layers = part_.chunks[run.pass.chunk];
    while (!run.done) {
        const std::size_t l = run.layer;
        const LayerType& type = workload_.typeOf(l);
        if (run.op < 0) {
            hooks.beforeBackward(*this, l);
            if (input_.training.checkpointsBlocks() && type.isBlock) {
                if (input_.training.offloadActivations) restoreCheckpoint(l);
                // Run the block again from its input, keeping what backward needs, and drop the second copy of its output.
                hold(valueBuffer(l, 0));
                recomputeLayer(l, hooks);
                release(valueBuffer(l, 0));  // the checkpoint's hold; the saving ops hold it now where they need it
            }
            run.op = static_cast<int>(type.ops.size());
        }
        bool exchanges = false;
        while (run.op > 0 && !exchanges) {
            backwardOp(l, --run.op, hooks);
            exchanges = toExchange && exchangesTokens(type.ops[static_cast<std::size_t>(run.op)], false) &&
                        !(run.op > 0 && exchangesTokens(type.ops[static_cast<std::size_t>(run.op - 1)], false));
        }
        if (run.op == 0) {
            endBackwardLayer(l);
            hooks.afterBackward(*this, l);
            run.op = -1;
            run.done = l == layers.begin;
            if (!run.done) --run.layer;
            else if (run.loss != kNoBuffer) release(run.loss);
        }
        if (exchanges) return;
    }
}

void StepWriter::forwardBesideBackward(const Pass& forwardPass, const Pass& backwardPass, std::vector<TaskId> backwardWaits, StepHooks& hooks) {
    enterPass(backwardPass);
    BackwardRun run = beginBackward(backwardPass);
    run.waits = std::move(backwardWaits);
    enterPass(forwardPass);
    beside_ = &run;
    forwardPass_ = &forwardPass;
    besideHooks_ = &hooks;
    forward(forwardPass, hooks);
    beside_ = nullptr;
    enterPass(backwardPass);
    std::swap(pendingWaits_, run.waits);
    advanceBackward(run, hooks, false);
    waitOnCompute(run.waits);
}

void StepWriter::runBeside() {
    BackwardRun& run = *beside_;
    beside_ = nullptr;  // what it recomputes is a forward too
    std::swap(pendingWaits_, run.waits);
    enterPass(run.pass);
    advanceBackward(run, *besideHooks_, true);
    enterPass(*forwardPass_);
    std::swap(pendingWaits_, run.waits);
    beside_ = &run;
}

}  // namespace ringside
