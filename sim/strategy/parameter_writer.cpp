// The part of a step that is about parameters: their state, their gradients, and the optimizer.
#include <algorithm>

#include "model/cost/optimizer_work.h"
#include "model/memory/optimizer_state.h"
#include "sim/strategy/step_writer.h"

namespace ringside {

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
        hostTask(TaskKind::HostSync, Phase::Optimizer, TaskRole::Unscale);
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
    hostTask(TaskKind::HostSync, Phase::Optimizer, TaskRole::LossRead);
    writer_.dependOn(lastCompute_);
}

}  // namespace ringside
