// StepWriter: the parts that every strategy's step is made of: the input copy, forward, backward with gradients, the
// optimizer, and the memory each of them holds. A strategy calls these and puts its own tasks between them (StepHooks).
//
// step_writer.cpp holds forward and backward, parameter_writer.cpp parameters, gradients and the optimizer, task_writer.cpp single tasks.
//
//     return writeStep(input, name(), [&](StepWriter& step) {
//         MyHooks hooks(step);
//         step.runPasses(hooks);      // every micro-step, through the pipeline if there is one
//         step.optimizerStep();
//         step.endStep();
//     });
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/schedule/program_writer.h"
#include "sim/strategy/device_mesh.h"
#include "sim/strategy/layer_plan.h"
#include "sim/strategy/step_hooks.h"
#include "sim/strategy/strategy.h"

namespace ringside {

constexpr BufferId kNoBuffer = 0xffffffffU;

/// A trainable tensor of the program's part of the model; tied uses are not listed again.
struct ModelParameter {
    std::int32_t layer = 0;
    std::int32_t index = 0;       ///< in the layer
    std::int64_t elements = 0;
    BufferId buffer = kNoBuffer;  ///< what ops read; a strategy that shards points it at the gathered buffer while there is one
    BufferId gradient = kNoBuffer;  ///< where the gradient accumulates; a strategy may point it into a bucket
    bool ownsGradient = true;     ///< `gradient` is a buffer of its own (freed by endStep or dropGradient)
    bool hasGradient = false;     ///< holds (part of) this step's gradient
    DType gradientDtype = DType::Fp32;  ///< of `gradient`
    bool zeroed = false;          ///< `gradient` is zeroed before the step: every contribution is added to it
    bool expert = false;          ///< its gradient is averaged over the ranks that hold the same experts
    bool partialOverTensor = false;  ///< each tensor-parallel rank has part of its gradient: to be summed over them
    int uses = 1;                 ///< ops that contribute to the gradient in one backward
    int pendingUses = 0;
};

/// What the writer declares by itself before the step. A strategy that shards declares the rest.
struct StateOptions {
    bool parameters = true;   ///< a persistent buffer per parameter
    bool optimizer = true;    ///< fp32 masters and the optimizer's state, per parameter
    std::optional<DType> gradientDtype = {};  ///< of .grad; empty: the precision's
    std::optional<Precision> optimizerPrecision = {};  ///< of what the optimizer updates, where that is shards; empty: the training's
};

/// What the optimizer updates: a parameter, or this rank's shard of some.
struct OptimizerTarget {
    std::int64_t elements = 0;
    BufferId parameter = kNoBuffer, gradient = kNoBuffer;
    std::int32_t layer = -1, index = 0;  ///< for the name of its state
    bool flat = false;                   ///< a shard: a flat piece of memory, not a tensor of its own shape
    std::int64_t rows = 0;               ///< a shard of whole rows: so many; 0: all of them
    std::int32_t layout = -1;            ///< of a shard: what it holds (Buffer::layout)
    std::int32_t view = -1;              ///< of one that shares `parameter` and `gradient` with others: its part of them (BufferUse::layout)
};

class StepWriter {
public:
    StepWriter(const StrategyInput& input, Schedule& schedule, std::uint32_t program, const ProgramPart& part, const DeviceMesh& mesh, const MeshAxes& axes);

    const StrategyInput& input() const { return input_; }
    const Workload& workload() const { return workload_; }
    const ProgramPart& part() const { return part_; }
    const DeviceMesh& mesh() const { return mesh_; }
    const MeshAxes& axes() const { return axes_; }
    Schedule& schedule() { return schedule_; }
    const Schedule& schedule() const { return schedule_; }
    ProgramWriter& program() { return writer_; }
    std::vector<ModelParameter>& parameters() { return parameters_; }
    /// Ranks that average gradients with this one: 1 means that there is nothing to communicate.
    std::int64_t syncRanks() const { return mesh_.syncRanks(); }
    /// Index into parameters() of parameter `local` of `layer` (of its owner, where it is tied). REQUIRES: the layer is in this part.
    std::uint32_t parameterOf(std::size_t layer, int local) const { return parameterIndex_[layer][static_cast<std::size_t>(local)]; }
    /// Order in which backward completes gradients, as indices into parameters().
    std::vector<std::uint32_t> readyOrder() const;
    DType gradientDtype() const { return gradientDtype_; }
    /// Micro-steps that are written (Schedule::steady says which one stands for several).
    int microSteps() const { return microSteps_; }

