#include "model/workload/layer_builder.h"

#include <algorithm>
#include <utility>

#include "model/workload/kernels_of.h"

namespace ringside {

LayerBuilder::LayerBuilder(std::string_view name, const Precision& precision, MemoryFormat images) : precision_(&precision), images_(images) {
    type_.name = name;
    type_.values.reserve(48);
    type_.parameters.reserve(16);
    type_.ops.reserve(24);
}

int LayerBuilder::value(std::string_view name, Shape shape, DType dtype, bool needsGradient) {
    Value& added = type_.values.emplace_back();
    added.name = name;
    added.shape = std::move(shape);
    added.dtype = dtype;
    needsGradient_.push_back(needsGradient);
    writesParts_.push_back(false);
    return static_cast<int>(type_.values.size()) - 1;
}

int LayerBuilder::parameter(std::string name, Shape shape) {
    type_.parameters.push_back({std::move(name), std::move(shape)});
    return static_cast<int>(type_.parameters.size()) - 1;
}

WeightBias LayerBuilder::module(std::string_view name, Shape weight, std::int64_t biasSize) {
    WeightBias out;
    std::string full;
    full.reserve(name.size() + 8);
    full.append(name).append(".weight");
    out.weight = parameter(std::move(full), std::move(weight));
    if (biasSize > 0) {
        std::string bias;
        bias.reserve(name.size() + 6);
        bias.append(name).append(".bias");
        out.bias = parameter(std::move(bias), {biasSize});
    }
    return out;
}

void LayerBuilder::buffer(std::string name, Shape shape, DType dtype) { type_.buffers.push_back({std::move(name), std::move(shape), dtype}); }

Op& LayerBuilder::op(OpKind kind, std::string_view name, std::initializer_list<int> inputs, std::initializer_list<int> outputs) {
    Op& added = type_.ops.emplace_back();
    added.kind = kind;
    added.name = name;
    added.inputs = inputs;
    added.outputs = outputs;
    return added;
}

void LayerBuilder::capturable(GraphScope scope, int first) {
    for (auto i = static_cast<std::size_t>(first); i < type_.ops.size(); ++i)
        if (type_.ops[i].graphScope == GraphScope::None) type_.ops[i].graphScope = scope;
}

LayerType LayerBuilder::finish(int output, bool isBlock, bool localNames) {
    // Backward visits the consumers from the last to the first: the last one brings the first gradient, every other one adds to it.
    std::vector<bool> hasGradient(type_.values.size(), false);
    for (auto op = type_.ops.rbegin(); op != type_.ops.rend(); ++op) {
        for (const int input : op->inputs) {
            const auto v = static_cast<std::size_t>(input);
            if (!needsGradient_[v] || writesParts_[v]) continue;
            if (hasGradient[v]) {
                op->backward.push_back(memoryWork("gradient add", 3.0 * static_cast<double>(bytes(input))));
                op->inputGradientKernels = 0;  // complete with the sum only
            }
            hasGradient[v] = true;
        }
    }
    std::stable_sort(type_.segments.begin(), type_.segments.end(), [](const RecomputeSegment& a, const RecomputeSegment& b) { return a.first < b.first; });
    type_.output = output;
    type_.isBlock = isBlock;
    type_.localNames = localNames;
    return std::move(type_);
}

}  // namespace ringside
