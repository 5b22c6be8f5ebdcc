#include "calibrate/execute/value_binding.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/check.h"

namespace ringside {
namespace {

bool isFloat(DType type) { return type == DType::Fp32 || type == DType::Fp64 || type == DType::Bf16 || type == DType::Fp16 || type == DType::Tf32; }

}  // namespace

ValueBinding::ValueBinding(const Schedule& schedule, const RankProgram& program, Contents& contents) : schedule_(schedule), program_(program), contents_(contents) {
    for (const LayerType& type : workload().types) {
        std::vector<int>& producer = producers_.emplace_back(type.values.size(), -1);
        for (std::size_t o = 0; o < type.ops.size(); ++o)
            for (const int v : type.ops[o].outputs) producer[static_cast<std::size_t>(v)] = static_cast<int>(o);
    }
}

Operand ValueBinding::labels(int microStep) const {
    if (labels_.kind != Operand::Kind::None) return labels_;
    const auto found = inputs_.find(microStep);
    CHECK(found != inputs_.end());
    return inBuffer(found->second, workload().typeOf(0).values[0].bytes());
}

Operand ValueBinding::gradient(std::size_t layer, int index) const {
    const auto found = gradients_.find(slotOf(layer, index));
    return found == gradients_.end() ? Operand{} : inBuffer(found->second);
}

void ValueBinding::enterGradient(int microStep, std::size_t layer, int index, BufferId buffer) {
    beginBackward(microStep);
    gradients_[slotOf(layer, index)] = buffer;
}

void ValueBinding::beginBackward(int microStep) {
    if (microStep == backwardStep_) return;
    backwardStep_ = microStep;
    nextLayer_ = workload().layers.size() - 1;
    nextOp_ = static_cast<int>(workload().typeOf(nextLayer_).ops.size()) - 1;
    gradients_.clear();
}

Operand ValueBinding::valueOf(int microStep, std::size_t layer, int value) const {
    if (value == 0) {
        if (layer > 0) return valueOf(microStep, layer - 1, workload().typeOf(layer - 1).output);
        const auto found = inputs_.find(microStep);
        CHECK(found != inputs_.end());
        return inBuffer(found->second);
    }
    const auto found = values_.find({microStep, layer, value});
    if (found != values_.end()) return inBuffer(found->second);
    // Nobody allocated it: it is a view.
    const LayerType& type = workload().typeOf(layer);
    const int producer = producers_[static_cast<std::size_t>(workload().layers[layer].type)][static_cast<std::size_t>(value)];
    CHECK(producer >= 0);
    const Op& op = type.ops[static_cast<std::size_t>(producer)];
    CHECK(sharesMemory(op));
    return valueOf(microStep, layer, op.inputs[0]);
}

ValueBinding::Slot ValueBinding::slotOf(std::size_t layer, int value) const {
    if (value == 0 && layer > 0) return {layer - 1, workload().typeOf(layer - 1).output};
    return {layer, value};
}

bool ValueBinding::needsGradient(std::size_t layer, int value) const {
    return isFloat(workload().typeOf(layer).values[static_cast<std::size_t>(value)].dtype) && !(value == 0 && layer == 0);
}

Result<std::vector<Operand>> ValueBinding::parametersOf(std::size_t layer, const Op& op, std::span<const BufferUse> uses, UseKind kind) {
    std::vector<Operand> out;
    for (const int local : op.parameters) {
        const std::optional<std::uint32_t> p = contents_.parameterOf(static_cast<std::int32_t>(layer), local);
        CHECK(p.has_value());
        Operand place;
        for (const BufferUse& use : uses) {
            if (use.kind != kind) continue;
            const std::optional<std::int64_t> at = contents_.find(use, *p);
            if (at) place = inBuffer(use.buffer, *at * sizeOf(program_.buffers[use.buffer].dtype));
        }
        if (place.kind == Operand::Kind::None)
            return failure(ErrorCode::MissingCapability, schedule_.strategy,
                           fmt::format("the schedule does not say where {} of {} is; this strategy with these settings cannot be run for real",
                                       kind == UseKind::Read ? "the parameter" : "the gradient", parameterName(workload(), layer, local)));
        out.push_back(place);
    }
    return out;
}

Result<OpOperands> ValueBinding::forward(std::span<const Task> group) {
    const Task& first = group.front();
    const auto layer = static_cast<std::size_t>(first.layer);
    const LayerType& type = workload().typeOf(layer);
    const Op& op = type.ops[static_cast<std::size_t>(first.op)];
    OpOperands at;
    for (const BufferUse& use : program_.usesOf(first)) {
        const Buffer& buffer = program_.buffers[use.buffer];
        if (use.kind == UseKind::Allocate && buffer.role == BufferRole::Value) values_[{first.microStep, layer, buffer.index}] = use.buffer;
    }
    for (const int v : op.inputs) at.inputs.push_back(valueOf(first.microStep, layer, v));
    for (const int v : op.outputs) at.outputs.push_back(valueOf(first.microStep, layer, v));
    TRY(at.parameters, parametersOf(layer, op, program_.usesOf(first), UseKind::Read));
    if (op.kind == OpKind::CrossEntropy) at.labels = labels(first.microStep);
    return at;
}

void ValueBinding::passOn(std::size_t layer, const Op& op) {
    BufferId outputGradient = 0;
    bool has = false;
    for (const int v : op.outputs) {
        const auto slot = gradients_.find(slotOf(layer, v));
        if (slot == gradients_.end()) continue;
        outputGradient = slot->second;
        has = true;
    }
    if (has)
        for (const int v : op.inputs)
            if (needsGradient(layer, v)) gradients_.try_emplace(slotOf(layer, v), outputGradient);
}

void ValueBinding::passOver(int microStep, std::size_t layer, int op) {
    beginBackward(microStep);
    while (nextLayer_ != layer || nextOp_ != op) {
        if (nextOp_ < 0) {
            CHECK(nextLayer_ > 0);
            --nextLayer_;
            nextOp_ = static_cast<int>(workload().typeOf(nextLayer_).ops.size()) - 1;
            continue;
        }
        const Op& skipped = workload().typeOf(nextLayer_).ops[static_cast<std::size_t>(nextOp_)];
        passOn(nextLayer_, skipped);
        for (const int v : skipped.outputs) gradients_.erase(slotOf(nextLayer_, v));
        --nextOp_;
    }
}

Result<OpOperands> ValueBinding::backward(std::span<const Task> group) {
    const Task& first = group.front();
    const auto layer = static_cast<std::size_t>(first.layer);
    const LayerType& type = workload().typeOf(layer);
    const Op& op = type.ops[static_cast<std::size_t>(first.op)];
    passOver(first.microStep, layer, first.op);

    OpOperands at;
    at.values.resize(type.values.size());
    for (const std::vector<int>* values : {&op.saves, &op.inputs, &op.outputs})
        for (const int v : *values)
            if (std::find(op.saves.begin(), op.saves.end(), v) != op.saves.end()) at.values[static_cast<std::size_t>(v)] = valueOf(first.microStep, layer, v);
    for (const int v : op.outputs) {
        const auto slot = gradients_.find(slotOf(layer, v));
        at.outputGradients.push_back(slot == gradients_.end() ? Operand{} : inBuffer(slot->second));
    }
    std::vector<BufferId> fresh;
    for (const BufferUse& use : program_.usesOf(first))
        if (use.kind == UseKind::Allocate && program_.buffers[use.buffer].role == BufferRole::ValueGradient) fresh.push_back(use.buffer);
    for (const int v : op.inputs) {
        at.inputGradients.emplace_back();
        at.addsToGradient.push_back(false);
        if (!needsGradient(layer, v)) continue;
        const Slot slot = slotOf(layer, v);
        const auto allocated = std::find_if(fresh.begin(), fresh.end(), [&](BufferId b) { return program_.buffers[b].index == v; });
        if (allocated != fresh.end()) {
            gradients_[slot] = *allocated;
            at.inputGradients.back() = inBuffer(*allocated);
        } else if (const auto known = gradients_.find(slot); known != gradients_.end()) {
            // Handed on to several inputs at once, it may still be somebody's output gradient: then adding to it would spoil that.
            for (const auto& [other, buffer] : gradients_)
                if (buffer == known->second && other != slot && !(other.first == layer && std::find(op.outputs.begin(), op.outputs.end(), other.second) != op.outputs.end()))
                    return failure(ErrorCode::MissingCapability, op.name, "a block whose branches share one gradient cannot be run for real");
            at.inputGradients.back() = inBuffer(known->second);
            at.addsToGradient.back() = true;
        } else if (op.gradientInPlace) {
            continue;  // handed on below
        } else {
            return failure(ErrorCode::MissingCapability, op.name, "the schedule gives its input gradient no buffer");
        }
    }
    TRY(at.parameters, parametersOf(layer, op, program_.usesOf(first), UseKind::Read));
    std::vector<BufferUse> uses;
    for (const Task& task : group)
        for (const BufferUse& use : program_.usesOf(task)) uses.push_back(use);
    TRY(at.parameterGradients, parametersOf(layer, op, uses, UseKind::Write));
    if (op.kind == OpKind::CrossEntropy) at.labels = labels(first.microStep);

    passOn(layer, op);
    for (const int v : op.outputs) gradients_.erase(slotOf(layer, v));
    nextOp_ = first.op - 1;
    return at;
}

}  // namespace ringside
