// The part of a step that is about parameters: their state, their gradients, and the optimizer.
#include <algorithm>
#include <array>

#include "model/cost/optimizer_work.h"
#include "model/memory/optimizer_state.h"
#include "sim/strategy/step_writer.h"

namespace ringside {
namespace {

std::vector<std::int64_t> elementsOf(std::span<const OptimizerTarget> targets) {
    std::vector<std::int64_t> elements;
    elements.reserve(targets.size());
    for (const OptimizerTarget& target : targets) elements.push_back(target.elements);
    return elements;
}

}  // namespace

void StepWriter::declareState(const StateOptions& options) {
    const Precision& precision = input_.training.precision;
    gradientDtype_ = options.gradientDtype.value_or(precision.gradient);
    optimizerPrecision_ = options.optimizerPrecision.value_or(precision);
    parameterIndex_.resize(workload_.layers.size());
    std::vector<bool> mine(workload_.layers.size());
    for (const LayerRange& chunk : part_.chunks)
        for (std::size_t l = chunk.begin; l < chunk.end; ++l) mine[l] = true;
    // A tied tensor belongs to its owner; where the owner is on another stage, this one has a copy.
    const auto ownedHere = [&](std::size_t layer, int p) {
        for (const TiedParameter& tie : workload_.ties)
            if (tie.layer == static_cast<int>(layer) && tie.parameter == p) return !mine[static_cast<std::size_t>(tie.ownerLayer)];
        return true;
    };
    for (std::size_t l = 0; l < workload_.layers.size(); ++l) {
        if (!mine[l]) continue;
        const LayerType& type = workload_.typeOf(l);
        const int count = static_cast<int>(type.parameters.size());
        parameterIndex_[l].assign(type.parameters.size(), 0);
        for (int p = 0; p < count; ++p) {
            if (!workload_.ties.empty() && !ownedHere(l, p)) continue;
            ModelParameter parameter;
            parameter.layer = static_cast<std::int32_t>(l);
            parameter.index = p;
            parameter.elements = type.parameters[static_cast<std::size_t>(p)].elements();
            parameter.expert = type.parameters[static_cast<std::size_t>(p)].expert;
            parameter.partialOverTensor = type.parameters[static_cast<std::size_t>(p)].partialOverTensor;
            if (options.parameters)
                parameter.buffer = addBuffer({parameter.elements * sizeOf(precision.parameter), MemoryCategory::Parameters, BufferRole::Parameter, precision.parameter,
                                              true, false, parameter.layer, p});
            parameterIndex_[l][static_cast<std::size_t>(p)] = static_cast<std::uint32_t>(parameters_.size());
            parameters_.push_back(parameter);
            const Shape& shape = type.parameters[static_cast<std::size_t>(p)].shape;
            const std::int64_t row = shape.empty() || shape[0] == 0 ? 1 : parameter.elements / shape[0];
            writer_.program().parameters.push_back({parameter.layer, p, parameter.elements, row});
        }
        Bytes stateBytes = 0;
        for (const StateTensor& state : type.buffers) stateBytes += elementCount(state.shape) * sizeOf(state.dtype);
        if (stateBytes > 0)
            addBuffer({stateBytes, MemoryCategory::Parameters, BufferRole::State, DType::Fp32, true, false, static_cast<std::int32_t>(l), 0});
    }
    for (const TiedParameter& tie : workload_.ties) {
        if (!mine[static_cast<std::size_t>(tie.layer)] || !mine[static_cast<std::size_t>(tie.ownerLayer)]) continue;
        const std::uint32_t owner = parameterOf(static_cast<std::size_t>(tie.ownerLayer), tie.ownerParameter);
        parameterIndex_[static_cast<std::size_t>(tie.layer)][static_cast<std::size_t>(tie.parameter)] = owner;
        ++parameters_[owner].uses;
    }
    // Gradients and optimizer state come after all parameters, as they do in a process.
    for (ModelParameter& p : parameters_) {
        p.gradientDtype = gradientDtype_;
        const bool kept = !input_.training.zeroGradSetToNone;
        p.gradient = addBuffer({p.elements * sizeOf(gradientDtype_), MemoryCategory::Gradients, BufferRole::Gradient, gradientDtype_, kept, false, p.layer, p.index});
        if (kept) {
            p.ownsGradient = false;
            p.zeroed = true;
        }
    }
    opened_.assign(parameters_.size(), kNoBuffer);
    if (options.optimizer) declareOptimizerState(wholeParameters());
}

std::vector<OptimizerTarget> StepWriter::wholeParameters() const {
    std::vector<OptimizerTarget> targets;
    targets.reserve(parameters_.size());
    for (const ModelParameter& p : parameters_) targets.push_back({p.elements, p.buffer, p.gradient, p.layer, p.index, false});
    return targets;
}

void StepWriter::declareOptimizerState(std::span<const OptimizerTarget> targets, bool onHost) {
    const auto add = [&](Bytes bytes, BufferRole whole, BufferRole shard, const OptimizerTarget& target) {
        Buffer buffer{bytes, MemoryCategory::OptimizerState, target.flat ? shard : whole, DType::Fp32, true, false, target.layer, target.index};
        buffer.onHost = onHost;
        buffer.layout = target.layout;
        return addBuffer(buffer);
    };
    if (optimizerPrecision_.masterWeights)
        for (const OptimizerTarget& target : targets)
            optimizerBuffers_[keyOf(target)].master = add(target.elements * 4, BufferRole::MasterParameter, BufferRole::MasterShard, target);
    if (input_.step == StepKind::Steady)
        for (const OptimizerTarget& target : targets) {
            const Bytes bytes = stateBytes(target);
            if (bytes > 0) optimizerBuffers_[keyOf(target)].state = add(bytes, BufferRole::OptimizerState, BufferRole::OptimizerShard, target);
        }
}

Bytes StepWriter::stateBytes(const OptimizerTarget& target) const {
    const Precision& precision = optimizerPrecision_;
    const Bytes master = precision.masterWeights ? 4 * target.elements : 0;  // a buffer of its own: it exists before step 1
    if (target.flat) return flatOptimizerStateBytes(input_.training.optimizer, precision, target.elements) - master;
    const Shape& shape = workload_.typeOf(static_cast<std::size_t>(target.layer)).parameters[static_cast<std::size_t>(target.index)].shape;
    if (target.rows == 0) return optimizerStateBytes(input_.training.optimizer, precision, shape) - master;
    Shape rows = shape;
    if (!rows.empty()) rows[0] = target.rows;
    return optimizerStateBytes(input_.training.optimizer, precision, rows) - master;
}

std::vector<std::uint32_t> StepWriter::readyOrder() const {
    // Backward visits layers and ops in reverse; a tied parameter is complete at its last use.
    std::vector<std::uint32_t> order;
    std::vector<int> pending;
    for (const ModelParameter& p : parameters_) pending.push_back(p.uses);
    for (std::size_t c = part_.chunks.size(); c-- > 0;)
        for (std::size_t l = part_.chunks[c].end; l-- > part_.chunks[c].begin;) {
            const LayerType& type = workload_.typeOf(l);
            for (std::size_t o = type.ops.size(); o-- > 0;)
                for (const int local : type.ops[o].parameters) {
                    const std::uint32_t p = parameterOf(l, local);
                    if (--pending[p] == 0) order.push_back(p);
                }
        }
    return order;
}

// What the op's kernels write: the gradient itself where AccumulateGrad would keep the tensor that backward produced, else a
// new tensor, which is then added (or cast and added) into the one that is kept.
// `inProduct`: the gradient is a product's, which may add it to the main gradient itself.
void StepWriter::openGradient(std::size_t layer, int local, bool inProduct) {
    const std::uint32_t index = parameterOf(layer, local);
    ModelParameter& p = parameters_[index];
    if (inProduct && schedule_.addsInProducts) {
        opened_[index] = p.gradient;
        return;
    }
    const DType produced = input_.training.precision.parameter;
    if (!p.hasGradient && !p.zeroed && p.gradientDtype == produced) {
        opened_[index] = p.gradient;
        if (!p.ownsGradient) return;
        references_[p.gradient] = 1;
    } else {
        opened_[index] = addBuffer({p.elements * sizeOf(produced), MemoryCategory::Workspace, BufferRole::Gradient, produced, false, false, p.layer, p.index});
    }
    writer_.use(opened_[index], UseKind::Allocate);
}

void StepWriter::contributeGradient(std::size_t layer, int local) {
    ModelParameter& p = parameters_[parameterOf(layer, local)];
    const Precision& precision = input_.training.precision;
    const Bytes produced = p.elements * sizeOf(precision.parameter), kept = p.elements * sizeOf(p.gradientDtype);
    const auto part = static_cast<std::uint16_t>(p.index);
    const BufferId fresh = std::exchange(opened_[parameterOf(layer, local)], kNoBuffer);
    if (fresh != p.gradient) {
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

void StepWriter::dropGradient(std::uint32_t index) {
    ModelParameter& p = parameters_[index];
    if (p.ownsGradient && p.hasGradient) release(p.gradient);
    p.hasGradient = false;
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

void StepWriter::optimizerStep() { optimizerStep(wholeParameters()); }

void StepWriter::addOptimizerKernels(const std::vector<KernelWork>& kernels, TaskRole role) {
    std::uint16_t part = 0;
    for (const KernelWork& work : kernels) kernel(kComputeStream, Phase::Optimizer, role, work, -1, part++);
}

void StepWriter::finishGradients(std::span<const OptimizerTarget> targets, std::optional<std::uint32_t> normAxis) {
    const TrainingConfig& training = input_.training;
    if (!optimizerPrecision_.lossScaling && !training.gradientClipping) return;
    const std::vector<std::int64_t> elements = elementsOf(targets);
    // One number (a norm, whether something overflowed) is summed over whoever holds other parts of the gradients.
    const auto reduceNumber = [&] {
        for (const std::uint32_t axis : {normAxis.value_or(kNoAxis), axes_.tensor, axes_.pipeline})
            if (axis != kNoAxis) collective(kComputeStream, Phase::Optimizer, TaskRole::NormReduce, CollectiveOp::AllReduce, DType::Fp32, 1, axis);
    };
    if (optimizerPrecision_.lossScaling) {
        addOptimizerKernels(gradientUnscaling(optimizerPrecision_, elements), TaskRole::Unscale);
        reduceNumber();
        // GradScaler.step reads whether a gradient overflowed before it lets the optimizer run.
        hostTask(TaskKind::HostSync, Phase::Optimizer, TaskRole::Unscale);
        writer_.dependOn(lastCompute_);
    }
    if (training.gradientClipping) {
        reduceNumber();
        addOptimizerKernels(gradientClipping(optimizerPrecision_, elements), TaskRole::ClipGradients);
    }
}

void StepWriter::allocateOptimizerState(std::span<const OptimizerTarget> targets) {
    if (input_.step != StepKind::First) return;
    for (const OptimizerTarget& target : targets) {
        const Bytes bytes = stateBytes(target);
        if (bytes == 0) continue;
        const BufferId state = addBuffer({bytes, MemoryCategory::OptimizerState, target.flat ? BufferRole::OptimizerShard : BufferRole::OptimizerState, DType::Fp32,
                                          false, true, target.layer, target.index});
        writer_.use(state, UseKind::Allocate);
    }
}

void StepWriter::optimizerStep(std::span<const OptimizerTarget> targets, std::optional<std::uint32_t> normAxis) {
    const TrainingConfig& training = input_.training;
    finishGradients(targets, normAxis);
    const std::vector<std::int64_t> elements = elementsOf(targets);
    const std::size_t firstTask = writer_.program().tasks.size();
    addOptimizerKernels(ringside::optimizerStep(training.optimizer, optimizerPrecision_, elements), TaskRole::OptimizerKernel);
    if (writer_.program().tasks.size() == firstTask) return;
    const Bytes transient = foreachTransientBytes(training.optimizer, optimizerPrecision_, elements);
    // Uses belong to the last kernel: the whole step reads gradients and writes parameters.
    allocateOptimizerState(targets);
    if (transient > 0) {
        const BufferId workspace = addBuffer({transient, MemoryCategory::Workspace, BufferRole::Workspace, DType::Fp32, false, false, -1, 0});
        writer_.use(workspace, UseKind::Allocate);
        writer_.use(workspace, UseKind::Free);
    }
    useTargets(targets);
}

void StepWriter::useTargets(std::span<const OptimizerTarget> targets) {
    for (const OptimizerTarget& target : targets) {
        if (target.gradient != kNoBuffer) writer_.use(target.gradient, UseKind::Read, target.view);
        if (target.parameter != kNoBuffer) writer_.use(target.parameter, UseKind::Write, target.view);
        const auto own = optimizerBuffers_.find(keyOf(target));
        if (own == optimizerBuffers_.end()) continue;
        for (const BufferId buffer : {own->second.state, own->second.master})
            if (buffer != kNoBuffer) writer_.use(buffer, UseKind::Write);
    }
}

void StepWriter::optimizerStepOf(std::uint32_t index) {
    const ModelParameter& p = parameters_[index];
    const OptimizerTarget target{p.elements, p.buffer, p.gradient, p.layer, p.index, false};
    optimizerStep(std::span(&target, 1));
    dropGradient(index);
}

void StepWriter::endStep() {
    if (!input_.training.zeroGradSetToNone)
        for (const ModelParameter& p : parameters_) {
            memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::GradientZero, "zero", p.elements * sizeOf(p.gradientDtype), p.layer, static_cast<std::uint16_t>(p.index));
            writer_.use(p.gradient, UseKind::Write);
        }
    // zero_grad(set_to_none=True): the gradients' own tensors go; a bucket stays.
    for (ModelParameter& p : parameters_) {
        if (p.ownsGradient && p.hasGradient) release(p.gradient);
        p.hasGradient = false;
    }
    // The batch of the next step is needed when this one ends.
    if (lastLoad_ != kNoTask) hostWait(Phase::Input, TaskRole::LoadBatch, std::array{lastLoad_});
    if (input_.training.readLossEachStep) readLoss();
}

void StepWriter::readLoss() {
    hostTask(TaskKind::HostSync, Phase::Optimizer, TaskRole::LossRead);
    writer_.dependOn(lastCompute_);
}

}  // namespace ringside