    /// Must be called once, before anything else is written. runPasses and the like rely on it.
    void declareState(const StateOptions& options = {});

    /// Every micro-step: forward and backward, in the pipeline's order if there is one, with the input's copy and what goes
    /// between stages.
    void runPasses(StepHooks& hooks);

    void stepOverhead();
    void inputCopy(int microStep);
    void forward(const Pass& pass, StepHooks& hooks);
    void backward(const Pass& pass, StepHooks& hooks);
    /// Both, of different micro-batches or chunks: whenever one waits for tokens on their way to or from experts, the other goes on. The compute stream
    /// waits for `backwardWaits` before backward begins.
    void forwardBesideBackward(const Pass& forwardPass, const Pass& backwardPass, std::vector<TaskId> backwardWaits, StepHooks& hooks);
    /// Loss scaling, clipping and the optimizer's kernels over all parameters.
    void optimizerStep();
    /// The same over shards. `normAxis`: the gradient norm is summed over this axis before clipping.
    void optimizerStep(std::span<const OptimizerTarget> targets, std::optional<std::uint32_t> normAxis = {});
    /// What precedes the optimizer's kernels in optimizerStep: loss scaling and clipping.
    void finishGradients(std::span<const OptimizerTarget> targets, std::optional<std::uint32_t> normAxis = {});
    /// In step 1, the optimizer's state comes into being with the task written last.
    void allocateOptimizerState(std::span<const OptimizerTarget> targets);
    /// The optimizer's task written last reads the targets' gradients and writes their parameters and state.
    void useTargets(std::span<const OptimizerTarget> targets);
    /// Every parameter of this part, with its gradient.
    std::vector<OptimizerTarget> wholeParameters() const;
    /// Declares the optimizer's persistent state (master copies too) of the targets; REQUIRES: StateOptions::optimizer was false.
    void declareOptimizerState(std::span<const OptimizerTarget> targets, bool onHost = false);
    /// As optimizerStep, for one parameter whose gradient is complete; the gradient goes. REQUIRES: no clipping, no loss scaling.
    void optimizerStepOf(std::uint32_t p);
    /// zero_grad, and the host reading the loss (if the training loop does).
    void endStep();
    /// The host waits for what the compute stream has been given so far (`loss.item()`).
    void readLoss();
    /// The host waits for these tasks.
    TaskId hostWait(Phase phase, TaskRole role, std::span<const TaskId> tasks, std::uint16_t part = 0);
    /// Work of the host's processor, memory or storage, on the host thread or on `stream`.
    TaskId hostWork(StreamId stream, Phase phase, TaskRole role, const HostWork& work, std::uint16_t part = 0);

    /// A memory-bound kernel on `stream` that reads and writes `bytes` in all. `divisor`: KernelWork::divisor.
    TaskId memoryKernel(StreamId stream, Phase phase, TaskRole role, std::string_view name, Bytes bytes, std::int32_t layer = -1, std::uint16_t part = 0, double divisor = 0);
    /// Any kernel.
    TaskId kernel(StreamId stream, Phase phase, TaskRole role, const KernelWork& work, std::int32_t layer = -1, std::uint16_t part = 0);
    TaskId collective(StreamId stream, Phase phase, TaskRole role, CollectiveOp op, DType dtype, std::int64_t elements, std::uint32_t axis,
                      std::int32_t layer = -1, std::uint16_t part = 0, std::int32_t sender = -1);
    /// Likewise, with everything that a collective may say.
    TaskId collective(StreamId stream, Phase phase, TaskRole role, const CollectiveWork& work, std::int32_t layer = -1, std::uint16_t part = 0);
    /// A push or pull (kind) of `bytes` of the servers' key.
    TaskId message(TaskKind kind, StreamId stream, std::uint32_t key, Bytes bytes, std::int32_t layer = -1);
    TaskId copy(StreamId stream, Phase phase, TaskRole role, const CopyWork& work, std::uint16_t part = 0);
    /// Frees the gradient's own buffer now (with the task written last) and lets `target` hold the gradient from here on.
    void moveGradient(std::uint32_t p, BufferId target);
    /// Frees the gradient's own buffer now: its contents went elsewhere, and the next contribution starts anew.
    void dropGradient(std::uint32_t p);
    /// From the start, gradients of `p` are added into `target`, which is zeroed before the step (main_grad).
    void keepGradientIn(std::uint32_t p, BufferId target, DType dtype);
    /// Products add gradients of weights to where they are kept. REQUIRES: keepGradientIn for all of them.
    void addGradientsInProducts() { schedule_.addsInProducts = true; }
    /// After the reduction: p.grad = main_grad.to(parameter type), where the types differ.
    void castGradientsToParameterType();
    BufferId addBuffer(const Buffer& buffer);
    /// The next task on the compute stream waits for these.
    void waitOnCompute(const std::vector<TaskId>& tasks) { pendingWaits_.insert(pendingWaits_.end(), tasks.begin(), tasks.end()); }
    void waitOnCompute(TaskId task) { pendingWaits_.push_back(task); }
    /// The task written last on the compute stream.
    TaskId lastCompute() const { return lastCompute_; }
    /// Whether the compute stream has a task yet.
    bool hasCompute() const { return hasCompute_; }
    /// Tasks written from here on are carried out in every Schedule::period-th step only.
    void setPeriodic(bool periodic) { periodic_ = periodic; }
    void setMicroStep(int microStep) { microStep_ = static_cast<std::uint16_t>(microStep); }

private:
    friend class PipelineDriver;

