#include "model/workload/workload.h"

#include <algorithm>
#include <numeric>

namespace ringside {

std::int64_t elementCount(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
}

std::string_view nameOf(OpKind kind) {
    switch (kind) {
        case OpKind::Embedding: return "embedding";
        case OpKind::PositionEmbedding: return "position-embedding";
        case OpKind::Linear: return "linear";
        case OpKind::Attention: return "attention";
        case OpKind::Scores: return "scores";
        case OpKind::AttentionSoftmax: return "attention-softmax";
        case OpKind::AttentionValues: return "attention-values";
        case OpKind::Rotary: return "rotary";
        case OpKind::RepeatHeads: return "repeat-heads";
        case OpKind::LatentHeads: return "latent-heads";
        case OpKind::Norm: return "norm";
        case OpKind::BatchNorm: return "batch-norm";
        case OpKind::Gelu: return "gelu";
        case OpKind::Silu: return "silu";
        case OpKind::GatedSilu: return "gated-silu";
        case OpKind::Relu: return "relu";
        case OpKind::Tanh: return "tanh";
        case OpKind::Sigmoid: return "sigmoid";
        case OpKind::Add: return "add";
        case OpKind::ChannelScale: return "channel-scale";
        case OpKind::Dropout: return "dropout";
        case OpKind::Convolution: return "convolution";
        case OpKind::MaxPool: return "max-pool";
        case OpKind::AveragePool: return "average-pool";
        case OpKind::Flatten: return "flatten";
        case OpKind::Concat: return "concat";
        case OpKind::Router: return "router";
        case OpKind::ExpertDispatch: return "expert-dispatch";
        case OpKind::ExpertCombine: return "expert-combine";
        case OpKind::CrossEntropy: return "cross-entropy";
        case OpKind::TensorCopy: return "tensor-copy";
        case OpKind::TensorReduce: return "tensor-reduce";
        case OpKind::TensorGather: return "tensor-gather";
        case OpKind::SequenceGather: return "sequence-gather";
        case OpKind::SequenceScatter: return "sequence-scatter";
        case OpKind::AllToAll: return "all-to-all";
        case OpKind::LogitsMax: return "logits-max";
        case OpKind::LogitsSum: return "logits-sum";
    }
    return "?";
}

std::string_view nameOf(MeshAxis axis) {
    switch (axis) {
        case MeshAxis::Tensor: return "tp";
        case MeshAxis::Context: return "cp";
        case MeshAxis::Expert: return "ep";
    }
    return "?";
}

bool sharesMemory(const Op& op) {
    const bool inPlace = op.forwardCollectives.empty() || op.kind == OpKind::TensorReduce;
    return op.forward.empty() && op.inputs.size() == 1 && op.outputs.size() == 1 && inPlace;
}

bool Workload::isTied(int layer, int parameter) const {
    return std::any_of(ties.begin(), ties.end(), [&](const TiedParameter& tie) { return tie.layer == layer && tie.parameter == parameter; });
}

namespace {

// Sums once per type and multiplies by how often it occurs: a deep model costs what its kinds of layer cost.
template <class PerType>
auto sumOverLayers(const Workload& workload, PerType perType) {
    std::vector<std::int64_t> uses(workload.types.size(), 0);
    for (const Layer& layer : workload.layers) ++uses[static_cast<std::size_t>(layer.type)];
    decltype(perType(workload.types.front())) total = 0;
    for (std::size_t t = 0; t < uses.size(); ++t)
        total += static_cast<decltype(total)>(uses[t]) * perType(workload.types[t]);
    return total;
}

double flopsOf(const std::vector<KernelWork>& kernels) {
    double flops = 0;
    for (const KernelWork& kernel : kernels) flops += kernel.flops;
    return flops;
}

// Tied parameters count once.
template <class Counts>
std::int64_t elementsOfParameters(const Workload& workload, Counts counts) {
    const auto elementsOf = [&](const Parameter& parameter) { return counts(parameter) ? parameter.elements() : 0; };
    std::int64_t count = sumOverLayers(workload, [&](const LayerType& type) {
        std::int64_t elements = 0;
        for (const Parameter& parameter : type.parameters) elements += elementsOf(parameter);
        return elements;
    });
    for (const TiedParameter& tie : workload.ties)
        count -= elementsOf(workload.typeOf(static_cast<std::size_t>(tie.layer)).parameters[static_cast<std::size_t>(tie.parameter)]);
    return count;
}

}  // namespace

std::int64_t parameterCount(const Workload& workload) {
    return elementsOfParameters(workload, [](const Parameter&) { return true; });
}

std::int64_t partialGradientElements(const Workload& workload) {
    return elementsOfParameters(workload, [](const Parameter& parameter) { return parameter.partialOverTensor; });
}

std::int64_t bufferElementCount(const Workload& workload) {
    return sumOverLayers(workload, [](const LayerType& type) {
        std::int64_t elements = 0;
        for (const StateTensor& buffer : type.buffers) elements += elementCount(buffer.shape);
        return elements;
    });
}

double forwardFlops(const Workload& workload) {
    return sumOverLayers(workload, [](const LayerType& type) {
        double flops = 0;
        for (const Op& op : type.ops) flops += flopsOf(op.forward);
        return flops;
    });
}

double backwardFlops(const Workload& workload) {
    return sumOverLayers(workload, [](const LayerType& type) {
        double flops = 0;
        for (const Op& op : type.ops) flops += flopsOf(op.backward);
        return flops;
    });
}

Bytes savedBytes(const LayerType& type) {
    std::vector<int> memoryOf(type.values.size());
    std::iota(memoryOf.begin(), memoryOf.end(), 0);
    std::vector<bool> saved(type.values.size(), false);
    for (const Op& op : type.ops) {
        if (sharesMemory(op)) {
            const auto from = static_cast<std::size_t>(op.inputs[0]), to = static_cast<std::size_t>(op.outputs[0]);
            if (type.values[from].bytes() == type.values[to].bytes()) memoryOf[to] = memoryOf[from];  // a slice counts by itself
        }
        for (const int value : op.saves) saved[static_cast<std::size_t>(memoryOf[static_cast<std::size_t>(value)])] = true;
    }
    Bytes bytes = 0;
    for (std::size_t v = 0; v < saved.size(); ++v)
        if (saved[v]) bytes += type.values[v].bytes();
    return bytes;
}

std::string parameterName(const Workload& workload, std::size_t layer, int parameter) {
    const LayerType& type = workload.typeOf(layer);
    const std::string& local = type.parameters[static_cast<std::size_t>(parameter)].name;
    return type.localNames ? workload.layers[layer].name + "." + local : local;
}

}  // namespace ringside
