// ValueBinding: which buffer holds which value, and which gradient, as a program's tasks go by: the executor's view of the order
// in which StepWriter writes a step.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "calibrate/execute/contents.h"
#include "calibrate/execute/op_kernels.h"
#include "model/base/result.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// Borrows everything.
class ValueBinding {
public:
    ValueBinding(const Schedule& schedule, const RankProgram& program, Contents& contents);

    /// The micro-batch was put here.
    void enterInput(int microStep, BufferId buffer) { inputs_[microStep] = buffer; }
    Operand labels(int microStep) const;
    /// Of all ranks' samples: from here on labels() is this place.
    void takeLabelsFrom(Operand place) { labels_ = place; }
    /// A tensor that a collective read or brought: the value (its gradient) is `buffer` from here on.
    Operand value(int microStep, std::size_t layer, int index) const { return valueOf(microStep, layer, index); }
    void enterValue(int microStep, std::size_t layer, int index, BufferId buffer) { values_[{microStep, layer, index}] = buffer; }
    Operand gradient(std::size_t layer, int index) const;
    void enterGradient(int microStep, std::size_t layer, int index, BufferId buffer);
    /// `group`: the tasks of one op, one after another.
    Result<OpOperands> forward(std::span<const Task> group);
    Result<OpOperands> backward(std::span<const Task> group);

private:
    using Slot = std::pair<std::size_t, int>;  // layer, value

    const Workload& workload() const { return *program_.workload; }
    Operand valueOf(int microStep, std::size_t layer, int value) const;
    Slot slotOf(std::size_t layer, int value) const;
    bool needsGradient(std::size_t layer, int value) const;
    Result<std::vector<Operand>> parametersOf(std::size_t layer, const Op& op, std::span<const BufferUse> uses, UseKind kind);
    /// Ops without kernels that lie between the op handled last and this one.
    void passOver(int microStep, std::size_t layer, int op);
    void passOn(std::size_t layer, const Op& op);
    void beginBackward(int microStep);

    const Schedule& schedule_;
    const RankProgram& program_;
    Contents& contents_;
    std::vector<std::vector<int>> producers_;  // per layer type: the op that writes each value, or −1
    std::map<int, BufferId> inputs_;           // per micro-step
    std::map<std::tuple<int, std::size_t, int>, BufferId> values_;  // micro-step, layer, value
    std::map<Slot, BufferId> gradients_;
    Operand labels_;                           // of all ranks, where this one has the loss
    int backwardStep_ = -1;                    // micro-step whose backward is under way, and the next op of it
    std::size_t nextLayer_ = 0;
    int nextOp_ = -1;
};

}  // namespace ringside