    struct Offloaded {
        BufferId host = kNoBuffer;
        TaskId copy = kNoTask;
        bool onDevice = false;
    };
    struct OptimizerBuffers {
        BufferId master = kNoBuffer, state = kNoBuffer;
    };
    using TargetKey = std::tuple<std::int32_t, std::int32_t, bool>;  // layer, index, flat
    static TargetKey keyOf(const OptimizerTarget& target) { return {target.layer, target.index, target.flat}; }
    void openGradient(std::size_t layer, int parameter, bool inProduct);
    Bytes stateBytes(const OptimizerTarget& target) const;  ///< of the optimizer, the master copy apart
    void addOptimizerKernels(const std::vector<KernelWork>& kernels, TaskRole role);
    void loadNextBatch();
    void forwardLayer(std::size_t layer, bool save, Phase phase, StepHooks* hooks);
    /// The block once more before its backward: all of it, or as much as backward needs.
    void recomputeLayer(std::size_t layer, StepHooks& hooks);
    void runForwardOps(std::size_t layer, int firstOp, int lastOp, bool save, Phase phase, StepHooks* hooks);
    void runAgain(std::size_t layer, const SegmentPlan& again);
    void viewInput(std::size_t layer, int view);
    void writeForwardOp(std::size_t layer, int op, Phase phase, bool isView);
    void writeRingBackward(std::size_t layer, int op, std::uint32_t firstKernel, const std::function<void()>& begin);
    TaskId opCollective(std::size_t layer, int op, const OpCollective& work, Phase phase, TaskRole role, std::uint16_t part, TaskId after);
    /// A collective of which the product after it needs pieces one by one: they go round the ring, and nothing waits for them yet.
    void gatherInPieces(std::size_t layer, int op, const OpCollective& whole, int pieces, Phase phase, TaskId after, const std::function<void()>& begin);
    /// One that takes the pieces of the product before it as they are done; the compute stream waits for the last.
    void scatterInPieces(std::size_t layer, int op, const OpCollective& whole, int pieces, Phase phase, const std::function<void()>& begin);
    /// The next task on the compute stream waits for piece `i` (0: this rank's own, which is there) of what is on its way.
    void awaitPiece(std::size_t i);
    void awaitPieces();
    /// Backward of a pass op by op, so that it can be left and taken up again.
    struct BackwardRun {
        Pass pass;
        std::size_t layer = 0;       ///< the next op's
        int op = -1;                 ///< −1: the layer has not begun
        bool done = false;
        BufferId loss = kNoBuffer;   ///< the last layer's output, which the training loop still holds
        std::vector<TaskId> waits;   ///< pendingWaits_ of this run while it is left
    };
    BackwardRun beginBackward(const Pass& pass);
    /// Goes on until tokens are on their way between the ranks of the expert axis (`toExchange`), or to the end.
    void advanceBackward(BackwardRun& run, StepHooks& hooks, bool toExchange);
    void backwardOp(std::size_t layer, int op, StepHooks& hooks);
    void endBackwardLayer(std::size_t layer);
    static bool exchangesTokens(const Op& op, bool forward);  ///< between the ranks of the expert axis
    /// The forward pass waits for tokens: the backward pass beside it goes on until it waits too.
    void runBeside();
    void joinStreams(Phase phase);
    void endRingStep(TaskId exchange, Phase phase);
    void reducePartialGradients();
    /// What full recompute keeps of `layer` goes to the host; and comes back.
    void offloadCheckpoint(std::size_t layer);
    void restoreCheckpoint(std::size_t layer);
    void letGoOfOldest();
    void contributeGradient(std::size_t layer, int parameter);
    void opTask(std::size_t layer, int op, std::size_t kernel, std::uint32_t work, Phase phase);
    using Graph = std::tuple<std::int32_t, Phase, std::uint16_t>;  // layer, phase, micro-step
    bool isCaptured(const Task& task) const;  ///< as part of a graph of kernels
    bool joinsGraph(const Task& task);        ///< that was launched already
    TaskId addTask(Task task);
    TaskId hostTask(TaskKind kind, Phase phase, TaskRole role, std::uint32_t work = 0, std::uint16_t part = 0);

