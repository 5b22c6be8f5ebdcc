#include "model/workload/attention_ops.h"

#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

double bytesOf(const LayerBuilder& layer, int value) { return static_cast<double>(layer.bytes(value)); }

double bytesOf(std::int64_t elements, DType type) { return static_cast<double>(elements) * static_cast<double>(sizeOf(type)); }

/// Attention keeps its two bytes where matmuls have one.
DType attentionMath(const Precision& precision) { return precision.math == DType::Fp8 ? precision.activation : precision.math; }

std::array<std::int64_t, 6> attributesOf(const AttentionShape& shape, bool fused) {
    return {shape.heads, shape.kvHeads, shape.headDim, shape.causal, fused};
}

/// The first generation takes rows of tokens without padding: callers gather queries, keys and values by index and put the result back into zeros;
/// backward gathers the gradient and scatters three into zeros (llm-foundry, attention.py: index_first_axis, pad_input).
void addTokenGathers(Op& op, double q, double kv, double context) {
    op.forward.insert(op.forward.begin(), memoryWork("gather tokens", 2 * (q + kv)));
    op.forward.push_back(memoryWork("put tokens back", 3 * context));
    op.backward.insert(op.backward.begin(), memoryWork("gather gradient", 2 * context));
    op.backward.insert(op.backward.begin() + 2, memoryWork("scatter gradients", 3 * (q + kv)));
}

int flashAttention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, int generation) {
    const DType type = layer.precision().activation;
    const std::int64_t tokens = shape.samples * shape.length;
    const int out = layer.value("context", {shape.samples, shape.length, shape.contextFeatures()}, type);
    const int logSumExp = layer.value("logsumexp", {shape.samples, shape.heads, shape.length}, DType::Fp32, false);
    const double q = bytesOf(tokens * shape.queryFeatures(), type), kv = bytesOf(tokens * (shape.keyFeatures() + shape.valueFeatures()), type);
    const double context = bytesOf(layer, out);

    const auto work = [&](bool back) { return flashWork(layer.precision(), shape, shape.length, shape.length, shape.causal, back); };
    KernelWork forward = work(false), backward = work(true);
    forward.flash = backward.flash = generation;
    forward.bytes = q + context + kv + bytesOf(layer, logSumExp);
    backward.bytes = 2 * q + 2 * context + 2 * kv + bytesOf(layer, logSumExp);  // q, dq, out, dout; k, v, dk, dv

    Op& op = qkv.fused() ? layer.op(OpKind::Attention, "attention", {qkv.q}, {out, logSumExp})
                         : layer.op(OpKind::Attention, "attention", {qkv.q, qkv.k, qkv.v}, {out, logSumExp});
    op.saves = op.inputs;
    op.saves.push_back(out);
    op.saves.push_back(logSumExp);
    op.forward = {forward};
    op.backward = {backward};
    if (qkv.fused()) op.backward.push_back(memoryWork("concat gradient", 2 * (q + kv)));  // split's backward joins dq, dk, dv
    if (generation == 1) addTokenGathers(op, q, kv, context);
    if (shape.eightBits) {  // two bytes read, one written
        op.forward.insert(op.forward.begin(), memoryWork("quantise q, k, v", 1.5 * (q + kv)));
        op.backward.insert(op.backward.begin(), memoryWork("quantise gradient", 1.5 * context));
    }
    op.attributes = attributesOf(shape, qkv.fused());
    return out;
}

