#include "sim/strategy/step_writer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/base/check.h"
#include "sim/strategy/pipeline_order.h"

namespace ringside {
namespace {

constexpr BufferId kNone = kNoBuffer;

/// Micro-steps to write: all of them, or enough for the steady one to be seen twice before it is repeated.
int writtenMicroSteps(const StrategyInput& input, const DeviceMesh& mesh) {
    const auto all = static_cast<int>(input.training.gradAccum);
    if (input.mostMicroSteps == 0) return all;
    if (mesh.pp == 1) return std::min(all, std::max(4, input.mostMicroSteps));
    // Only 1F1B comes to a steady state of one micro-batch in and one out; GPipe holds them all.
    if (pipelineKindOf(input.parallel) != PipelineKind::OneForwardOneBackward) return all;
    return std::min(all, 2 * static_cast<int>(mesh.pp) + std::max(4, input.mostMicroSteps));
}

/// What only some strategies, or some trainings, can do.
Result<void> checkTraining(const StrategyInput& input, std::string_view strategy, const DeviceMesh& mesh) {
    const TrainingConfig& training = input.training;
    if (!training.zeroGradSetToNone && strategy != "single")
        return badInput("training.zero_grad_set_to_none", fmt::format("'{}' keeps gradients in a way of its own; leave it true", strategy));
    if (training.optimizerInBackward) {
        if (strategy != "single") return badInput("training.optimizer_in_backward", fmt::format("'{}' cannot update parameters inside backward; only 'single' can", strategy));
        if (training.gradAccum > 1) return badInput("training.optimizer_in_backward", fmt::format("gradients are used as soon as they are there, so grad_accum must be 1, found {}", training.gradAccum));
        if (training.gradientClipping || training.precision.lossScaling)
            return badInput("training.optimizer_in_backward", "clipping and loss scaling need all gradients before the first update; turn them off, or this");
        if (!training.zeroGradSetToNone) return badInput("training.optimizer_in_backward", "it frees each gradient after its use; zero_grad_set_to_none must be true");
    }
    if (training.offloadActivations) {
        if (training.recompute != Recompute::Full) return badInput("training.offload_activations", "what full recompute keeps of each block is offloaded; set recompute to full");
        if (mesh.pp > 1) return badInput("training.offload_activations", fmt::format("it does not go with a pipeline yet; set pp to 1, found {}", mesh.pp));
    }
    return {};
}

}  // namespace

Result<Schedule> writeStep(const StrategyInput& input, std::string_view strategy, const std::function<Result<void>(StepWriter&)>& write, bool declare,
                           const std::function<void(std::vector<ProgramPart>&)>& cut) {
    Schedule schedule;
    schedule.strategy = strategy;
    schedule.world = input.cluster.deviceCount();
    schedule.hostWorks.push_back({});
    TRY(const DeviceMesh mesh, meshOf(input.parallel, schedule.world));
    TRY_VOID(checkTraining(input, strategy, mesh));
    const MeshAxes axes = addMeshAxes(schedule, mesh, input.parallel);
    TRY(std::vector<ProgramPart> parts, programParts(input, mesh));
    if (cut) cut(parts);
    schedule.workload = parts.front().workload;
    if (mesh.pp > 1 && pipelineKindOf(input.parallel) == PipelineKind::Interleaved && input.training.gradAccum % mesh.pp != 0)
        return badInput("training.grad_accum", fmt::format("an interleaved pipeline of {} stages needs a multiple of {} micro-batches, found {}", mesh.pp, mesh.pp, input.training.gradAccum));
    const int written = writtenMicroSteps(input, mesh);
    if (written < input.training.gradAccum)
        schedule.steady = {mesh.pp == 1 ? written - 2 : static_cast<int>(mesh.pp) + 2, input.training.gradAccum - written + 1};
    for (const ProgramPart& part : parts) {
        const auto program = static_cast<std::uint32_t>(schedule.programs.size());
        RankProgram& own = schedule.programs.emplace_back();
        own.workload = part.workload;
        own.streams = {{StreamKind::Host, "host"}, {StreamKind::Compute, "compute"}};
        for (const RankSet& ranks : part.ranks) addClasses(schedule, input.cluster, program, ranks, part.weight);
        StepWriter step(input, schedule, program, part, mesh, axes);
        if (declare) step.declareState();
        TRY_VOID(write(step));
    }
    std::sort(schedule.classes.begin(), schedule.classes.end(), [](const RankClass& a, const RankClass& b) { return a.ranks.first < b.ranks.first; });
    return schedule;
}

StepWriter::StepWriter(const StrategyInput& input, Schedule& schedule, std::uint32_t program, const ProgramPart& part, const DeviceMesh& mesh, const MeshAxes& axes)
    : input_(input), schedule_(schedule), part_(part), mesh_(mesh), axes_(axes), workload_(*part.workload), program_(program), writer_(schedule, program),
      gradientDtype_(input.training.precision.gradient), microSteps_(writtenMicroSteps(input, mesh)) {
    std::vector<bool> needed(workload_.types.size());
    for (const LayerRange& chunk : part_.chunks)
        for (std::size_t l = chunk.begin; l < chunk.end; ++l) needed[static_cast<std::size_t>(workload_.layers[l].type)] = true;
    for (std::size_t t = 0; t < workload_.types.size(); ++t) {
        const LayerType& type = workload_.types[t];
        plans_.push_back(planLayer(type, input.training));
        forwardKernels_.emplace_back();
        backwardKernels_.emplace_back();
        if (!needed[t]) continue;
        for (const Op& op : type.ops) {
            forwardKernels_.back().push_back(static_cast<std::uint32_t>(schedule.kernels.size()));
            schedule.kernels.insert(schedule.kernels.end(), op.forward.begin(), op.forward.end());
            backwardKernels_.back().push_back(static_cast<std::uint32_t>(schedule.kernels.size()));
            schedule.kernels.insert(schedule.kernels.end(), op.backward.begin(), op.backward.end());
        }
    }
    std::size_t tasks = 0, values = 0;
    for (std::size_t l = 0; l < workload_.layers.size(); ++l) {
        valueOffset_.push_back(static_cast<std::uint32_t>(values));
        values += workload_.typeOf(l).values.size();
    }
    for (const LayerRange& chunk : part_.chunks)
        for (std::size_t l = chunk.begin; l < chunk.end; ++l)
            for (const Op& op : workload_.typeOf(l).ops) tasks += op.forward.size() + op.backward.size();
    const bool paired = input.parallel.overlapExpertExchange;
    const int flights = mesh.pp > 1 || paired ? microStepsInFlight(pipelineKindOf(input.parallel), static_cast<int>(part.stage), static_cast<int>(mesh.pp), microSteps_, paired) : 1;
    flights_.assign(static_cast<std::size_t>(flights), std::vector<BufferId>(values, kNone));
    inputs_.assign(flights_.size(), kNone);
    received_.assign(flights_.size() * part_.chunks.size(), kNone);
    gradients_.assign(values, kNone);
    tasks = tasks * static_cast<std::size_t>(microSteps_) * 5 / 4 + 64;
    RankProgram& mine = schedule.programs[program];
    mine.tasks.reserve(tasks);
    mine.uses.reserve(tasks * 6);
    mine.buffers.reserve(values * 2);
}

void StepWriter::enterPass(const Pass& pass) {
    flight_ = static_cast<std::size_t>(pass.microStep) % flights_.size();
    setMicroStep(pass.microStep);
}

BufferId StepWriter::addBuffer(const Buffer& buffer) {
    references_.push_back(0);
    return writer_.addBuffer(buffer);
}

void StepWriter::stepOverhead() { hostTask(TaskKind::HostWork, Phase::Input, TaskRole::StepOverhead); }

// The loader fills its queue beside the step: the batch of the next micro-step is loaded while this one runs, and whoever
// needs it first waits for it.
void StepWriter::loadNextBatch() {
    if (input_.training.inputMsPerSample <= 0) return;
    if (loader_ == 0) loader_ = writer_.addStream(StreamKind::Loader, "input pipeline");
    const double seconds = input_.training.inputMsPerSample * 1e-3 * static_cast<double>(workload_.samples) / static_cast<double>(input_.training.inputWorkers);
    lastLoad_ = hostWork(loader_, Phase::Input, TaskRole::LoadBatch, {HostWork::Kind::Fixed, seconds});
}

void StepWriter::inputCopy(int microStep) {
    setMicroStep(microStep);
    if (lastLoad_ != kNoTask) hostWait(Phase::Input, TaskRole::LoadBatch, std::array{lastLoad_});
    copy(kComputeStream, Phase::Input, TaskRole::InputCopy, {CopyWork::Direction::HostToDevice, workload_.inputBytes});
    BufferId& batch = inputs_[flight_];
    if (batch == kNone || references_[batch] > 0)
        batch = addBuffer({workload_.inputBytes, MemoryCategory::Activations, BufferRole::Input, DType::Int64, false, false, -1, 0});
    writer_.use(batch, UseKind::Allocate);
    writer_.use(batch, UseKind::Write);
    hold(batch);
    loadNextBatch();
}

BufferId StepWriter::layerInput(std::size_t layer) {
    if (layer == 0) return inputs_[flight_];
    for (std::size_t c = 0; c < part_.chunks.size(); ++c)
        if (part_.chunks[c].begin == layer) return received_[flight_ * part_.chunks.size() + c];
    return valueBuffer(layer - 1, workload_.typeOf(layer - 1).output);
}

BufferId StepWriter::allocateWorkspace(std::size_t layer, Bytes bytes) {
    if (bytes == 0) return kNone;
    const BufferId buffer = addBuffer({bytes, MemoryCategory::Workspace, BufferRole::Workspace, DType::Fp32, false, false, static_cast<std::int32_t>(layer), 0});
    writer_.use(buffer, UseKind::Allocate);
    return buffer;
}

void StepWriter::release(BufferId buffer) {
    CHECK(references_[buffer] > 0);
    if (--references_[buffer] == 0) writer_.use(buffer, UseKind::Free);
}

void StepWriter::opTask(std::size_t layer, int op, std::size_t kernel, std::uint32_t work, Phase phase) {
    Task task;
    task.kind = TaskKind::Kernel;
    task.phase = phase;
    task.role = TaskRole::Op;
    task.stream = kComputeStream;
    task.work = work;
    task.layer = static_cast<std::int32_t>(layer);
    task.op = static_cast<std::int16_t>(op);
    task.part = static_cast<std::uint16_t>(kernel);
    addTask(task);
}

void StepWriter::writeForwardOp(std::size_t layer, int o, Phase phase, bool isView) {
    const LayerType& type = workload_.typeOf(layer);
    const Op& op = type.ops[static_cast<std::size_t>(o)];
    if (isView) {
        viewInput(layer, o);
        hold(valueBuffer(layer, op.outputs[0]));
    }
    const bool inPieces = op.forwardPieces > 1;
    if (!inPieces || op.kind != OpKind::Linear) awaitPieces();
    bool begun = false;
    BufferId workspace = kNone;
    const auto read = [&] {
        for (const int v : op.inputs) writer_.use(valueBuffer(layer, v), UseKind::Read);
        for (const int p : op.parameters) writer_.use(parameters_[parameterOf(layer, p)].buffer, UseKind::Read);
    };
    // What comes in pieces is whole for the last of the tasks that read them.
    const bool readsLast = inPieces && op.kind != OpKind::SequenceGather;
    // The first task allocates what the op writes; the last one is where it is written.
    const auto begin = [&] {
        if (begun) return;
        begun = true;
        if (isView) return writer_.use(valueBuffer(layer, op.inputs[0]), UseKind::Read);
        for (const int v : op.outputs) {
            const Value& value = type.values[static_cast<std::size_t>(v)];
            BufferId& buffer = values()[valueOffset_[layer] + static_cast<std::uint32_t>(v)];
            // A buffer of this value from an earlier micro-step or run is used again once it is free.
            if (buffer == kNone || references_[buffer] > 0)
                buffer = addBuffer({value.bytes(), MemoryCategory::Activations, BufferRole::Value, value.dtype, false, false, static_cast<std::int32_t>(layer), v});
            writer_.use(buffer, UseKind::Allocate);
            hold(buffer);
        }
        workspace = allocateWorkspace(layer, op.forwardWorkspace);
        if (!readsLast) read();
    };
    const auto wrote = [&] {
        for (const int v : op.outputs) writer_.use(valueBuffer(layer, v), UseKind::Write);
        if (workspace != kNone) writer_.use(workspace, UseKind::Free);
    };
    const std::uint32_t firstKernel = forwardKernels_[static_cast<std::size_t>(workload_.layers[layer].type)][static_cast<std::size_t>(o)];
    std::size_t k = 0;
    const auto kernels = [&](std::size_t count) {
        for (std::size_t end = k + count; k < end; ++k) {
            opTask(layer, o, k, firstKernel + static_cast<std::uint32_t>(k), phase);
            begin();
        }
    };
    if (op.ring.steps > 0) {
        TaskId ready = lastCompute_;
        for (int i = 0; i < op.ring.steps; ++i) {
            TaskId exchange = kNoTask;
            if (i + 1 < op.ring.steps) {  // the block that was here goes on while it is computed with
                exchange = opCollective(layer, o, op.ring.exchange, phase, TaskRole::RingExchange, static_cast<std::uint16_t>(i), ready);
                begin();
            }
            kernels(static_cast<std::size_t>(op.ring.forwardKernels[static_cast<std::size_t>(i)]));
            if (exchange == kNoTask) continue;
            waitOnCompute(exchange);
            endRingStep(exchange, phase);
        }
        if (lastCompute_ != writer_.last()) joinStreams(phase);
        wrote();
        return;
    }
    if (inPieces) {
        const std::size_t whole = op.forward.size() - (op.kind == OpKind::Linear ? static_cast<std::size_t>(op.forwardPieces) : 0);
        kernels(whole);
        if (op.kind == OpKind::SequenceGather) {
            gatherInPieces(layer, o, op.forwardCollectives.front(), op.forwardPieces, phase, lastCompute_, begin);
        } else if (op.kind == OpKind::SequenceScatter) {
            scatterInPieces(layer, o, op.forwardCollectives.front(), op.forwardPieces, phase, begin);
        } else {
            pieces_.clear();
            while (k < op.forward.size()) {
                awaitPiece(k - whole);
                kernels(1);
                pieces_.push_back(lastCompute_);
            }
            arrivals_.clear();
        }
        if (readsLast) read();
        wrote();
        return;
    }
    kernels(op.forward.size());
    if (op.forwardCollectives.empty()) {
        if (!op.forward.empty()) wrote();
        if (op.readByHost) hostWait(phase, TaskRole::Synchronize, std::array{lastCompute_});
        return;
    }
    for (std::size_t i = 0; i < op.forwardCollectives.size(); ++i) {
        const TaskId task = opCollective(layer, o, op.forwardCollectives[i], phase, TaskRole::OpCollective, static_cast<std::uint16_t>(i), lastCompute_);
        begin();
        waitOnCompute(task);
    }
    wrote();
}

TaskId StepWriter::opCollective(std::size_t layer, int op, const OpCollective& work, Phase phase, TaskRole role, std::uint16_t part, TaskId after) {
    const std::uint32_t axis = work.axis == MeshAxis::Tensor ? axes_.tensor : work.axis == MeshAxis::Context ? axes_.context : axes_.expert;
    StreamId& stream = meshStreams_[static_cast<std::size_t>(work.axis)];
    if (stream == 0) stream = writer_.addStream(StreamKind::Communication, fmt::format("nccl {}", schedule_.axes[axis].name));
    Task task;
    task.kind = TaskKind::Collective;
    task.phase = phase;
    task.role = role;
    task.stream = stream;
    task.work = writer_.intern(schedule_.collectives, CollectiveWork{.op = work.op, .dtype = work.dtype, .elements = work.elements, .axis = axis, .spread = work.spread});
    task.layer = static_cast<std::int32_t>(layer);
    task.op = static_cast<std::int16_t>(op);
    task.part = part;
    const TaskId id = addTask(task);
    if (after != kNoTask && hasCompute_) writer_.dependOn(after);
    for (const TaskId earlier : pendingWaits_) writer_.dependOn(earlier);  // what the compute stream is about to wait for, it waits for too
    return id;
}

void StepWriter::viewInput(std::size_t layer, int o) {
    const Op& op = workload_.typeOf(layer).ops[static_cast<std::size_t>(o)];
    values()[valueOffset_[layer] + static_cast<std::uint32_t>(op.outputs[0])] = valueBuffer(layer, op.inputs[0]);
}

// A value's buffer is held by the forward pass until its last reader, and by every op that saves it until that op's
// backward. `save` is false when full recompute will run the layer again.
void StepWriter::runForwardOps(std::size_t layer, int firstOp, int lastOp, bool save, Phase phase, StepHooks* hooks) {
    const LayerType& type = workload_.typeOf(layer);
    const LayerPlan& plan = plans_[static_cast<std::size_t>(workload_.layers[layer].type)];
    for (int o = firstOp; o <= lastOp; ++o) {
        const Op& op = type.ops[static_cast<std::size_t>(o)];
        const OpPlan& opPlan = plan.ops[static_cast<std::size_t>(o)];
        if (hooks) hooks->beforeForwardOp(*this, layer, o);
        if (!(opPlan.isKept && phase == Phase::Recompute)) writeForwardOp(layer, o, phase, opPlan.isView);
        if (opPlan.isKept && phase == Phase::Forward)  // for the second run, which reads it as if it had made it
            for (const int v : op.outputs) hold(valueBuffer(layer, v));
        if (!save && phase == Phase::Forward)
            for (const int v : op.outputs)
                if (type.values[static_cast<std::size_t>(v)].autocastCache) {
                    hold(valueBuffer(layer, v));
                    cachedCasts_.push_back(valueBuffer(layer, v));
                }
        if (save)
            for (const int v : opPlan.savedInForward) hold(valueBuffer(layer, v));
        for (const int v : opPlan.releasedAfterForward) release(valueBuffer(layer, v));
        if (hooks) hooks->afterForwardOp(*this, layer, o);
        const bool more = o < lastOp && exchangesTokens(type.ops[static_cast<std::size_t>(o + 1)], true);
        if (beside_ != nullptr && phase == Phase::Forward && exchangesTokens(op, true) && !more) runBeside();
    }
}

void StepWriter::forwardLayer(std::size_t layer, bool save, Phase phase, StepHooks* hooks) {
    const LayerType& type = workload_.typeOf(layer);
    if (phase == Phase::Forward) values()[valueOffset_[layer]] = layerInput(layer);
    runForwardOps(layer, 0, static_cast<int>(type.ops.size()) - 1, save, phase, hooks);
}

// What the segment reads is kept by its ops; what it makes is kept for those that need it in backward.
void StepWriter::runAgain(std::size_t layer, const SegmentPlan& again) {
    const LayerPlan& plan = plans_[static_cast<std::size_t>(workload_.layers[layer].type)];
    for (const SecondRun& run : again.runs) {
        writeForwardOp(layer, run.op, Phase::Recompute, plan.ops[static_cast<std::size_t>(run.op)].isView);
        for (const int v : run.kept) hold(valueBuffer(layer, v));
        for (const int v : run.released) release(valueBuffer(layer, v));
    }
    for (const int view : again.views) viewInput(layer, view);
}

void StepWriter::recomputeLayer(std::size_t layer, StepHooks& hooks) {
    const LayerType& type = workload_.typeOf(layer);
    const LayerPlan& plan = plans_[static_cast<std::size_t>(workload_.layers[layer].type)];
    const int ops = static_cast<int>(type.ops.size()), needed = input_.training.recomputeEarlyStop ? plan.neededAgain : ops;
    if (needed > 0) runForwardOps(layer, 0, needed - 1, true, Phase::Recompute, &hooks);
    const auto isKept = [&](int o) { return plan.ops[static_cast<std::size_t>(o)].isKept; };
    const auto exists = [&](int v) { return plan.producer[static_cast<std::size_t>(v)] < needed || isKept(plan.producer[static_cast<std::size_t>(v)]); };
    for (int o = needed; o < ops; ++o) {  // these do not run again: they keep what they would have read, and it is released as if they had
        const OpPlan& opPlan = plan.ops[static_cast<std::size_t>(o)];
        for (const int v : opPlan.saved)
            if (exists(v)) hold(valueBuffer(layer, v));
        for (const int v : opPlan.releasedAfterForward)
            if (exists(v)) release(valueBuffer(layer, v));
    }
    if (exists(type.output)) release(valueBuffer(layer, type.output));
}

void StepWriter::forward(const Pass& pass, StepHooks& hooks) {
    const LayerRange layers = part_.chunks[pass.chunk];
    for (std::size_t l = layers.begin; l < layers.end; ++l) {
        const bool checkpoint = input_.training.checkpointsBlocks() && workload_.typeOf(l).isBlock;
        hooks.beforeForward(*this, l);
        // The checkpoint keeps the block's input; everything else goes when forward is done with it.
        if (checkpoint) hold(layerInput(l));
        if (checkpoint && input_.training.offloadActivations) offloadCheckpoint(l);
        forwardLayer(l, !checkpoint, Phase::Forward, &hooks);
        hooks.afterForward(*this, l);
    }
    // Autocast's region ends with the loss: casts of weights that no op saved go only now.
    for (const BufferId cast : cachedCasts_) release(cast);
    cachedCasts_.clear();
}

void StepWriter::backwardOp(std::size_t layer, int o, StepHooks& hooks) {
    const LayerType& type = workload_.typeOf(layer);
    const LayerPlan& plan = plans_[static_cast<std::size_t>(workload_.layers[layer].type)];
    const std::uint32_t offset = valueOffset_[layer];
    const auto gradientSlot = [&](int v) -> BufferId& {
        // A layer's input and the previous layer's output are one tensor.
        if (v == 0 && layer > 0) return gradients_[valueOffset_[layer - 1] + static_cast<std::uint32_t>(workload_.typeOf(layer - 1).output)];
        return gradients_[offset + static_cast<std::uint32_t>(v)];
    };
    const Op& op = type.ops[static_cast<std::size_t>(o)];
    const OpPlan& opPlan = plan.ops[static_cast<std::size_t>(o)];
    hooks.beforeBackwardOp(*this, layer, o);
    for (const SegmentPlan& again : plan.segments)
        if (again.segment.before == o) runAgain(layer, again);

    const std::size_t kernels = op.backward.size();
    const bool communicates = !op.backwardCollectives.empty();
    // Without a kernel of its own (views, residual adds) the output's gradient simply becomes the inputs' gradient.
    const bool passesOn = op.gradientInPlace || (kernels == 0 && !communicates);
    fresh_.clear();
    const auto needsGradient = [&](int v) { return plan.differentiable[static_cast<std::size_t>(v)] && !(v == 0 && layer == 0); };
    const auto overSaved = [&](int v) { return op.gradientOverSaved && std::find(op.saves.begin(), op.saves.end(), v) != op.saves.end(); };
    BufferId outputGradient = kNone;
    for (const int v : op.outputs)
        if (gradientSlot(v) != kNone) outputGradient = gradientSlot(v);

    const bool productInPieces = op.backwardPieces > 1 && op.kind == OpKind::Linear;
    if (!productInPieces) awaitPieces();
    bool begun = false;
    BufferId workspace = kNone;
    const auto readOutputGradient = [&] {
        for (const int v : op.outputs)
            if (gradientSlot(v) != kNone) writer_.use(gradientSlot(v), UseKind::Read);
    };
    const auto begin = [&] {
        if (begun) return;
        begun = true;
        workspace = allocateWorkspace(layer, op.backwardWorkspace);
        for (const int v : op.inputs) {
            if (!needsGradient(v)) continue;
            BufferId& slot = gradientSlot(v);
            if (slot == kNone && overSaved(v)) {  // what was saved becomes its gradient
                slot = valueBuffer(layer, v);
                hold(slot);
                fresh_.push_back(slot);
            }
            if (slot != kNone || passesOn) continue;  // a second consumer adds to what the first one wrote
            slot = addBuffer({type.values[static_cast<std::size_t>(v)].bytes(), MemoryCategory::Workspace, BufferRole::ValueGradient,
                              type.values[static_cast<std::size_t>(v)].dtype, false, false, static_cast<std::int32_t>(layer), v});
            hold(slot);
            writer_.use(slot, UseKind::Allocate);
            fresh_.push_back(slot);
        }
        if (!productInPieces) readOutputGradient();
        for (const int v : opPlan.saved) writer_.use(valueBuffer(layer, v), UseKind::Read);
        for (const int p : op.parameters) writer_.use(parameters_[parameterOf(layer, p)].buffer, UseKind::Read);
        if (kernels > 0)
            for (const int p : op.parameters) openGradient(layer, p, op.kind == OpKind::Linear && type.parameters[static_cast<std::size_t>(p)].shape.size() >= 2);
    };
    const std::uint32_t firstKernel = backwardKernels_[static_cast<std::size_t>(workload_.layers[layer].type)][static_cast<std::size_t>(o)];
    // The input's gradient is there after the first kernels of a linear layer: what is to be done with it need not wait
    // for the weight's.
    const std::size_t inputDone = op.inputGradientKernels > 0 ? static_cast<std::size_t>(op.inputGradientKernels) : kernels;
    const TaskId outputReady = inputGradientTask_ != kNoTask ? inputGradientTask_ : lastCompute_;
    std::vector<TaskId> collectives;
    BufferId regathered = kNone;
    if (op.ring.steps > 0) {
        writeRingBackward(layer, o, firstKernel, begin);
        for (const BufferId buffer : fresh_) writer_.use(buffer, UseKind::Write);
        inputGradientTask_ = lastCompute_;
    } else if (op.kind == OpKind::SequenceScatter && op.backwardPieces > 1) {
        gatherInPieces(layer, o, op.backwardCollectives.front(), op.backwardPieces, Phase::Backward, outputReady, begin);
        for (const BufferId buffer : fresh_) writer_.use(buffer, UseKind::Write);
        inputGradientTask_ = arrivals_.back();
    } else {
        for (std::size_t i = 0; i < op.backwardCollectives.size(); ++i) {
            const OpCollective& work = op.backwardCollectives[i];
            collectives.push_back(opCollective(layer, o, work, Phase::Backward, TaskRole::OpCollective, static_cast<std::uint16_t>(i), kernels == 0 ? outputReady : lastCompute_));
            if (kernels == 0) begin();
            else if (op.inputGradientKernels > 0 && regathered == kNone) {  // the input comes together again, for the weight's gradient
                regathered = addBuffer({work.bytes(), MemoryCategory::Workspace, BufferRole::Workspace, work.dtype, false, false, static_cast<std::int32_t>(layer), 0});
                writer_.use(regathered, UseKind::Allocate);
                writer_.use(regathered, UseKind::Write);
            }
        }
        if (kernels == 0 && communicates) {
            if (passesOn && outputGradient != kNone) writer_.use(outputGradient, UseKind::Write);
            for (const BufferId buffer : fresh_) writer_.use(buffer, UseKind::Write);
            waitOnCompute(collectives);
            inputGradientTask_ = collectives.back();
        }
        for (std::size_t k = 0; k < kernels; ++k) {
            if (!collectives.empty() && k == (op.inputGradientKernels > 0 ? inputDone : 0)) {
                waitOnCompute(collectives);
                collectives.clear();
            }
            const std::size_t firstPiece = inputDone - static_cast<std::size_t>(op.backwardPieces);
            if (productInPieces && k > firstPiece && k < inputDone) awaitPiece(k - firstPiece);
            opTask(layer, o, k, firstKernel + static_cast<std::uint32_t>(k), Phase::Backward);
            begin();
            if (k + 1 == inputDone) {
                if (productInPieces) readOutputGradient();
                arrivals_.clear();
                for (const BufferId buffer : fresh_) writer_.use(buffer, UseKind::Write);
                inputGradientTask_ = lastCompute_;
            }
        }
        if (kernels > 0 && !collectives.empty()) waitOnCompute(collectives);
        if (regathered != kNone) {
            writer_.use(regathered, UseKind::Read);
            writer_.use(regathered, UseKind::Free);
        }
    }
    if (workspace != kNone) writer_.use(workspace, UseKind::Free);
    if (passesOn && outputGradient != kNone)
        for (const int v : op.inputs) {
            if (!needsGradient(v) || gradientSlot(v) != kNone) continue;
            gradientSlot(v) = outputGradient;
            hold(outputGradient);
        }
    if (kernels > 0) {
        for (const int p : op.parameters) writer_.use(opened_[parameterOf(layer, p)], UseKind::Write);
        for (const int p : op.parameters) contributeGradient(layer, p);
    }
    // This op is done: its saved values and its output's gradient have one holder less.
    for (const int v : opPlan.saved) release(valueBuffer(layer, v));
    for (const int v : op.outputs) {
        BufferId& slot = gradientSlot(v);
        if (slot == kNone) continue;
        release(slot);
        slot = kNone;
    }
    for (const int p : op.parameters) {
        const std::uint32_t index = parameterOf(layer, p);
        if (kernels > 0 && parameters_[index].pendingUses == 0) hooks.onGradientReady(*this, index);
    }
    hooks.afterBackwardOp(*this, layer, o);
}

void StepWriter::endBackwardLayer(std::size_t layer) {
    if (layer == 0) {
        // The gradient of the first value, if any op made one, has no reader.
        BufferId& slot = gradients_[valueOffset_[layer]];
        if (slot != kNone) release(slot);
        slot = kNone;
    }
}

// See RingSteps for the order: blocks go round as in forward, and their gradients follow one step behind.
void StepWriter::writeRingBackward(std::size_t layer, int o, std::uint32_t firstKernel, const std::function<void()>& begin) {
    const Op& op = workload_.typeOf(layer).ops[static_cast<std::size_t>(o)];
    const RingSteps& ring = op.ring;
    const TaskId ready = lastCompute_;
    std::size_t k = 0;
    TaskId exchange = kNoTask, gradients = kNoTask;
    for (int i = 0; i < ring.steps; ++i) {
        const TaskId arrived = exchange, arrivedGradients = gradients;
        exchange = gradients = kNoTask;
        if (i >= 1 && i <= ring.gradientExchanges) {
            gradients = opCollective(layer, o, ring.gradientExchange, Phase::Backward, TaskRole::RingExchange, static_cast<std::uint16_t>(ring.steps + i), lastCompute_);
            begin();
        }
        if (i + 1 < ring.steps) {
            exchange = opCollective(layer, o, ring.exchange, Phase::Backward, TaskRole::RingExchange, static_cast<std::uint16_t>(i), ready);
            begin();
        }
        if (arrived != kNoTask) waitOnCompute(arrived);
        if (arrivedGradients != kNoTask) waitOnCompute(arrivedGradients);
        for (const std::size_t end = k + static_cast<std::size_t>(ring.backwardKernels[static_cast<std::size_t>(i)]); k < end; ++k) {
            opTask(layer, o, k, firstKernel + static_cast<std::uint32_t>(k), Phase::Backward);
            begin();
        }
        if (exchange != kNoTask) endRingStep(exchange, Phase::Backward);
    }
    if (gradients != kNoTask) waitOnCompute(gradients);
    if (ring.gradientExchanges >= ring.steps)
        waitOnCompute(opCollective(layer, o, ring.gradientExchange, Phase::Backward, TaskRole::RingExchange, static_cast<std::uint16_t>(2 * ring.steps), lastCompute_));
    joinStreams(Phase::Backward);
}

// Picotron synchronises the device at the end of every step of its ring; others let the streams wait.
void StepWriter::endRingStep(TaskId exchange, Phase phase) {
    if (input_.parallel.tensorStyle == "picotron") hostWait(phase, TaskRole::RingExchange, std::array{exchange, lastCompute_}, 0);
}

// What has been waited for but not used yet must not be forgotten: the next task on the compute stream waits.
void StepWriter::joinStreams(Phase phase) {
    if (pendingWaits_.empty()) return;
    memoryKernel(kComputeStream, phase, TaskRole::RingJoin, "join", 0);
}

}  // namespace ringside
