#include "sim/strategy/step_writer.h"

#include <algorithm>
#include <limits>

#include "model/base/check.h"
#include "model/cost/optimizer_work.h"
#include "model/memory/optimizer_state.h"

namespace ringside {
namespace {

constexpr BufferId kNone = std::numeric_limits<BufferId>::max();

}  // namespace

Schedule makeSchedule(const StrategyInput& input, std::string_view strategy) {
    Schedule schedule;
    schedule.workload = input.workload;
    schedule.strategy = strategy;
    schedule.world = input.cluster.deviceCount();
    schedule.axes.push_back({"dp", schedule.world, 1});
    schedule.programs.emplace_back();
    RankProgram& program = schedule.programs.back();
    program.streams = {{StreamKind::Host, "host"}, {StreamKind::Compute, "compute"}};
    std::int64_t first = 0;
    for (std::size_t g = 0; g < input.cluster.nodes.size(); ++g) {
        const NodeGroup& nodes = input.cluster.nodes[g];
        const std::int64_t ranks = nodes.count * nodes.kind.devices;
        schedule.classes.push_back({0, g, {first, 1, ranks}});
        first += ranks;
    }
    return schedule;
}

StepWriter::StepWriter(const StrategyInput& input, Schedule& schedule)
    : input_(input), schedule_(schedule), workload_(*input.workload), rankProgram_(schedule.programs.front()), writer_(rankProgram_) {
    for (const LayerType& type : workload_.types) {
        plans_.push_back(planLayer(type, input.training.recompute));
        forwardKernels_.emplace_back();
        backwardKernels_.emplace_back();
        for (const Op& op : type.ops) {
            forwardKernels_.back().push_back(static_cast<std::uint32_t>(schedule_.kernels.size()));
            schedule_.kernels.insert(schedule_.kernels.end(), op.forward.begin(), op.forward.end());
            backwardKernels_.back().push_back(static_cast<std::uint32_t>(schedule_.kernels.size()));
            schedule_.kernels.insert(schedule_.kernels.end(), op.backward.begin(), op.backward.end());
        }
    }
    std::size_t tasks = 0, values = 0;
    for (std::size_t l = 0; l < workload_.layers.size(); ++l) {
        valueOffset_.push_back(static_cast<std::uint32_t>(values));
        values += workload_.typeOf(l).values.size();
        for (const Op& op : workload_.typeOf(l).ops) tasks += op.forward.size() + op.backward.size();
    }
    values_.assign(values, kNone);
    gradients_.assign(values, kNone);
    tasks = tasks * static_cast<std::size_t>(input.training.gradAccum) * 5 / 4 + 64;
    rankProgram_.tasks.reserve(tasks);
    rankProgram_.uses.reserve(tasks * 6);
    rankProgram_.buffers.reserve(values * 2);
    declareState();
}

void StepWriter::declareState() {
    const Precision& precision = input_.training.precision;
    parameterIndex_.resize(workload_.layers.size());
    for (std::size_t l = 0; l < workload_.layers.size(); ++l) {
        const LayerType& type = workload_.typeOf(l);
        const int count = static_cast<int>(type.parameters.size());
        parameterIndex_[l].assign(type.parameters.size(), 0);
        for (int p = 0; p < count; ++p) {
            if (!workload_.ties.empty() && workload_.isTied(static_cast<int>(l), p)) continue;  // its owner is listed
            const std::int64_t elements = type.parameters[static_cast<std::size_t>(p)].elements();
            ModelParameter parameter;
            parameter.layer = static_cast<std::int32_t>(l);
            parameter.index = p;
            parameter.elements = elements;
            parameter.buffer = addBuffer({elements * sizeOf(precision.parameter), MemoryCategory::Parameters, BufferRole::Parameter,
                                                  precision.parameter, true, false, parameter.layer, p});
            parameterIndex_[l][static_cast<std::size_t>(p)] = static_cast<std::uint32_t>(parameters_.size());
            parameters_.push_back(parameter);
        }
        Bytes stateBytes = 0;
        for (const StateTensor& state : type.buffers) stateBytes += elementCount(state.shape) * sizeOf(state.dtype);
        if (stateBytes > 0)
            addBuffer({stateBytes, MemoryCategory::Parameters, BufferRole::State, DType::Fp32, true, false, static_cast<std::int32_t>(l), 0});
    }
    for (const TiedParameter& tie : workload_.ties) {
        const std::uint32_t owner = parameterIndex_[static_cast<std::size_t>(tie.ownerLayer)][static_cast<std::size_t>(tie.ownerParameter)];
        parameterIndex_[static_cast<std::size_t>(tie.layer)][static_cast<std::size_t>(tie.parameter)] = owner;
        ++parameters_[owner].uses;
    }
    // Gradients and optimizer state come after all parameters, as they do in a process.
    for (ModelParameter& p : parameters_) {
        p.gradientDtype = precision.gradient;
        p.gradient = addBuffer({p.elements * sizeOf(precision.gradient), MemoryCategory::Gradients, BufferRole::Gradient, precision.gradient, false, false, p.layer, p.index});
    }
    if (precision.masterWeights)
        for (const ModelParameter& p : parameters_)
            addBuffer({p.elements * 4, MemoryCategory::OptimizerState, BufferRole::MasterParameter, DType::Fp32, true, false, p.layer, p.index});
    if (input_.step == StepKind::Steady)
        for (const ModelParameter& p : parameters_) {
            const Bytes bytes = stateBytes(p);
            if (bytes > 0)
                addBuffer({bytes, MemoryCategory::OptimizerState, BufferRole::OptimizerState, DType::Fp32, true, false, p.layer, p.index});
        }
    inputBuffer_ = addBuffer({workload_.inputBytes, MemoryCategory::Activations, BufferRole::Input, DType::Int64, false, false, -1, 0});
}

Bytes StepWriter::stateBytes(const ModelParameter& p) const {
    const Precision& precision = input_.training.precision;
    const Shape& shape = workload_.typeOf(static_cast<std::size_t>(p.layer)).parameters[static_cast<std::size_t>(p.index)].shape;
    const Bytes master = precision.masterWeights ? 4 * p.elements : 0;  // a buffer of its own: it exists before step 1
    return optimizerStateBytes(input_.training.optimizer, precision, shape) - master;
}

BufferId StepWriter::addBuffer(const Buffer& buffer) {
    references_.push_back(0);
    return writer_.addBuffer(buffer);
}

TaskId StepWriter::addTask(Task task) {
    task.microStep = microStep_;
    const TaskId id = writer_.add(task);
    if (task.stream == kComputeStream) {
        lastCompute_ = id;
        for (const TaskId earlier : pendingWaits_) writer_.dependOn(earlier);
        pendingWaits_.clear();
    }
    return id;
}

std::vector<std::uint32_t> StepWriter::readyOrder() const {
    // Backward visits layers and ops in reverse; a tied parameter is complete at its last use.
    std::vector<std::uint32_t> order;
    std::vector<int> pending;
    for (const ModelParameter& p : parameters_) pending.push_back(p.uses);
    for (std::size_t l = workload_.layers.size(); l-- > 0;) {
        const LayerType& type = workload_.typeOf(l);
        for (std::size_t o = type.ops.size(); o-- > 0;)
            for (const int local : type.ops[o].parameters) {
                const std::uint32_t p = parameterIndex_[l][static_cast<std::size_t>(local)];
                if (--pending[p] == 0) order.push_back(p);
            }
    }
    return order;
}

void StepWriter::stepOverhead() {
    Task task;
    task.kind = TaskKind::HostWork;
    task.phase = Phase::Input;
    task.role = TaskRole::StepOverhead;
    task.stream = kHostStream;
    addTask(task);
}

void StepWriter::inputCopy(int microStep) {
    setMicroStep(microStep);
    if (schedule_.copies.empty()) schedule_.copies.push_back({CopyWork::Direction::HostToDevice, workload_.inputBytes});
    Task task;
    task.kind = TaskKind::Copy;
    task.phase = Phase::Input;
    task.role = TaskRole::InputCopy;
    task.stream = kComputeStream;
    task.work = 0;
    addTask(task);
    writer_.use(inputBuffer_, UseKind::Allocate);
    writer_.use(inputBuffer_, UseKind::Write);
    hold(inputBuffer_);
}

BufferId StepWriter::valueBuffer(std::size_t layer, int value) { return values_[valueOffset_[layer] + static_cast<std::uint32_t>(value)]; }

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

// A value's buffer is held by the forward pass until its last reader, and by every op that saves it until that op's
// backward. `save` is false when full recompute will run the layer again; `release` is false in the second run of the
// attention core, whose inputs the first run has released already.
void StepWriter::runForwardOps(std::size_t layer, int firstOp, int lastOp, bool save, Phase phase, bool releaseValues) {
    const LayerType& type = workload_.typeOf(layer);
    const LayerPlan& plan = plans_[static_cast<std::size_t>(workload_.layers[layer].type)];
    const std::uint32_t offset = valueOffset_[layer];
    const bool secondRunOfCore = phase == Phase::Recompute && !releaseValues;
    for (int o = firstOp; o <= lastOp; ++o) {
        const Op& op = type.ops[static_cast<std::size_t>(o)];
        const OpPlan& opPlan = plan.ops[static_cast<std::size_t>(o)];
        const auto saves = [&](int v) {
            if (!save) return false;
            // Selective recompute: what the core itself produces is not kept by the core's ops in the first run …
            const bool madeByCore = opPlan.recomputed && plan.producer[static_cast<std::size_t>(v)] >= 0 &&
                                    plan.ops[static_cast<std::size_t>(plan.producer[static_cast<std::size_t>(v)])].recomputed;
            return secondRunOfCore ? madeByCore : !madeByCore;  // … and only that is kept anew by the second run.
        };
        if (opPlan.isView) {
            const BufferId same = valueBuffer(layer, op.inputs[0]);
            values_[offset + static_cast<std::uint32_t>(op.outputs[0])] = same;
            hold(same);
        } else {
            const std::size_t kernels = op.forward.size();
            for (std::size_t k = 0; k < kernels; ++k) {
                opTask(layer, o, k, forwardKernels_[static_cast<std::size_t>(workload_.layers[layer].type)][static_cast<std::size_t>(o)] + static_cast<std::uint32_t>(k), phase);
                if (k == 0) {
                    for (const int v : op.outputs) {
                        const Value& value = type.values[static_cast<std::size_t>(v)];
                        BufferId& buffer = values_[offset + static_cast<std::uint32_t>(v)];
                        // A buffer of this value from an earlier micro-step or run is used again once it is free.
                        if (buffer == kNone || references_[buffer] > 0) {
                            buffer = addBuffer({value.bytes(), MemoryCategory::Activations, BufferRole::Value, value.dtype, false, false, static_cast<std::int32_t>(layer), v});
                        }
                        writer_.use(buffer, UseKind::Allocate);
                        hold(buffer);
                    }
                    for (const int v : op.inputs) writer_.use(valueBuffer(layer, v), UseKind::Read);
                    for (const int p : op.parameters) writer_.use(parameters_[parameterIndex_[layer][static_cast<std::size_t>(p)]].buffer, UseKind::Read);
                }
                if (k + 1 == kernels)
                    for (const int v : op.outputs) writer_.use(valueBuffer(layer, v), UseKind::Write);
            }
        }
        for (const int v : opPlan.saved)
            if (saves(v)) hold(valueBuffer(layer, v));
        for (const int v : opPlan.releasedAfterForward) {
            const bool inputOfCore = secondRunOfCore && (plan.producer[static_cast<std::size_t>(v)] < firstOp);
            if (!inputOfCore) release(valueBuffer(layer, v));
        }
        if (secondRunOfCore)  // what the core hands on was released by its reader in the first run
            for (const int v : op.outputs)
                if (std::find(opPlan.releasedAfterForward.begin(), opPlan.releasedAfterForward.end(), v) == opPlan.releasedAfterForward.end()) {
                    bool readInside = false;
                    for (int later = o + 1; later <= lastOp; ++later)
                        for (const int in : type.ops[static_cast<std::size_t>(later)].inputs) readInside = readInside || in == v;
                    if (!readInside) release(valueBuffer(layer, v));
                }
    }
}

void StepWriter::forwardLayer(std::size_t layer, bool save, Phase phase) {
    const LayerType& type = workload_.typeOf(layer);
    const std::uint32_t offset = valueOffset_[layer];
    if (phase == Phase::Forward) values_[offset] = layer == 0 ? inputBuffer_ : valueBuffer(layer - 1, workload_.typeOf(layer - 1).output);
    runForwardOps(layer, 0, static_cast<int>(type.ops.size()) - 1, save, phase, true);
}

void StepWriter::forward(int microStep) {
    setMicroStep(microStep);
    for (std::size_t l = 0; l < workload_.layers.size(); ++l) {
        const bool checkpoint = input_.training.recompute == Recompute::Full && workload_.typeOf(l).isBlock;
        if (checkpoint) {
            // The checkpoint keeps the block's input; everything else goes when forward is done with it.
            hold(l == 0 ? inputBuffer_ : valueBuffer(l - 1, workload_.typeOf(l - 1).output));
        }
        forwardLayer(l, !checkpoint, Phase::Forward);
    }
}

void StepWriter::backward(int microStep, GradientListener* listener) {
    setMicroStep(microStep);
    for (ModelParameter& p : parameters_) p.pendingUses = p.uses;
    const std::size_t last = workload_.layers.size() - 1;
    // The last layer's output (the loss) is still held by the training loop.
    const BufferId loss = valueBuffer(last, workload_.typeOf(last).output);
    for (std::size_t l = workload_.layers.size(); l-- > 0;) {
        const LayerType& type = workload_.typeOf(l);
        if (input_.training.recompute == Recompute::Full && type.isBlock) {
            // Run the block again from its input, keeping what backward needs, and drop the second copy of its output.
            hold(valueBuffer(l, 0));
            forwardLayer(l, true, Phase::Recompute);
            release(valueBuffer(l, type.output));
            release(valueBuffer(l, 0));  // the checkpoint's hold; the saving ops hold it now where they need it
        }
        backwardLayer(l, listener);
    }
    release(loss);
}

void StepWriter::backwardLayer(std::size_t layer, GradientListener* listener) {
    const LayerType& type = workload_.typeOf(layer);
    const LayerPlan& plan = plans_[static_cast<std::size_t>(workload_.layers[layer].type)];
    const std::uint32_t offset = valueOffset_[layer];
    const auto gradientSlot = [&](int v) -> BufferId& {
        // A layer's input and the previous layer's output are one tensor.
        if (v == 0 && layer > 0) return gradients_[valueOffset_[layer - 1] + static_cast<std::uint32_t>(workload_.typeOf(layer - 1).output)];
        return gradients_[offset + static_cast<std::uint32_t>(v)];
    };
    for (int o = static_cast<int>(type.ops.size()) - 1; o >= 0; --o) {
        const Op& op = type.ops[static_cast<std::size_t>(o)];
        const OpPlan& opPlan = plan.ops[static_cast<std::size_t>(o)];
        if (o == plan.lastRecomputed) runForwardOps(layer, plan.firstRecomputed, plan.lastRecomputed, true, Phase::Recompute, false);

        const std::size_t kernels = op.backward.size();
        // Without a kernel of its own (views, residual adds) the output's gradient simply becomes the inputs' gradient.
        const bool passesOn = kernels == 0 || op.gradientInPlace;
        std::vector<BufferId> fresh;  // gradients that this op's first kernel allocates
        const auto needsGradient = [&](int v) { return plan.differentiable[static_cast<std::size_t>(v)] && !(v == 0 && layer == 0); };
        BufferId outputGradient = kNone;
        for (const int v : op.outputs)
            if (gradientSlot(v) != kNone) outputGradient = gradientSlot(v);

        for (std::size_t k = 0; k < kernels; ++k) {
            opTask(layer, o, k, backwardKernels_[static_cast<std::size_t>(workload_.layers[layer].type)][static_cast<std::size_t>(o)] + static_cast<std::uint32_t>(k), Phase::Backward);
            if (k == 0) {
                for (const int v : op.inputs) {
                    if (!needsGradient(v)) continue;
                    BufferId& slot = gradientSlot(v);
                    if (slot != kNone || passesOn) continue;  // a second consumer adds to what the first one wrote
                    slot = addBuffer({type.values[static_cast<std::size_t>(v)].bytes(), MemoryCategory::Workspace, BufferRole::ValueGradient,
                                              type.values[static_cast<std::size_t>(v)].dtype, false, false, static_cast<std::int32_t>(layer), v});
                    hold(slot);
                    writer_.use(slot, UseKind::Allocate);
                    fresh.push_back(slot);
                }
                if (outputGradient != kNone) writer_.use(outputGradient, UseKind::Read);
                for (const int v : opPlan.saved) writer_.use(valueBuffer(layer, v), UseKind::Read);
            }
            if (k + 1 == kernels)
                for (const BufferId buffer : fresh) writer_.use(buffer, UseKind::Write);
        }
        if (passesOn && outputGradient != kNone)
            for (const int v : op.inputs) {
                if (!needsGradient(v) || gradientSlot(v) != kNone) continue;
                gradientSlot(v) = outputGradient;
                hold(outputGradient);
            }
        if (kernels > 0)
            for (const int p : op.parameters) contributeGradient(layer, p);
        // This op is done: its saved values and its output's gradient have one holder less.
        for (const int v : opPlan.saved) release(valueBuffer(layer, v));
        for (const int v : op.outputs) {
            BufferId& slot = gradientSlot(v);
            if (slot == kNone) continue;
            release(slot);
            slot = kNone;
        }
        if (listener)
            for (const int p : op.parameters) {
                const std::uint32_t index = parameterIndex_[layer][static_cast<std::size_t>(p)];
                if (parameters_[index].pendingUses == 0) listener->onGradientReady(*this, index);
            }
    }
    if (layer == 0) {
        // The gradient of the first value, if any op made one, has no reader.
        BufferId& slot = gradients_[offset];
        if (slot != kNone) release(slot);
        slot = kNone;
    }
}

void StepWriter::contributeGradient(std::size_t layer, int local) {
    const std::uint32_t index = parameterIndex_[layer][static_cast<std::size_t>(local)];
    ModelParameter& p = parameters_[index];
    const Precision& precision = input_.training.precision;
    const Bytes produced = p.elements * sizeOf(precision.parameter), kept = p.elements * sizeOf(p.gradientDtype);
    const auto part = static_cast<std::uint16_t>(p.index);
    if (!p.hasGradient && !p.zeroed && p.gradientDtype == precision.parameter) {
        // AccumulateGrad keeps the tensor that backward produced.
        if (p.ownsGradient) {
            writer_.use(p.gradient, UseKind::Allocate);
            references_[p.gradient] = 1;
        }
        writer_.use(p.gradient, UseKind::Write);
    } else {
        // A new tensor, then added (or cast and added) into the one that is kept.
        const BufferId fresh = addBuffer({produced, MemoryCategory::Workspace, BufferRole::Gradient, precision.parameter, false, false, p.layer, p.index});
        writer_.use(fresh, UseKind::Allocate);
        writer_.use(fresh, UseKind::Write);
        const bool first = !p.hasGradient && !p.zeroed;
        memoryKernel(kComputeStream, Phase::Backward, first ? TaskRole::GradientCast : TaskRole::GradientAccumulate, first ? "cast" : "add",
                     produced + (first ? 1 : 2) * kept, p.layer, part);
        if (first && p.ownsGradient) {
            writer_.use(p.gradient, UseKind::Allocate);
            references_[p.gradient] = 1;
        }
        writer_.use(fresh, UseKind::Read);
        writer_.use(p.gradient, UseKind::Write);
        writer_.use(fresh, UseKind::Free);
    }
    p.hasGradient = true;
    --p.pendingUses;
}

void StepWriter::moveGradient(std::uint32_t index, BufferId target) {
    ModelParameter& p = parameters_[index];
    if (p.ownsGradient && p.hasGradient) release(p.gradient);
    p.ownsGradient = false;
    p.gradient = target;
}

void StepWriter::keepGradientIn(std::uint32_t index, BufferId target, DType dtype) {
    ModelParameter& p = parameters_[index];
    p.gradient = target;
    p.gradientDtype = dtype;
    p.ownsGradient = false;
    p.zeroed = true;
}

void StepWriter::castGradientsToParameterType() {
    const DType dtype = input_.training.precision.parameter;
    for (ModelParameter& p : parameters_) {
        if (p.gradientDtype == dtype) continue;  // .to() of the same type is the same tensor
        const BufferId cast = addBuffer({p.elements * sizeOf(dtype), MemoryCategory::Gradients, BufferRole::Gradient, dtype, false, false, p.layer, p.index});
        memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::GradientCast, "cast", p.elements * (sizeOf(p.gradientDtype) + sizeOf(dtype)), p.layer,
                     static_cast<std::uint16_t>(p.index));
        writer_.use(cast, UseKind::Allocate);
        hold(cast);
        writer_.use(p.gradient, UseKind::Read);
        writer_.use(cast, UseKind::Write);
        p.gradient = cast;
        p.gradientDtype = dtype;
        p.ownsGradient = true;
    }
}

