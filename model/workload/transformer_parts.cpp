#include "model/workload/transformer_parts.h"

#include <string>

#include "model/workload/parallel_ops.h"

namespace ringside {

OpKind kindOf(Activation activation) {
    switch (activation) {
        case Activation::Gelu: return OpKind::Gelu;
        case Activation::Relu: return OpKind::Relu;
        case Activation::Silu: return OpKind::Silu;
    }
    return OpKind::Gelu;
}

void markPartial(LayerBuilder& layer, WeightBias parameters) {
    for (const int parameter : {parameters.weight, parameters.bias})
        if (parameter >= 0) layer.parameterAt(parameter).partialOverTensor = true;
}

void markSharded(LayerBuilder& layer, int parameter) { layer.parameterAt(parameter).tensorSharded = true; }

WeightBias normModule(LayerBuilder& layer, const TransformerContext& in, std::string_view name, std::int64_t features) {
    const WeightBias out = layer.module(name, {features}, !in.spec.rmsNorm && in.spec.normBias ? features : 0);
    if (in.shard.splitsSequence()) markPartial(layer, out);
    return out;
}

WeightBias linearModule(LayerBuilder& layer, const TransformerContext& in, std::string_view name, std::int64_t from, std::int64_t to, bool bias,
                        Split split) {
    const WeightBias out = layer.module(name, in.conv1d() ? Shape{from, to} : Shape{to, from}, bias ? to : 0);
    if (in.shard.tp == 1) return out;
    if (split != Split::None) markSharded(layer, out.weight);
    if (split == Split::Column && bias) markSharded(layer, out.bias);
    // What stays whole works on the residual stream.
    if (in.shard.splitsSequence() && split == Split::None) markPartial(layer, out);
    if (in.shard.splitsSequence() && split == Split::Row) markPartial(layer, {-1, out.bias});
    return out;
}

Entered enterTensorRegion(LayerBuilder& layer, const TransformerContext& in, std::string_view name, int x) {
    const std::int64_t tp = in.shard.tp;
    if (tp == 1) return {x, false};
    const DType type = layer.precision().activation;
    std::string full(name);
    if (in.shard.splitsSequence()) return {sequenceGather(layer, full.append(".sequence_gather"), x, tp, type, true), true};
    return {tensorCopy(layer, full.append(".tensor_copy"), x, tp, type), false};
}

int leaveTensorRegion(LayerBuilder& layer, const TransformerContext& in, std::string_view name, int x) {
    const std::int64_t tp = in.shard.tp;
    if (tp == 1) return x;
    std::string full(name);
    if (in.shard.splitsSequence()) return sequenceScatter(layer, full.append(".sequence_scatter"), x, tp);
    return tensorReduce(layer, full.append(".tensor_reduce"), x, tp);
}

}  // namespace ringside
