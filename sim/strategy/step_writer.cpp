#include "sim/strategy/step_writer.h"

#include <algorithm>
#include <limits>

#include "model/base/check.h"

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

void StepWriter::hostTask(TaskKind kind, Phase phase, TaskRole role) {
    Task task;
    task.kind = kind;
    task.phase = phase;
    task.role = role;
    task.stream = kHostStream;
    addTask(task);
}

void StepWriter::stepOverhead() {
    hostTask(TaskKind::HostWork, Phase::Input, TaskRole::StepOverhead);
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
        fresh_.clear();
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
                    fresh_.push_back(slot);
                }
                if (outputGradient != kNone) writer_.use(outputGradient, UseKind::Read);
                for (const int v : opPlan.saved) writer_.use(valueBuffer(layer, v), UseKind::Read);
            }
            if (k + 1 == kernels)
                for (const BufferId buffer : fresh_) writer_.use(buffer, UseKind::Write);
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

std::uint32_t StepWriter::internKernel(std::string_view name, Bytes bytes) {
    const auto [it, isNew] = interned_.try_emplace({bytes, name}, static_cast<std::uint32_t>(schedule_.kernels.size()));
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

}  // namespace ringside