std::uint32_t StepWriter::internKernel(std::string_view name, Bytes bytes) {
    const auto [it, isNew] = interned_.try_emplace({name, bytes}, static_cast<std::uint32_t>(schedule_.kernels.size()));
    if (isNew) {
        KernelWork work;
        work.cls = KernelClass::Memory;
        work.bytes = static_cast<double>(bytes);
        work.name = name;
        schedule_.kernels.push_back(work);
    }
    return it->second;
}

TaskId StepWriter::memoryKernel(StreamId stream, Phase phase, TaskRole role, std::string_view name, Bytes bytes, std::int32_t layer, std::uint16_t part) {
    Task task;
    task.kind = TaskKind::Kernel;
    task.phase = phase;
    task.role = role;
    task.stream = stream;
    task.work = internKernel(name, bytes);
    task.layer = layer;
    task.part = part;
    return addTask(task);
}

TaskId StepWriter::collective(StreamId stream, Phase phase, TaskRole role, CollectiveOp op, DType dtype, std::int64_t elements, std::uint32_t axis,
                              std::int32_t layer, std::uint16_t part) {
    schedule_.collectives.push_back({op, dtype, elements, axis});
    Task task;
    task.kind = TaskKind::Collective;
    task.phase = phase;
    task.role = role;
    task.stream = stream;
    task.work = static_cast<std::uint32_t>(schedule_.collectives.size() - 1);
    task.layer = layer;
    task.part = part;
    return addTask(task);
}

