#include "model/workload/expert_ops.h"

#include <algorithm>
#include <cmath>

#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"
#include "model/workload/parallel_ops.h"

namespace ringside {
namespace {

/// Rows that an index says where to find, or to put.
KernelWork rowsWork(std::string_view name, double bytes) {
    KernelWork work = memoryWork(name, bytes);
    work.scattered = true;
    return work;
}

/// Rows on their way to the experts and back, and how they travel.
class TokenTravel {
public:
    TokenTravel(LayerBuilder& layer, const ExpertShape& expert, const ModelShard& shard, std::int64_t tokens, std::int64_t hidden, int chosen)
        : layer_(layer), expert_(expert), shard_(shard), rows_(tokens * expert.perToken), hidden_(hidden), chosen_(chosen), once_(shard.sendsTokensOnce && shard.ep > 1),
          spread_{once_ ? TokenSpread{expert.experts, expert.perToken} : TokenSpread{}},
          sent_(once_ ? static_cast<std::int64_t>(std::llround(static_cast<double>(tokens) * spread_.holdersPerToken(shard.ep))) : rows_) {}

    /// A row per token and expert, on the rank that holds the expert, sorted by experts.
    int toExperts(int x, int weights, int& rowWeights) {
        const DType type = layer_.at(x).dtype;
        int rows = layer_.value("dispatched", {sent_, hidden_}, type);
        {
            Op& op = layer_.op(OpKind::ExpertDispatch, "mlp.dispatch", {x}, {rows});
            if (weights >= 0) op.inputs.push_back(weights);
            op.inputs.push_back(chosen_);
            op.saves = {chosen_};
            const double moved = bytesOf(rows);
            op.forward = {rowsWork("gather tokens", once_ ? moved + bytesOf(x) : 2 * moved)};
            op.backward = {rowsWork("scatter token gradients", once_ ? moved + bytesOf(x) : 2 * moved + bytesOf(x))};
            op.attributes = {expert_.experts, expert_.perToken};
        }
        rowWeights = -1;
        if (weights >= 0) {
            rowWeights = layer_.value("dispatched weights", {rows_, 1}, DType::Fp32);
            layer_.lastOp().outputs.push_back(rowWeights);
        }
        rows = exchanged("mlp.dispatch.all_to_all", rows);
        // A dispatcher that sends tokens once sends their weights along.
        if (weights >= 0 && !once_) rowWeights = exchanged("mlp.dispatch.weights.all_to_all", rowWeights);
        if (gathers()) {
            rows = sequenceGather(layer_, "mlp.sequence_gather", rows, shard_.tp, type, false);
            if (weights >= 0) rowWeights = sequenceGather(layer_, "mlp.weights.sequence_gather", rowWeights, shard_.tp, DType::Fp32, false);
        }
        return arranged("mlp.dispatch.sort", "sort by expert", rows, rows_ * (gathers() ? shard_.tp : 1));
    }

    int fromExperts(int down) {
        down = arranged("mlp.combine.sort", "sort by rank", down, sent_ * (gathers() ? shard_.tp : 1));
        if (gathers()) down = sequenceScatter(layer_, "mlp.sequence_scatter", down, shard_.tp);
        return exchanged("mlp.combine.all_to_all", down);
    }

private:
    double bytesOf(int value) const { return static_cast<double>(layer_.bytes(value)); }
    bool gathers() const { return shard_.splitsSequence() && !shard_.wholeExperts; }

    int exchanged(std::string_view name, int value) {
        if (shard_.ep == 1) return value;
        const int arrived = allToAll(layer_, name, value, layer_.at(value).shape, MeshAxis::Expert, shard_.ep, false);
        Op& op = layer_.lastOp();
        op.forwardCollectives.front().spread = op.backwardCollectives.front().spread = spread_;
        return arrived;
    }

