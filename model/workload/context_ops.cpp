#include "model/workload/context_ops.h"

#include "model/base/check.h"
#include "model/workload/kernels_of.h"
#include "model/workload/parallel_ops.h"

namespace ringside {
namespace {

double bytesOf(std::int64_t elements, DType type) { return static_cast<double>(elements) * static_cast<double>(sizeOf(type)); }

/// One step's block of scores.
struct Block {
    std::int64_t queries = 0, keys = 0;
    bool causal = false;
};

// Step 0 is the rank's own block, step i that of the rank i places before it. Zig-zag: rank r holds pieces r and 2·cp − 1 − r
// of 2·cp, so of an earlier rank's block all queries see the first half of the keys, and of a later one's the second half of the
// queries see all keys: half a block either way, and the first is taken for both.
std::vector<Block> blocksOf(const AttentionShape& shape, const ModelShard& shard) {
    const std::int64_t s = shape.length;
    std::vector<Block> blocks{{s, s, shape.causal}};
    for (std::int64_t step = 1; step < shard.cp; ++step) {
        if (!shape.causal)
            blocks.push_back({s, s, false});
        else if (shard.balanced)
            blocks.push_back({s, s / 2, false});
        else if (step <= shard.cpRank)
            blocks.push_back({s, s, false});
        else
            blocks.push_back({});  // these keys come later in the sequence: nothing to compute
    }
    return blocks;
}

}  // namespace

int ringAttention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, const ModelShard& shard, AttentionKernel attentionKernel) {
    const Precision& precision = layer.precision();
    const DType type = precision.activation;
    const std::int64_t tokens = shape.samples * shape.length;
    const std::int64_t keyElements = tokens * (shape.keyFeatures() + shape.valueFeatures());
    const int out = layer.value("context", {shape.samples, shape.length, shape.contextFeatures()}, type);
    const int logSumExp = layer.value("logsumexp", {shape.samples, shape.heads, shape.length}, DType::Fp32, false);
    const double q = bytesOf(tokens * shape.queryFeatures(), type), q32 = bytesOf(tokens * shape.queryFeatures(), DType::Fp32);
    const double context = bytesOf(tokens * shape.contextFeatures(), type), context32 = bytesOf(tokens * shape.contextFeatures(), DType::Fp32);
    const double lse = static_cast<double>(layer.bytes(logSumExp));
    // Picotron goes round in the same order again, adds and sends the gradients of keys and values in fp32, and once more at the end to
    // bring them home. Megatron (Transformer Engine) begins backward with the block that forward ended with, which saves that exchange.
    const bool picotron = shard.style == TensorStyle::Picotron;
    const DType gradientType = picotron ? DType::Fp32 : type;

    Op& op = qkv.fused() ? layer.op(OpKind::Attention, "attention", {qkv.q}, {out, logSumExp})
                         : layer.op(OpKind::Attention, "attention", {qkv.q, qkv.k, qkv.v}, {out, logSumExp});
    op.saves = op.inputs;
    op.saves.push_back(out);
    op.saves.push_back(logSumExp);
    op.attributes = {shape.heads, shape.kvHeads, shape.headDim, shape.causal, qkv.fused()};
    RingSteps& ring = op.ring;
    ring.steps = static_cast<int>(shard.cp);
    ring.exchange = {CollectiveOp::SendRecv, MeshAxis::Context, keyElements, type};
    ring.gradientExchange = {CollectiveOp::SendRecv, MeshAxis::Context, keyElements, gradientType};
    ring.gradientExchanges = picotron ? ring.steps : ring.steps - 1;

    const std::vector<Block> blocks = blocksOf(shape, shard);
    const auto work = [&](const Block& block, bool backward) {
        KernelWork kernel = flashWork(precision, shape, block.queries, block.keys, block.causal, backward);
        const double kv = bytesOf(keyElements, type) * static_cast<double>(block.keys) / static_cast<double>(shape.length);
        kernel.flash = flashGeneration(attentionKernel);
        kernel.bytes = backward ? 2 * q + 2 * context + 2 * kv + lse : q + context + kv + lse;  // backward: q, dq, out, dout; k, v, dk, dv
        return kernel;
    };
    for (const Block& block : blocks) {
        const std::size_t before = op.forward.size();
        if (block.queries > 0) {
            op.forward.push_back(work(block, false));
            // A partial context is scaled by its log-sum-exp and added to the fp32 sum of those before it.
            if (before > 0) op.forward.push_back(memoryWork("merge context", 2 * context32 + context + 3 * lse));
        }
        ring.forwardKernels.push_back(static_cast<int>(op.forward.size() - before));
    }
    for (std::size_t step = 0; step < blocks.size(); ++step) {
        const Block& block = picotron ? blocks[step] : blocks[blocks.size() - 1 - step];
        const std::size_t before = op.backward.size();
        if (block.queries > 0) {
            op.backward.push_back(work(block, true));
            if (before > 0) op.backward.push_back(memoryWork("sum query gradient", 2 * q32 + q));
            // Gradients that come by are added to; a rank that is idle hands them on as they are.
            if (step > 0) op.backward.push_back(memoryWork("sum key and value gradients", 3 * bytesOf(keyElements, gradientType)));
        }
        ring.backwardKernels.push_back(static_cast<int>(op.backward.size() - before));
    }
    const auto inLastStep = [](std::vector<KernelWork>& kernels, std::vector<int>& counts, const KernelWork& added) {
        kernels.push_back(added);
        ++counts.back();
    };
    if (type != DType::Fp32) {
        inLastStep(op.forward, ring.forwardKernels, memoryWork("cast context", context32 + context));
        inLastStep(op.backward, ring.backwardKernels, memoryWork("cast query gradient", q32 + q));
        if (picotron) inLastStep(op.backward, ring.backwardKernels,
                                 memoryWork("cast key and value gradients", bytesOf(keyElements, DType::Fp32) + bytesOf(keyElements, type)));
    }
    if (qkv.fused()) inLastStep(op.backward, ring.backwardKernels, memoryWork("concat gradient", 2 * (q + bytesOf(keyElements, type))));
    layer.recomputable(RecomputeModule::CoreAttention, layer.opCount() - 1);
    return out;
}

