// LayerBuilder: collects the values, parameters and ops of one LayerType, and adds what autograd adds by itself: the sum of
// gradients where a value has several consumers.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "model/training/training_config.h"
#include "model/workload/workload.h"

namespace ringside {

/// Parameters of one module (indices into the layer's parameters; -1: it has none).
struct WeightBias {
    int weight = -1, bias = -1;
};

class LayerBuilder {
public:
    /// Borrows `precision`, which must outlive the builder.
    LayerBuilder(std::string_view name, const Precision& precision, MemoryFormat images = MemoryFormat::Contiguous);

    const Precision& precision() const { return *precision_; }
    MemoryFormat images() const { return images_; }
    /// What the residual stream and norms are in: fp32 under autocast, else the parameters' type.
    DType streamType() const { return precision_->autocast ? DType::Fp32 : precision_->parameter; }

    /// The first value added is the layer's input.
    int value(std::string_view name, Shape shape, DType dtype, bool needsGradient = true);
    /// The value is a parameter's cast in autocast's cache.
    void markCached(int value) { type_.values[static_cast<std::size_t>(value)].autocastCache = true; }
    const Value& at(int value) const { return type_.values[static_cast<std::size_t>(value)]; }
    Bytes bytes(int value) const { return at(value).bytes(); }
    bool needsGradient(int value) const { return needsGradient_[static_cast<std::size_t>(value)]; }

    /// Parameters are registered in the order of these calls.
    int parameter(std::string name, Shape shape);
    /// module.weight and, if `biasSize` > 0, module.bias.
    WeightBias module(std::string_view name, Shape weight, std::int64_t biasSize);
    Parameter& parameterAt(int parameter) { return type_.parameters[static_cast<std::size_t>(parameter)]; }
    const Parameter& parameterAt(int parameter) const { return type_.parameters[static_cast<std::size_t>(parameter)]; }
    void buffer(std::string name, Shape shape, DType dtype);

    /// Appends an op. The reference is good until the next call.
    Op& op(OpKind kind, std::string_view name, std::initializer_list<int> inputs, std::initializer_list<int> outputs);
    Op& lastOp() { return type_.ops.back(); }  ///< REQUIRES: there is one

    int opCount() const { return static_cast<int>(type_.ops.size()); }
    /// The ops from `first` to `last` are a module that selective recompute can run again, before the backward of op `before`.
    void recomputable(RecomputeModule module, int first, int last, int before) { type_.segments.push_back({module, first, last, before}); }
    /// The ops from `first` on are one, whose output stays.
    void recomputable(RecomputeModule module, int first) { recomputable(module, first, opCount() - 1, opCount() - 1); }

    /// The ops from `first` on belong to this part of a block, unless they belong to one already.
    void capturable(GraphScope scope, int first);

    /// The consumers of `value` write disjoint parts of its gradient (a fused q, k, v): no sum is needed.
    void consumersWriteParts(int value) { writesParts_[static_cast<std::size_t>(value)] = true; }

    /// Adds the gradient sums and hands the layer over; the builder is spent.
    LayerType finish(int output, bool isBlock, bool localNames);

private:
    const Precision* precision_;
    MemoryFormat images_;
    LayerType type_;
    std::vector<bool> needsGradient_;
    std::vector<bool> writesParts_;
};

}  // namespace ringside
