#include "model/workload/transformer_parts.h"

#include "model/workload/dense_ops.h"

namespace ringside {
namespace {

/// A dense MLP: the block's own, or that of the shared experts.
struct MlpShape {
    std::string_view gate, up, down, fused, act;
    std::int64_t ffn = 0;  ///< of this rank
};

MlpShape denseShape(const TransformerContext& in) { return {in.names.gate, in.names.up, in.names.down, "mlp.linear_fc1", "mlp.act", in.ffn()}; }
MlpShape sharedShape(const TransformerContext& in) {
    return {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj", "mlp.shared_experts.linear_fc1", "mlp.shared_experts.act", in.sharedFfn()};
}

bool fusesGateUp(const TransformerContext& in) { return in.spec.gatedMlp && in.shard.fusesProjections(); }

MlpParameters registerMlp(LayerBuilder& layer, const TransformerContext& in, const MlpShape& shape) {
    const TransformerSpec& spec = in.spec;
    MlpParameters out;
    const auto projection = [&](std::string_view name, std::int64_t to) { return linearModule(layer, in, name, spec.hidden, to, spec.mlpBias, Split::Column); };
    if (fusesGateUp(in)) {
        out.up = projection(shape.fused, 2 * shape.ffn);
    } else {
        if (spec.gatedMlp) out.gate = projection(shape.gate, shape.ffn);
        out.up = projection(shape.up, shape.ffn);
    }
    out.down = linearModule(layer, in, shape.down, shape.ffn, spec.hidden, spec.mlpBias, Split::Row);
    return out;
}

int denseMlp(LayerBuilder& layer, const TransformerContext& in, int x, const MlpShape& shape, const MlpParameters& parameters) {
    const TransformerSpec& spec = in.spec;
    const OpKind act = kindOf(spec.activation);
    const auto projected = [&](std::string_view name, std::int64_t to, WeightBias weights) {
        const Entered entered = enterTensorRegion(layer, in, name, x);
        return linear(layer, name, entered.value, to, weights, {1, in.conv1d(), entered.gathered});
    };
    int hidden = 0;
    if (fusesGateUp(in)) {
        hidden = gatedActivation(layer, shape.act, act, projected(shape.fused, 2 * shape.ffn, parameters.up), -1, in.training.gatedActivation);
    } else if (spec.gatedMlp) {
        const int gate = projected(shape.gate, shape.ffn, parameters.gate);
        const int up = projected(shape.up, shape.ffn, parameters.up);
        hidden = gatedActivation(layer, shape.act, act, gate, up, in.training.gatedActivation);
    } else {
        hidden = activation(layer, shape.act, act, projected(shape.up, shape.ffn, parameters.up));
    }
    return leaveTensorRegion(layer, in, shape.down, linear(layer, shape.down, hidden, spec.hidden, parameters.down, {1, in.conv1d()}));
}

ExpertParameters registerExperts(LayerBuilder& layer, const TransformerContext& in) {
    const TransformerSpec& spec = in.spec;
    const std::int64_t experts = spec.experts / in.shard.ep;
    ExpertParameters out;
    out.router = layer.module("mlp.gate", {spec.experts, spec.hidden}, 0);
    if (spec.router.bias) layer.buffer("mlp.gate.e_score_correction_bias", {spec.experts}, DType::Fp32);
    if (in.shard.splitsSequence()) markPartial(layer, out.router);
    out.gateUp.weight = layer.parameter("mlp.experts.gate_up_proj", {experts, 2 * in.expertFfn(), spec.hidden});
    out.down.weight = layer.parameter("mlp.experts.down_proj", {experts, spec.hidden, in.expertFfn()});
    for (const int weight : {out.gateUp.weight, out.down.weight}) {
        layer.parameterAt(weight).expert = in.shard.spreadsExperts();
        layer.parameterAt(weight).tensorSharded = in.shard.expertTp() > 1;
    }
    return out;
}

}  // namespace

FeedForwardParameters registerFeedForward(LayerBuilder& layer, const TransformerContext& in, bool experts) {
    FeedForwardParameters out;
    if (experts) out.experts = registerExperts(layer, in);
    if (!experts) out.dense = registerMlp(layer, in, denseShape(in));
    else if (in.spec.sharedExperts > 0) out.dense = registerMlp(layer, in, sharedShape(in));
    return out;
}

int feedForward(LayerBuilder& layer, const TransformerContext& in, int x, const FeedForwardParameters& parameters, bool experts) {
    const TransformerSpec& spec = in.spec;
    const int first = layer.opCount();
    if (!experts) {
        const int fed = denseMlp(layer, in, x, denseShape(in), parameters.dense);
        layer.recomputable(RecomputeModule::Mlp, first);
        return fed;
    }
    const ExpertShape shape{spec.experts, spec.expertsPerToken, spec.expertWidth(), kindOf(spec.activation), spec.router};
    int fed = expertMlp(layer, x, shape, parameters.experts, in.shard, in.training.gatedActivation);
    if (spec.sharedExperts > 0) {
        const int firstShared = layer.opCount();
        const int shared = denseMlp(layer, in, x, sharedShape(in), parameters.dense);
        layer.recomputable(RecomputeModule::SharedExperts, firstShared);
        layer.capturable(GraphScope::Router, firstShared);  // they wait for no tokens
        fed = add(layer, "mlp.add_shared", fed, shared);
    }
    layer.recomputable(RecomputeModule::Experts, first);
    return fed;
}

}  // namespace ringside
