#include "model/workload/expert_ops.h"

#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"

namespace ringside {

int expertMlp(LayerBuilder& layer, int x, std::int64_t experts, std::int64_t perToken, std::int64_t ffn, OpKind act,
              const ExpertParameters& parameters) {
    const auto bytesOf = [&](int value) { return static_cast<double>(layer.bytes(value)); };
    const Shape shape = layer.at(x).shape;
    const std::int64_t hidden = shape.back();
    const std::int64_t tokens = elementCount(shape) / hidden;

    const int logits = linear(layer, "mlp.gate", x, experts, parameters.router);
    const int weights = layer.value("routing weights", {tokens, perToken}, DType::Fp32);
    const int chosen = layer.value("routing indices", {tokens, perToken}, DType::Int64, false);
    const int probabilities = layer.value("routing probs", {tokens, experts}, DType::Fp32);
    {
        Op& op = layer.op(OpKind::Router, "mlp.router", {logits}, {weights, chosen, probabilities});
        const double all = bytesOf(probabilities), few = bytesOf(weights);
        op.saves = {probabilities, weights, chosen};
        op.forward = {memoryWork("softmax", bytesOf(logits) + all), memoryWork("top k", all + few + bytesOf(chosen)),
                      memoryWork("normalize", 3 * few)};
        op.backward = {memoryWork("normalize gradient", 3 * few), memoryWork("top k gradient", few + all),
                       memoryWork("softmax gradient", 3 * all)};
        op.attributes = {experts, perToken, hidden};
    }

    const int dispatched = layer.value("dispatched", {tokens * perToken, hidden}, layer.at(x).dtype);
    {
        Op& op = layer.op(OpKind::ExpertDispatch, "mlp.dispatch", {x}, {dispatched});
        op.inputs.push_back(chosen);
        op.saves = {chosen};
        op.forward = {memoryWork("gather tokens", 2 * bytesOf(dispatched))};
        op.backward = {memoryWork("scatter token gradients", 2 * bytesOf(dispatched) + bytesOf(x))};
        op.attributes = {experts, perToken};
    }
    const int gateUp = linear(layer, "mlp.experts.gate_up_proj", dispatched, 2 * ffn, parameters.gateUp, {experts, false});
    const int activated = gatedActivation(layer, "mlp.experts.act", act, gateUp, -1);
    const int down = linear(layer, "mlp.experts.down_proj", activated, hidden, parameters.down, {experts, false});

    const int y = layer.value("mlp", shape, layer.at(down).dtype);
    Op& op = layer.op(OpKind::ExpertCombine, "mlp.combine", {down, weights}, {y});
    op.inputs.push_back(chosen);
    op.saves = {down, weights, chosen};
    op.forward = {memoryWork("weigh", 2 * bytesOf(down) + bytesOf(weights)), memoryWork("scatter tokens", 2 * bytesOf(down) + bytesOf(y))};
    op.backward = {memoryWork("gather token gradients", bytesOf(down) + bytesOf(y)), memoryWork("weigh gradient", 3 * bytesOf(down))};
    op.attributes = {experts, perToken};
    return y;
}

}  // namespace ringside
