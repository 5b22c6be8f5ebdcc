#include "model/workload/transformer_parts.h"

#include "model/workload/attention_ops.h"
#include "model/workload/context_ops.h"
#include "model/workload/dense_ops.h"
#include "model/workload/expert_ops.h"
#include "model/workload/kernels_of.h"
#include "model/workload/tensor_overlap.h"

namespace ringside {
namespace {

// Megatron makes one product of what the families of Hugging Face keep apart.
constexpr std::string_view kFusedQkv = "self_attn.linear_qkv", kFusedGateUp = "mlp.linear_fc1";

bool fusesQkv(const TransformerContext& in) { return in.spec.fusedQkv || in.shard.fusesProjections(); }
std::string_view fusedQkvName(const TransformerContext& in) { return in.spec.fusedQkv ? in.names.qkv : kFusedQkv; }
bool fusesGateUp(const TransformerContext& in) { return in.spec.gatedMlp && in.shard.fusesProjections(); }

struct BlockParameters {
    WeightBias norm1, norm2, postNorm1, postNorm2;  // the post norms are Gemma 2's
    WeightBias qkv, q, k, v, qNorm, kNorm, out;
    WeightBias gate, up, down;
    ExpertParameters experts;
};

void registerAttention(LayerBuilder& layer, const TransformerContext& in, BlockParameters& out) {
    const TransformerSpec& spec = in.spec;
    const FamilyNames& names = in.names;
    const std::int64_t queries = in.heads() * spec.headDim, keys = in.kvHeads() * spec.headDim;
    const auto projection = [&](std::string_view name, std::int64_t to) {
        return linearModule(layer, in, name, spec.hidden, to, spec.queryKeyValueBias, Split::Column);
    };
    if (fusesQkv(in)) {
        out.qkv = projection(fusedQkvName(in), queries + 2 * keys);
    } else if (spec.family == TransformerFamily::Opt) {
        out.k = projection(names.k, keys);
        out.v = projection(names.v, keys);
        out.q = projection(names.q, queries);
    } else {
        out.q = projection(names.q, queries);
        out.k = projection(names.k, keys);
        out.v = projection(names.v, keys);
    }
    out.out = linearModule(layer, in, names.out, queries, spec.hidden, spec.attentionOutputBias, Split::Row);
    if (spec.queryKeyNorm) {
        out.qNorm = layer.module("self_attn.q_norm", {spec.headDim}, 0);
        out.kNorm = layer.module("self_attn.k_norm", {spec.headDim}, 0);
        if (in.shard.tp > 1) {  // each rank sees its own heads only
            markPartial(layer, out.qNorm);
            markPartial(layer, out.kNorm);
        }
    }
}

void registerExperts(LayerBuilder& layer, const TransformerContext& in, ExpertParameters& out) {
    const TransformerSpec& spec = in.spec;
    const std::int64_t experts = spec.experts / in.shard.ep;
    out.router = layer.module("mlp.gate", {spec.experts, spec.hidden}, 0);
    if (in.shard.splitsSequence()) markPartial(layer, out.router);
    out.gateUp.weight = layer.parameter("mlp.experts.gate_up_proj", {experts, 2 * in.ffn(), spec.hidden});
    out.down.weight = layer.parameter("mlp.experts.down_proj", {experts, spec.hidden, in.ffn()});
    for (const int weight : {out.gateUp.weight, out.down.weight}) {
        layer.parameterAt(weight).expert = in.shard.ep > 1;
        layer.parameterAt(weight).tensorSharded = in.shard.tp > 1;
    }
}

void registerMlp(LayerBuilder& layer, const TransformerContext& in, BlockParameters& out) {
    const TransformerSpec& spec = in.spec;
    if (spec.experts > 0) return registerExperts(layer, in, out.experts);
    const auto projection = [&](std::string_view name, std::int64_t to) {
        return linearModule(layer, in, name, spec.hidden, to, spec.mlpBias, Split::Column);
    };
    if (fusesGateUp(in)) {
        out.up = projection(kFusedGateUp, 2 * in.ffn());
    } else {
        if (spec.gatedMlp) out.gate = projection(in.names.gate, in.ffn());
        out.up = projection(in.names.up, in.ffn());
    }
    out.down = linearModule(layer, in, in.names.down, in.ffn(), spec.hidden, spec.mlpBias, Split::Row);
}

BlockParameters registerBlock(LayerBuilder& layer, const TransformerContext& in) {
    const TransformerSpec& spec = in.spec;
    BlockParameters out;
    const auto norm1 = [&] { out.norm1 = normModule(layer, in, in.names.norm1, spec.hidden); };
    const auto norm2 = [&] {
        if (!in.names.norm2.empty()) out.norm2 = normModule(layer, in, in.names.norm2, spec.hidden);
    };
    switch (in.names.order) {
        case BlockOrder::NormAttentionNormMlp:
            norm1();
            registerAttention(layer, in, out);
            norm2();
            registerMlp(layer, in, out);
            break;
        case BlockOrder::AttentionMlpNorms:
            registerAttention(layer, in, out);
            registerMlp(layer, in, out);
            norm1();
            if (spec.family == TransformerFamily::Gemma2) {
                out.postNorm1 = normModule(layer, in, "post_attention_layernorm", spec.hidden);
                out.norm2 = normModule(layer, in, "pre_feedforward_layernorm", spec.hidden);
                out.postNorm2 = normModule(layer, in, "post_feedforward_layernorm", spec.hidden);
            } else {
                norm2();
            }
            break;
        case BlockOrder::AttentionNormsMlp:
            registerAttention(layer, in, out);
            norm1();
            norm2();
            registerMlp(layer, in, out);
            break;
        case BlockOrder::NormsAttentionMlp:
            norm1();
            norm2();
            registerAttention(layer, in, out);
            registerMlp(layer, in, out);
            break;
        case BlockOrder::AttentionNormMlpNorm:
            registerAttention(layer, in, out);
            norm1();
            registerMlp(layer, in, out);
            norm2();
            break;
    }
    return out;
}

int headNorm(LayerBuilder& layer, const TransformerContext& in, std::string_view name, int x, std::int64_t heads, WeightBias parameters) {
    // One statistic per head and token: the norm sees rows of headDim.
    const int split = layer.value(name, {in.samples, in.length(), heads, in.spec.headDim}, layer.at(x).dtype);
    layer.op(OpKind::Flatten, "split heads", {x}, {split}).gradientInPlace = true;
    return norm(layer, name, split, true, parameters, in.training.rmsNorm);
}

/// Views of the parts of a fused projection, for norms that see queries or keys alone.
QueryKeyValue splitQkv(LayerBuilder& layer, const TransformerContext& in, int fused) {
    layer.consumersWriteParts(fused);
    const double all = static_cast<double>(layer.bytes(fused));
    const auto part = [&](std::string_view name, std::int64_t heads) {
        const int y = layer.value(name, {in.samples, in.length(), heads * in.spec.headDim}, layer.at(fused).dtype);
        layer.op(OpKind::Flatten, name, {fused}, {y}).gradientInPlace = true;
        return y;
    };
    QueryKeyValue out;
    out.q = part("q", in.heads());
    out.k = part("k", in.kvHeads());
    out.v = layer.value("v", {in.samples, in.length(), in.kvHeads() * in.spec.headDim}, layer.at(fused).dtype);
    layer.op(OpKind::Flatten, "v", {fused}, {out.v}).backward = {memoryWork("concat gradient", 2 * all)};  // makes the tensor that q and k then fill
    return out;
}

QueryKeyValue projectQkv(LayerBuilder& layer, const TransformerContext& in, int x, const BlockParameters& parameters) {
    const TransformerSpec& spec = in.spec;
    const std::int64_t queries = in.heads() * spec.headDim, keys = in.kvHeads() * spec.headDim;
    const auto projected = [&](std::string_view name, std::int64_t to, WeightBias weights) {
        const Entered entered = enterTensorRegion(layer, in, name, x);
        return linear(layer, name, entered.value, to, weights, {1, in.conv1d(), entered.gathered});
    };
    const auto normed = [&](std::string_view name, int value, std::int64_t heads, WeightBias weights) {
        return spec.queryKeyNorm ? headNorm(layer, in, name, value, heads, weights) : value;
    };
    const auto queryNorm = [&](int q) { return normed("self_attn.q_norm", q, in.heads(), parameters.qNorm); };
    const auto keyNorm = [&](int k) { return normed("self_attn.k_norm", k, in.kvHeads(), parameters.kNorm); };
    QueryKeyValue qkv;
    if (fusesQkv(in)) {
        qkv.q = projected(fusedQkvName(in), queries + 2 * keys, parameters.qkv);
        if (!spec.queryKeyNorm) return qkv;
        qkv = splitQkv(layer, in, qkv.q);
        qkv.q = queryNorm(qkv.q);
        qkv.k = keyNorm(qkv.k);
        return qkv;
    }
    // Each norm stands right after its projection: backward then completes v, k's norm, k, q's norm, q.
    qkv.q = queryNorm(projected(in.names.q, queries, parameters.q));
    qkv.k = keyNorm(projected(in.names.k, keys, parameters.k));
    qkv.v = projected(in.names.v, keys, parameters.v);
    return qkv;
}

int selfAttention(LayerBuilder& layer, const TransformerContext& in, int x, const BlockParameters& parameters) {
    const TransformerSpec& spec = in.spec;
    AttentionShape shape{in.samples, in.length(), in.heads(), in.kvHeads(), spec.headDim, spec.causal};
    const bool dropped = in.training.dropout && spec.attentionDropout;
    QueryKeyValue qkv = projectQkv(layer, in, x, parameters);
    if (spec.positions == Positions::Rotary) qkv = rotary(layer, shape, qkv);
    if (in.training.repeatKeysAndValues && in.shard.cp == 1 && isFlash(in.training.attention)) {  // else the products copy them, or the ring sends them as they are
        qkv = repeatKeysAndValues(layer, shape, qkv);
        shape.kvHeads = shape.heads;
    }
    const int context = in.shard.cp == 1                             ? attention(layer, shape, qkv, in.training.attention, dropped)
                        : in.shard.context == ContextKind::Ring ? ringAttention(layer, shape, qkv, in.shard, in.training.attention)
                                                                     : ulyssesAttention(layer, shape, qkv, in.shard, in.training.attention, dropped);
    return leaveTensorRegion(layer, in, in.names.out, linear(layer, in.names.out, context, spec.hidden, parameters.out, {1, in.conv1d()}));
}

int feedForward(LayerBuilder& layer, const TransformerContext& in, int x, const BlockParameters& parameters) {
    const TransformerSpec& spec = in.spec;
    const OpKind act = kindOf(spec.activation);
    if (spec.experts > 0) return expertMlp(layer, x, {spec.experts, spec.expertsPerToken, spec.ffn, act}, parameters.experts, in.shard);
    const auto projected = [&](std::string_view name, std::int64_t to, WeightBias weights) {
        const Entered entered = enterTensorRegion(layer, in, name, x);
        return linear(layer, name, entered.value, to, weights, {1, in.conv1d(), entered.gathered});
    };
    int hidden = 0;
    if (fusesGateUp(in)) {
        hidden = gatedActivation(layer, "mlp.act", act, projected(kFusedGateUp, 2 * in.ffn(), parameters.up), -1, in.training.gatedActivation);
    } else if (spec.gatedMlp) {
        const int gate = projected(in.names.gate, in.ffn(), parameters.gate);
        const int up = projected(in.names.up, in.ffn(), parameters.up);
        hidden = gatedActivation(layer, "mlp.act", act, gate, up, in.training.gatedActivation);
    } else {
        hidden = activation(layer, "mlp.act", act, projected(in.names.up, in.ffn(), parameters.up));
    }
    return leaveTensorRegion(layer, in, in.names.down, linear(layer, in.names.down, hidden, spec.hidden, parameters.down, {1, in.conv1d()}));
}

LayerType assembleBlock(const TransformerContext& in) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("block", in.training.precision);
    const int x = layer.value("input", {in.samples, in.streamLength(), spec.hidden}, layer.streamType());
    const BlockParameters parameters = registerBlock(layer, in);
    const auto dropped = [&](std::string_view name, int value) { return in.residualDropout() ? dropout(layer, name, value) : value; };
    const auto normed = [&](std::string_view name, int value, WeightBias weights) { return norm(layer, name, value, spec.rmsNorm, weights, in.training.rmsNorm); };