void StepWriter::optimizerStep() {
    const TrainingConfig& training = input_.training;
    std::vector<std::int64_t> elements;
    elements.reserve(parameters_.size());
    for (const ModelParameter& p : parameters_) elements.push_back(p.elements);

    const auto addKernels = [&](const std::vector<KernelWork>& kernels, TaskRole role) {
        std::uint16_t part = 0;
        for (const KernelWork& kernel : kernels) {
            schedule_.kernels.push_back(kernel);
            Task task;
            task.kind = TaskKind::Kernel;
            task.phase = Phase::Optimizer;
            task.role = role;
            task.stream = kComputeStream;
            task.work = static_cast<std::uint32_t>(schedule_.kernels.size() - 1);
            task.part = part++;
            addTask(task);
        }
    };
    if (training.precision.lossScaling) {
        addKernels(gradientUnscaling(training.precision, elements), TaskRole::Unscale);
        // GradScaler.step reads whether a gradient overflowed before it lets the optimizer run.
        Task wait;
        wait.kind = TaskKind::HostSync;
        wait.phase = Phase::Optimizer;
        wait.role = TaskRole::Unscale;
        wait.stream = kHostStream;
        addTask(wait);
        writer_.dependOn(lastCompute_);
    }
    if (training.gradientClipping) addKernels(gradientClipping(training.precision, elements), TaskRole::ClipGradients);

    const std::size_t firstTask = rankProgram_.tasks.size();
    addKernels(ringside::optimizerStep(training.optimizer, training.precision, elements), TaskRole::OptimizerKernel);
    if (rankProgram_.tasks.size() == firstTask) return;
    const Bytes transient = foreachTransientBytes(training.optimizer, training.precision, elements);
    // Uses belong to the last kernel: the whole step reads gradients and writes parameters.
    if (input_.step == StepKind::First)
        for (const ModelParameter& p : parameters_) {
            const Bytes bytes = stateBytes(p);
            if (bytes == 0) continue;
            const BufferId state = addBuffer({bytes, MemoryCategory::OptimizerState, BufferRole::OptimizerState, DType::Fp32, false, true, p.layer, p.index});
            writer_.use(state, UseKind::Allocate);
        }
    if (transient > 0) {
        const BufferId workspace = addBuffer({transient, MemoryCategory::Workspace, BufferRole::Workspace, DType::Fp32, false, false, -1, 0});
        writer_.use(workspace, UseKind::Allocate);
        writer_.use(workspace, UseKind::Free);
    }
    for (const ModelParameter& p : parameters_) {
        writer_.use(p.gradient, UseKind::Read);
        writer_.use(p.buffer, UseKind::Write);
    }
}

void StepWriter::endStep() {
    // zero_grad(set_to_none=True): the gradients' own tensors go; a bucket stays.
    for (ModelParameter& p : parameters_) {
        if (p.ownsGradient && p.hasGradient) release(p.gradient);
        p.hasGradient = false;
    }
    if (input_.training.readLossEachStep) readLoss();
}

void StepWriter::readLoss() {
    Task task;
    task.kind = TaskKind::HostSync;
    task.phase = Phase::Optimizer;
    task.role = TaskRole::LossRead;
    task.stream = kHostStream;
    addTask(task);
    writer_.dependOn(lastCompute_);
}

}  // namespace ringside
