// StepWriter: the parts that every strategy's step is made of: the input copy, forward, backward with gradients, the
// optimizer, and the memory each of them holds. A strategy calls these and puts its own tasks between them.
//
// step_writer.cpp holds forward and backward, parameter_writer.cpp parameters, gradients and the optimizer.
// The backward pass tells a GradientListener when a parameter's gradient is complete: that is where DDP fills buckets and
// where the naive strategy reduces.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/schedule/program_writer.h"
#include "sim/strategy/layer_plan.h"
#include "sim/strategy/strategy.h"

namespace ringside {

class StepWriter;

class GradientListener {
public:
    virtual ~GradientListener() = default;
    /// The gradient of parameter `p` (index into StepWriter::parameters) is complete for this micro-step; the task written
    /// last completes it.
    virtual void onGradientReady(StepWriter& writer, std::uint32_t p) = 0;
};

/// A trainable tensor of the whole model; tied uses are not listed again.
struct ModelParameter {
    std::int32_t layer = 0;
    std::int32_t index = 0;       ///< in the layer
    std::int64_t elements = 0;
    BufferId buffer = 0;
    BufferId gradient = 0;        ///< where the gradient accumulates; a strategy may point it into a bucket
    bool ownsGradient = true;     ///< `gradient` is a buffer of its own (freed by zeroGradients)
    bool hasGradient = false;     ///< holds (part of) this step's gradient
    DType gradientDtype = DType::Fp32;  ///< of `gradient`
    bool zeroed = false;          ///< `gradient` is zeroed before the step: every contribution is added to it
    int uses = 1;                 ///< ops that contribute to the gradient in one backward
    int pendingUses = 0;
};

class StepWriter {
public:
    StepWriter(const StrategyInput& input, Schedule& schedule);

    const StrategyInput& input() const { return input_; }
    Schedule& schedule() { return schedule_; }
    ProgramWriter& program() { return writer_; }
    std::vector<ModelParameter>& parameters() { return parameters_; }
    /// Order in which backward completes gradients, as indices into parameters().
    std::vector<std::uint32_t> readyOrder() const;
    DType gradientDtype() const { return input_.training.precision.gradient; }

    void stepOverhead();
    void inputCopy(int microStep);
    void forward(int microStep);
    /// `listener` may be null (gradients only accumulate).
    void backward(int microStep, GradientListener* listener);
    /// Loss scaling, clipping and the optimizer's kernels over all parameters.
    void optimizerStep();
    /// zero_grad(set_to_none=True), and the host reading the loss (if the training loop does).
    void endStep();
    /// The host waits for what the compute stream has been given so far (`loss.item()`).
    void readLoss();

    /// A memory-bound kernel on `stream` that reads and writes `bytes` in all.
    TaskId memoryKernel(StreamId stream, Phase phase, TaskRole role, std::string_view name, Bytes bytes, std::int32_t layer = -1, std::uint16_t part = 0);
    TaskId collective(StreamId stream, Phase phase, TaskRole role, CollectiveOp op, DType dtype, std::int64_t elements, std::uint32_t axis,
                      std::int32_t layer = -1, std::uint16_t part = 0);
    /// Frees the gradient's own buffer now (with the task written last) and lets `target` hold the gradient from here on.
    void moveGradient(std::uint32_t p, BufferId target);
    /// From the start, gradients of `p` are added into `target`, which is zeroed before the step (main_grad).
    void keepGradientIn(std::uint32_t p, BufferId target, DType dtype);
    /// After the reduction: p.grad = main_grad.to(parameter type), where the types differ.
    void castGradientsToParameterType();
    BufferId addBuffer(const Buffer& buffer);
    /// The next task on the compute stream waits for these.
    void waitOnCompute(const std::vector<TaskId>& tasks) { pendingWaits_.insert(pendingWaits_.end(), tasks.begin(), tasks.end()); }
    /// The task written last on the compute stream.
    TaskId lastCompute() const { return lastCompute_; }
    void setMicroStep(int microStep) { microStep_ = static_cast<std::uint16_t>(microStep); }

private:
    void declareState();
    Bytes stateBytes(const ModelParameter& parameter) const;  ///< of the optimizer, the master copy apart
    void forwardLayer(std::size_t layer, bool save, Phase phase);
    void runForwardOps(std::size_t layer, int firstOp, int lastOp, bool save, Phase phase, bool release);
    void backwardLayer(std::size_t layer, GradientListener* listener);
    void contributeGradient(std::size_t layer, int parameter);
    void opTask(std::size_t layer, int op, std::size_t kernel, std::uint32_t work, Phase phase);
    TaskId addTask(Task task);
    void hostTask(TaskKind kind, Phase phase, TaskRole role);

    BufferId valueBuffer(std::size_t layer, int value);
    void hold(BufferId buffer) { ++references_[buffer]; }
    void release(BufferId buffer);  ///< frees it with the task written last when nobody holds it any more
    std::uint32_t internKernel(std::string_view name, Bytes bytes);

    const StrategyInput& input_;
    Schedule& schedule_;
    const Workload& workload_;
    RankProgram& rankProgram_;
    ProgramWriter writer_;
    std::vector<LayerPlan> plans_;                    // per layer type
    std::vector<std::vector<std::uint32_t>> forwardKernels_, backwardKernels_;  // per type: first kernel of each op
    std::vector<ModelParameter> parameters_;
    std::vector<std::vector<std::uint32_t>> parameterIndex_;  // per layer and local parameter → parameters_
    std::vector<std::uint32_t> valueOffset_;          // per layer, into the next three
    std::vector<BufferId> values_, gradients_;        // current buffer of each value / value gradient, or kNone
    std::vector<int> references_;                     // per buffer
    std::map<std::pair<Bytes, std::string_view>, std::uint32_t> interned_;
    std::vector<TaskId> pendingWaits_;
    std::vector<BufferId> fresh_;                     // gradients that the current op's first kernel allocates
    BufferId inputBuffer_ = 0;
    TaskId lastCompute_ = 0;
    std::uint16_t microStep_ = 0;
};

/// The single-program skeleton: streams, one class for each node kind, the data-parallel axis "dp" over all ranks.
Schedule makeSchedule(const StrategyInput& input, std::string_view strategy);

}  // namespace ringside