int mathAttention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, bool fusedSoftmax, bool dropped) {
    const Precision& precision = layer.precision();
    const DType type = precision.activation;
    const std::int64_t b = shape.samples, s = shape.length, a = shape.heads, d = shape.headDim, dv = shape.valueHead();
    // Products that sum over, or write, the features of keys; and those of values.
    const GemmShape innerKeys{b * a, s, s, d}, outerKeys{b * a, s, d, s}, innerValues{b * a, s, s, dv}, outerValues{b * a, s, dv, s};
    const bool fused = qkv.fused();
    if (fused) layer.consumersWriteParts(qkv.q);
    // Grouped queries: keys and values are copied once per query head before the products, and summed in backward.
    const bool repeats = shape.kvHeads != shape.heads;
    const double wide = bytesOf(b * s * a * d, type), narrow = bytesOf(b * s * shape.keyFeatures(), type);
    const double wideValues = bytesOf(b * s * a * dv, type), narrowValues = bytesOf(b * s * shape.valueFeatures(), type);

    const int keys = repeats ? layer.value("k.repeated", {b, a, s, d}, type) : -1;
    const int scores = layer.value("scores", {b, a, s, s}, type);
    const double square = bytesOf(layer, scores);
    {
        Op& op = fused ? layer.op(OpKind::Scores, "scores", {qkv.q}, {scores}) : layer.op(OpKind::Scores, "scores", {qkv.q, qkv.k}, {scores});
        op.saves = {qkv.q};
        if (repeats) {
            op.outputs.push_back(keys);
            op.saves.push_back(keys);
            op.forward.push_back(memoryWork("repeat keys", narrow + wide));
        } else if (!fused) {
            op.saves.push_back(qkv.k);
        }
        op.forward.push_back(gemmWork("attention scores", innerKeys, attentionMath(precision), type));
        if (!fusedSoftmax) {  // else the product scales and the softmax masks
            op.forward.push_back(memoryWork("scale", 2 * square));
            if (shape.causal) op.forward.push_back(memoryWork("mask", 2 * square));
            op.backward.push_back(memoryWork("scale gradient", 2 * square));
        }
        op.backward.push_back(gemmWork("attention query gradient", outerKeys, attentionMath(precision), type));
        op.backward.push_back(gemmWork("attention key gradient", outerKeys, attentionMath(precision), type));
        if (repeats) op.backward.push_back(memoryWork("sum repeated keys", narrow + wide));
        if (fused) op.backward.push_back(memoryWork("concat gradient", 2 * (wide + 2 * narrow)));
        op.attributes = attributesOf(shape, fused);
    }

    // Autocast runs softmax in fp32; its output is saved, and so is the cast that the next product reads.
    const DType softmaxType = precision.autocast ? DType::Fp32 : type;
    int probabilities = layer.value("probs", {b, a, s, s}, softmaxType);
    {
        const double written = bytesOf(layer, probabilities);
        Op& op = layer.op(OpKind::AttentionSoftmax, "softmax", {scores}, {probabilities});
        op.saves = {probabilities};
        op.forward = {memoryWork("softmax", square + written)};
        op.backward = {memoryWork("softmax gradient", 2 * written + square)};
        op.attributes = {s};
    }
    if (dropped) probabilities = dropout(layer, "attn_dropout", probabilities);

    std::vector<KernelWork> forward;
    const int cast = castIfNeeded(layer, "probs.cast", probabilities, type, forward);
    const int values = repeats ? layer.value("v.repeated", {b, a, s, dv}, type) : -1;
    const int out = layer.value("context", {b, s, a * dv}, type);
    const int source = fused ? qkv.q : qkv.v;
    Op& op = layer.op(OpKind::AttentionValues, "values", {probabilities, source}, {out});
    if (cast != probabilities) op.outputs.push_back(cast);
    op.saves = {cast};
    if (repeats) {
        op.outputs.push_back(values);
        op.saves.push_back(values);
        forward.push_back(memoryWork("repeat values", narrowValues + wideValues));
    } else {
        op.saves.push_back(source);
    }
    forward.push_back(gemmWork("attention values", outerValues, attentionMath(precision), type));
    forward.push_back(memoryWork("transpose context", 2 * wideValues));
    op.forward = std::move(forward);
    op.backward = {memoryWork("transpose gradient", 2 * wideValues), gemmWork("attention probability gradient", innerValues, attentionMath(precision), type),
                   gemmWork("attention value gradient", outerValues, attentionMath(precision), type)};
    if (repeats) op.backward.push_back(memoryWork("sum repeated values", narrowValues + wideValues));
    if (cast != probabilities) op.backward.push_back(memoryWork("cast gradient", bytesOf(layer, cast) + bytesOf(layer, probabilities)));
    op.attributes = attributesOf(shape, fused);
    return out;
}

}  // namespace

KernelWork flashWork(const Precision& precision, const AttentionShape& shape, std::int64_t queries, std::int64_t keys, bool causal, bool backward) {
    const std::int64_t batch = shape.samples * shape.heads, head = shape.headDim, value = shape.valueHead();
    KernelWork work;
    work.cls = backward ? KernelClass::AttentionBackward : KernelClass::AttentionForward;
    work.math = shape.eightBits ? DType::Fp8 : attentionMath(precision);
    work.shape = {batch, queries, keys, head};
    if (value != head) work.valueHead = value;
    work.causal = causal;
    work.name = backward ? "flash attention gradient" : "flash attention";
    // Forward scores and context: 2·b·a·s²·(d + dv), 4·b·a·s²·d where heads are alike. Backward the scores again, dQ and dK; dP and dV.
    const std::int64_t features = backward ? 3 * head + 2 * value : head + value;
    work.flops = 2.0 * static_cast<double>(batch) * static_cast<double>(queries) * static_cast<double>(keys) * static_cast<double>(features);
    return work;
}