    /// What arrives is in the order of the ranks it came from; where a rank has several experts, their products want it by experts. Tokens that were sent
    /// once are copied, or summed, here.
    int arranged(std::string_view name, std::string_view kernel, int x, std::int64_t rows) {
        if (shard_.ep == 1 || (shard_.ep == expert_.experts && !once_)) return x;
        const int y = layer_.value(name, {rows, hidden_}, layer_.at(x).dtype);
        Op& op = layer_.op(OpKind::ExpertDispatch, name, {x}, {y});
        op.forward = {rowsWork(kernel, bytesOf(x) + bytesOf(y))};
        op.backward = {rowsWork(kernel, bytesOf(x) + bytesOf(y))};
        op.attributes = {expert_.experts, expert_.perToken};
        return y;
    }

    LayerBuilder& layer_;
    const ExpertShape& expert_;
    const ModelShard& shard_;
    std::int64_t rows_, hidden_;
    int chosen_;
    bool once_;  // not a row per expert, but one per rank that has any
    TokenSpread spread_;
    std::int64_t sent_;
};

/// Weights and indices of the chosen experts. Returns the weights.
int route(LayerBuilder& layer, const ExpertShape& expert, int logits, std::int64_t tokens, std::int64_t hidden, int& chosen) {
    const auto bytesOf = [&](int value) { return static_cast<double>(layer.bytes(value)); };
    const int weights = layer.value("routing weights", {tokens, expert.perToken}, DType::Fp32);
    chosen = layer.value("routing indices", {tokens, expert.perToken}, DType::Int64, false);
    const int probabilities = layer.value("routing probs", {tokens, expert.experts}, DType::Fp32);
    const bool sigmoid = expert.router.sigmoid;
    const double all = bytesOf(probabilities), few = bytesOf(weights);
    Op& op = layer.op(OpKind::Router, "mlp.router", {logits}, {weights, chosen, probabilities});
    op.saves = {probabilities, weights, chosen};
    op.forward = {memoryWork(sigmoid ? "sigmoid" : "softmax", bytesOf(logits) + all)};
    if (expert.router.bias) op.forward.push_back(memoryWork("add correction", 2 * all));
    if (expert.router.groups > 1) {
        op.forward.push_back(memoryWork("best of each group", all));
        op.forward.push_back(memoryWork("mask groups", 2 * all));
    }
    op.forward.push_back(memoryWork("top k", all + few + bytesOf(chosen)));
    if (expert.router.normalize) {
        op.forward.push_back(memoryWork("normalize", 3 * few));
        op.backward.push_back(memoryWork("normalize gradient", 3 * few));
    }
    op.backward.push_back(memoryWork("top k gradient", few + all));
    op.backward.push_back(memoryWork(sigmoid ? "sigmoid gradient" : "softmax gradient", 3 * all));
    op.attributes = {expert.experts, expert.perToken, hidden};
    return weights;
}

/// Transformer Engine's op fuser (forward_grouped_mlp.py and backward_grouped_mlp.py): the product of all experts also activates what it has made and
/// quantises that, by rows and by columns, a byte each. Makes the last op, a product, such a one; returns what it hands on.
int activateInProduct(LayerBuilder& layer, int gateUp, int rowWeights) {
    Shape shape = layer.at(gateUp).shape;
    shape.back() /= 2;
    const int y = layer.value("mlp.experts.act", std::move(shape), layer.at(gateUp).dtype);
    Op& up = layer.lastOp();
    up.outputs.insert(up.outputs.begin(), y);
    up.saves.push_back(gateUp);
    if (rowWeights >= 0) {
        up.inputs.push_back(rowWeights);
        up.saves.push_back(rowWeights);
    }
    up.forward.back().bytes += static_cast<double>(layer.bytes(y));
    up.backward.erase(up.backward.begin());  // its gradient comes quantised from the product after it
    up.inputGradientKernels = 1;
    return y;
}

/// The product after it reads what is quantised already. The kernel of its input's gradient goes on to the gradient of gate and up: it reads both, and
/// writes them twice in a byte instead of the activation's gradient in two.
void takeActivatedInProduct(Op& down, double activatedBytes) {
    down.forward.erase(down.forward.begin());
    down.backward[1].bytes += 3 * activatedBytes;
}

}  // namespace

int expertMlp(LayerBuilder& layer, int x, const ExpertShape& expert, const ExpertParameters& parameters, const ModelShard& shard, GatedKernel kernel) {
    const auto bytesOf = [&](int value) { return static_cast<double>(layer.bytes(value)); };
    const std::int64_t experts = expert.experts, tp = shard.tp;
    const Shape shape = layer.at(x).shape;
    const std::int64_t hidden = shape.back();
    const std::int64_t tokens = elementCount(shape) / hidden;
    // Every rank of the tensor axis routes the same tokens, or with sequence parallelism its own.
    const bool copies = tp > 1 && !shard.splitsSequence();
    const bool weighsInside = kernel != GatedKernel::Eager;

    int chosen = -1;
    const int gate = layer.opCount();
    int weights = route(layer, expert, linear(layer, "mlp.gate", x, experts, parameters.router), tokens, hidden, chosen);
    layer.lastOp().readByHost = shard.readsRouterCounts;
    layer.capturable(GraphScope::Router, gate);
    if (copies) {
        x = tensorCopy(layer, "mlp.tensor_copy", x, tp, layer.precision().activation);
        weights = tensorCopy(layer, "mlp.weights.tensor_copy", weights, tp, DType::Fp32);
    }
    TokenTravel travel(layer, expert, shard, tokens, hidden, chosen);
    int rowWeights = -1;
    const int rows = travel.toExperts(x, weighsInside ? weights : -1, rowWeights);
    // As many rows arrive as were sent, for fewer experts.
    const LinearOptions grouped{.groups = experts / shard.ep, .launchesEach = shard.launchesEachExpert};
    const std::int64_t ffn = expert.ffn / shard.expertTp();
    const int gateUp = linear(layer, "mlp.experts.gate_up_proj", rows, 2 * ffn, parameters.gateUp, grouped);
    const bool inProduct = shard.fusesExperts && layer.precision().math == DType::Fp8;
    const int activated = inProduct ? activateInProduct(layer, gateUp, rowWeights) : gatedActivation(layer, "mlp.experts.act", expert.activation, gateUp, -1, kernel);
    if (weighsInside && !inProduct) {
        Op& op = layer.lastOp();
        op.inputs.push_back(rowWeights);
        op.saves.push_back(rowWeights);
        op.forward.front().bytes += bytesOf(rowWeights);
        op.backward.front().bytes += 2 * bytesOf(rowWeights);
    }
    const int act = layer.opCount() - 1;
    const int fed = linear(layer, "mlp.experts.down_proj", activated, hidden, parameters.down, grouped);
    if (inProduct) takeActivatedInProduct(layer.lastOp(), bytesOf(activated));
    else layer.recomputable(RecomputeModule::ExpertActivation, act, act, act + 1);
    const int down = travel.fromExperts(fed);

    const int y = layer.value("mlp", shape, layer.at(down).dtype);
    const double rowBytes = bytesOf(down);
    if (weighsInside) {
        Op& op = layer.op(OpKind::ExpertCombine, "mlp.combine", {down, chosen}, {y});
        op.saves = {chosen};
        op.forward = {rowsWork("sum tokens", rowBytes + bytesOf(y))};
        op.backward = {rowsWork("gather token gradients", rowBytes + bytesOf(y))};
    } else {
        Op& op = layer.op(OpKind::ExpertCombine, "mlp.combine", {down, weights, chosen}, {y});
        op.saves = {down, weights, chosen};
        op.forward = {memoryWork("weigh", 2 * rowBytes + bytesOf(weights)), rowsWork("scatter tokens", 2 * rowBytes + bytesOf(y))};
        op.backward = {rowsWork("gather token gradients", rowBytes + bytesOf(y)), memoryWork("weigh gradient", 3 * rowBytes)};
    }
    layer.lastOp().attributes = {experts, expert.perToken};
    return copies ? tensorReduce(layer, "mlp.tensor_reduce", y, tp) : y;
}

}  // namespace ringside
