#include "model/workload/expert_ops.h"

#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"
#include "model/workload/parallel_ops.h"

namespace ringside {

int expertMlp(LayerBuilder& layer, int x, const ExpertShape& expert, const ExpertParameters& parameters, const ModelShard& shard) {
    const auto bytesOf = [&](int value) { return static_cast<double>(layer.bytes(value)); };
    const std::int64_t experts = expert.experts, perToken = expert.perToken, tp = shard.tp;
    const Shape shape = layer.at(x).shape;
    const std::int64_t hidden = shape.back();
    const std::int64_t tokens = elementCount(shape) / hidden;
    // Every rank of the tensor axis routes the same tokens, or with sequence parallelism its own.
    const bool copies = tp > 1 && !shard.splitsSequence();

    const int logits = linear(layer, "mlp.gate", x, experts, parameters.router);
    int weights = layer.value("routing weights", {tokens, perToken}, DType::Fp32);
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

    if (copies) {
        x = tensorCopy(layer, "mlp.tensor_copy", x, tp, layer.precision().activation);
        weights = tensorCopy(layer, "mlp.weights.tensor_copy", weights, tp, DType::Fp32);
    }
    int rows = layer.value("dispatched", {tokens * perToken, hidden}, layer.at(x).dtype);
    const double moved = bytesOf(rows);
    {
        Op& op = layer.op(OpKind::ExpertDispatch, "mlp.dispatch", {x}, {rows});
        op.inputs.push_back(chosen);
        op.saves = {chosen};
        op.forward = {memoryWork("gather tokens", 2 * moved)};
        op.backward = {memoryWork("scatter token gradients", 2 * moved + bytesOf(x))};
        op.attributes = {experts, perToken};
    }
    const auto exchanged = [&](std::string_view name, int value) {
        return shard.ep > 1 ? allToAll(layer, name, value, layer.at(value).shape, MeshAxis::Expert, shard.ep, false) : value;
    };
    rows = exchanged("mlp.dispatch.all_to_all", rows);
    if (shard.splitsSequence()) rows = sequenceGather(layer, "mlp.sequence_gather", rows, tp, layer.at(rows).dtype, false);
    // As many rows arrive as were sent, for fewer experts.
    const LinearOptions grouped{experts / shard.ep, false};
    const std::int64_t ffn = expert.ffn / tp;
    const int gateUp = linear(layer, "mlp.experts.gate_up_proj", rows, 2 * ffn, parameters.gateUp, grouped);
    const int activated = gatedActivation(layer, "mlp.experts.act", expert.activation, gateUp, -1);
    int down = linear(layer, "mlp.experts.down_proj", activated, hidden, parameters.down, grouped);
    if (shard.splitsSequence()) down = sequenceScatter(layer, "mlp.sequence_scatter", down, tp);
    down = exchanged("mlp.combine.all_to_all", down);

    const int y = layer.value("mlp", shape, layer.at(down).dtype);
    Op& op = layer.op(OpKind::ExpertCombine, "mlp.combine", {down, weights}, {y});
    op.inputs.push_back(chosen);
    op.saves = {down, weights, chosen};
    op.forward = {memoryWork("weigh", 2 * bytesOf(down) + bytesOf(weights)), memoryWork("scatter tokens", 2 * bytesOf(down) + bytesOf(y))};
    op.backward = {memoryWork("gather token gradients", bytesOf(down) + bytesOf(y)), memoryWork("weigh gradient", 3 * bytesOf(down))};
    op.attributes = {experts, perToken};
    return copies ? tensorReduce(layer, "mlp.tensor_reduce", y, tp) : y;
}

}  // namespace ringside