QueryKeyValue repeatKeysAndValues(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv) {
    if (shape.kvHeads == shape.heads || qkv.fused()) return qkv;
    const auto repeated = [&](std::string_view name, int x) {
        const int y = layer.value(name, {shape.samples, shape.length, shape.heads * shape.headDim}, layer.at(x).dtype);
        const double all = bytesOf(layer, x) + bytesOf(layer, y);
        Op& op = layer.op(OpKind::RepeatHeads, name, {x}, {y});
        op.forward = {memoryWork("repeat heads", all)};
        op.backward = {memoryWork("sum repeated heads", all)};
        op.attributes = {shape.heads, shape.kvHeads, shape.headDim};
        return y;
    };
    qkv.k = repeated("k.repeated", qkv.k);
    qkv.v = repeated("v.repeated", qkv.v);
    return qkv;
}

QueryKeyValue rotary(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv) {
    const DType read = layer.at(qkv.q).dtype, type = layer.precision().activation;
    const std::int64_t tokens = shape.samples * shape.length;
    const std::int64_t queries = tokens * shape.heads * shape.headDim, keys = tokens * shape.kvHeads * shape.headDim;
    const double q = bytesOf(queries, read) + bytesOf(queries, type), k = bytesOf(keys, read) + bytesOf(keys, type);
    QueryKeyValue out = qkv;
    out.q = layer.value("q.rotated", layer.at(qkv.q).shape, type);
    if (!qkv.fused()) out.k = layer.value("k.rotated", layer.at(qkv.k).shape, type);
    Op& op = qkv.fused() ? layer.op(OpKind::Rotary, "rotary", {qkv.q}, {out.q}) : layer.op(OpKind::Rotary, "rotary", {qkv.q, qkv.k}, {out.q, out.k});
    op.forward = {memoryWork("rotary queries", q), memoryWork("rotary keys", k)};
    op.backward = {memoryWork("rotary query gradient", q), memoryWork("rotary key gradient", k)};
    op.attributes = {shape.heads, shape.kvHeads, shape.headDim, 0, qkv.fused()};
    return out;
}

// As Megatron's fused kernels for latent attention do it: queries are turned where they are; one kernel writes whole keys and values from their joint
// projection and the shared key, one splits their gradients again.
QueryKeyValue latentHeads(LayerBuilder& layer, const AttentionShape& shape, int q, int keysValues, int sharedKey) {
    const DType type = layer.precision().activation;
    QueryKeyValue out;
    out.q = layer.value("q.rotated", {shape.samples, shape.length, shape.queryFeatures()}, type);
    out.k = layer.value("k", {shape.samples, shape.length, shape.keyFeatures()}, type);
    out.v = layer.value("v", {shape.samples, shape.length, shape.valueFeatures()}, type);
    const double queries = bytesOf(layer, q) + bytesOf(layer, out.q);
    const double others = bytesOf(layer, keysValues) + bytesOf(layer, sharedKey) + bytesOf(layer, out.k) + bytesOf(layer, out.v);
    Op& op = layer.op(OpKind::LatentHeads, "heads", {q, keysValues, sharedKey}, {out.q, out.k, out.v});
    op.forward = {memoryWork("rotary queries", queries), memoryWork("assemble keys and values", others)};
    op.backward = {memoryWork("rotary query gradient", queries), memoryWork("split key and value gradients", others)};
    op.attributes = {shape.heads, shape.headDim, shape.valueHead(), layer.at(sharedKey).shape.back()};
    return out;
}

int attention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, AttentionKernel kernel, bool dropout) {
    const int first = layer.opCount();
    // The fused kernel keeps a random seed instead of a mask, so dropout costs it nothing worth counting.
    const int context = isFlash(kernel) ? flashAttention(layer, shape, qkv, flashGeneration(kernel))
                                        : mathAttention(layer, shape, qkv, kernel == AttentionKernel::FusedSoftmax, dropout);
    layer.recomputable(RecomputeModule::CoreAttention, first);
    return context;
}

}  // namespace ringside