    if (in.postNorm()) {
        const int attended = add(layer, "add_1", dropped("dropout_1", selfAttention(layer, in, x, parameters)), x);
        const int middle = normed(in.names.norm1, attended, parameters.norm1);
        const int fed = add(layer, "add_2", dropped("dropout_2", feedForward(layer, in, middle, parameters)), middle);
        return layer.finish(normed(in.names.norm2, fed, parameters.norm2), true, true);
    }
    const int first = normed(in.names.norm1, x, parameters.norm1);
    int attended = dropped("dropout_1", selfAttention(layer, in, first, parameters));
    if (spec.parallelBlock) {
        const int second = in.names.norm2.empty() ? first : normed(in.names.norm2, x, parameters.norm2);
        const int fed = dropped("dropout_2", feedForward(layer, in, second, parameters));
        return layer.finish(add(layer, "add_2", x, add(layer, "add_1", attended, fed)), true, true);
    }
    const bool sandwich = spec.family == TransformerFamily::Gemma2;
    if (sandwich) attended = normed("post_attention_layernorm", attended, parameters.postNorm1);
    const int middle = add(layer, "add_1", x, attended);
    const int second = normed(sandwich ? "pre_feedforward_layernorm" : in.names.norm2, middle, parameters.norm2);
    int fed = dropped("dropout_2", feedForward(layer, in, second, parameters));
    if (sandwich) fed = normed("post_feedforward_layernorm", fed, parameters.postNorm2);
    return layer.finish(add(layer, "add_2", middle, fed), true, true);
}

}  // namespace

LayerType buildBlock(const TransformerContext& in) {
    LayerType block = assembleBlock(in);
    if (in.shard.overlapsTensor && in.shard.splitsSequence()) overlapTensorCollectives(block, in.shard.tp);
    return block;
}

}  // namespace ringside