    BufferId layerInput(std::size_t layer);  ///< what the layer reads in the current pass
    BufferId valueBuffer(std::size_t layer, int value) { return values()[valueOffset_[layer] + static_cast<std::uint32_t>(value)]; }
    std::vector<BufferId>& values() { return flights_[flight_]; }
    /// Chooses the memory of the micro-batch among those under way.
    void enterPass(const Pass& pass);
    /// Memory for the kernels of the op under way, allocated with the task written last; kNoBuffer for none.
    BufferId allocateWorkspace(std::size_t layer, Bytes bytes);
    void hold(BufferId buffer) { ++references_[buffer]; }
    void release(BufferId buffer);  ///< frees it with the task written last when nobody holds it any more
    std::uint32_t internKernel(std::string_view name, Bytes bytes, double divisor);

    const StrategyInput& input_;
    Schedule& schedule_;
    ProgramPart part_;
    DeviceMesh mesh_;
    MeshAxes axes_;
    const Workload& workload_;
    std::uint32_t program_;
    ProgramWriter writer_;
    DType gradientDtype_ = DType::Fp32;
    Precision optimizerPrecision_;
    int microSteps_ = 1;
    std::vector<LayerPlan> plans_;                    // per layer type
    std::vector<std::vector<std::uint32_t>> forwardKernels_, backwardKernels_;  // per type: first kernel of each op
    std::vector<ModelParameter> parameters_;
    std::vector<std::vector<std::uint32_t>> parameterIndex_;  // per layer and local parameter → parameters_
    std::vector<std::uint32_t> valueOffset_;          // per layer, into the flights and gradients_
    std::vector<std::vector<BufferId>> flights_;      // current buffer of each value, per micro-batch under way
    std::size_t flight_ = 0;
    std::vector<BufferId> gradients_;                 // current buffer of each value's gradient
    std::vector<BufferId> received_;                  // per flight and chunk: what the previous stage sent
    std::vector<BufferId> inputs_;                    // per flight: the batch
    std::vector<int> references_;                     // per buffer
    std::vector<BufferId> opened_;                    // per parameter: what the op under way writes its gradient to
    std::map<TargetKey, OptimizerBuffers> optimizerBuffers_;
    std::map<std::tuple<Bytes, std::string_view, double>, std::uint32_t> interned_;
    std::vector<TaskId> pendingWaits_;
    std::vector<BufferId> fresh_;                     // gradients that the current op's first kernel allocates
    TaskId lastCompute_ = 0, lastLoad_ = kNoTask;
    std::vector<TaskId> arrivals_;                    // pieces on their way: [i] brings piece i + 1
    std::vector<TaskId> pieces_;                      // kernels of the product written last, where it is cut
    BackwardRun* beside_ = nullptr;                   // the backward pass that runs beside the forward under way
    const Pass* forwardPass_ = nullptr;               // that forward
    StepHooks* besideHooks_ = nullptr;
    TaskId inputGradientTask_ = kNoTask;              // the one that completed the latest op's input gradient
    StreamId loader_ = 0, offloadStream_ = 0;
    std::map<std::size_t, Offloaded> offloaded_;      // per layer: its input in host memory
    std::vector<BufferId> cachedCasts_;               // of weights, held by autocast until forward ends
    std::vector<std::size_t> underWay_;               // layers whose input is on its way there, the oldest first
    std::array<StreamId, 3> meshStreams_{};           // per MeshAxis
    std::optional<Graph> graph_;                      // launched last
    bool hasCompute_ = false, periodic_ = false;
    std::uint16_t microStep_ = 0;
};

/// The whole schedule: mesh, parts, a program for each of them, written by `write`. `state` is declared before it is called
/// unless `write` wants to do that itself (`declare` false). `cut` may change the parts before they are written: for ranks
/// that run programs of their own.
Result<Schedule> writeStep(const StrategyInput& input, std::string_view strategy, const std::function<Result<void>(StepWriter&)>& write,
                           bool declare = true, const std::function<void(std::vector<ProgramPart>&)>& cut = {});

}  // namespace ringside