int ulyssesAttention(LayerBuilder& layer, const AttentionShape& shape, QueryKeyValue qkv, const ModelShard& shard, AttentionKernel kernel,
                     bool dropout) {
    const std::int64_t b = shape.samples, cp = shard.cp, d = shape.headDim, dv = shape.valueHead(), whole = shape.length * cp;
    const std::int64_t heads = shape.heads / cp, kvHeads = keyValueHeadsPerRank(shape.kvHeads, cp);
    CHECK(heads * cp == shape.heads);
    // Fewer key/value heads than ranks: each is repeated first, so that every rank gets one.
    const bool repeats = kvHeads * cp != shape.kvHeads;
    const auto repeated = [&](std::string_view name, int x, std::int64_t features) {
        const DType type = layer.at(x).dtype;
        const int y = layer.value(name, {b, shape.length, features}, type);
        const double moved = static_cast<double>(layer.bytes(x)) + static_cast<double>(layer.bytes(y));
        Op& op = layer.op(OpKind::Concat, name, {x}, {y});
        op.forward = {memoryWork("repeat keys and values", moved)};
        op.backward = {memoryWork("sum repeated keys and values", moved)};
        op.attributes = {2};
        return y;
    };
    const auto toHeads = [&](std::string_view name, int x, std::int64_t features) {
        return allToAll(layer, name, x, {b, whole, features}, MeshAxis::Context, cp, true);
    };
    QueryKeyValue split;
    if (qkv.fused()) {
        if (repeats) qkv.q = repeated("qkv.repeated", qkv.q, (shape.heads + 2 * kvHeads * cp) * d);
        split.q = toHeads("qkv.all_to_all", qkv.q, (heads + 2 * kvHeads) * d);
    } else {
        if (repeats) {
            qkv.k = repeated("k.repeated", qkv.k, kvHeads * cp * d);
            qkv.v = repeated("v.repeated", qkv.v, kvHeads * cp * dv);
        }
        split.q = toHeads("q.all_to_all", qkv.q, heads * d);
        split.k = toHeads("k.all_to_all", qkv.k, kvHeads * d);
        split.v = toHeads("v.all_to_all", qkv.v, kvHeads * dv);
    }
    const int context = attention(layer, {b, whole, heads, kvHeads, d, shape.causal, shape.eightBits, shape.valueDim}, split, kernel, dropout);
    return allToAll(layer, "context.all_to_all", context, {b, shape.length, shape.contextFeatures()}, MeshAxis::Context, cp, true);
}

}  // namespace ringside
