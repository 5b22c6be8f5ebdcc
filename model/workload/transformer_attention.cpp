#include "model/workload/transformer_parts.h"

#include "model/workload/attention_ops.h"
#include "model/workload/context_ops.h"
#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"
#include "model/workload/parallel_ops.h"

namespace ringside {
namespace {

// Megatron makes one product of what the families of Hugging Face keep apart.
constexpr std::string_view kFusedQkv = "self_attn.linear_qkv";
// Latent attention: down to a vector per token, up to all heads.
constexpr std::string_view kQueryDown = "self_attn.q_a_proj", kQueryNorm = "self_attn.q_a_layernorm", kQueryUp = "self_attn.q_b_proj";
constexpr std::string_view kKeyValueDown = "self_attn.kv_a_proj_with_mqa", kKeyValueNorm = "self_attn.kv_a_layernorm", kKeyValueUp = "self_attn.kv_b_proj";

bool fusesQkv(const TransformerContext& in) { return in.spec.fusedQkv || in.shard.fusesProjections(); }
std::string_view fusedQkvName(const TransformerContext& in) { return in.spec.fusedQkv ? in.names.qkv : kFusedQkv; }

/// Features per head that come from the joint projection of keys and values.
std::int64_t jointFeatures(const TransformerSpec& spec) { return spec.headDim - spec.latent.ropeDim + spec.latent.valueDim; }

void registerLatent(LayerBuilder& layer, const TransformerContext& in, AttentionParameters& out) {
    const TransformerSpec& spec = in.spec;
    const LatentAttention& latent = spec.latent;
    // What leads down stays whole on every rank of the tensor axis; what leads up is cut by heads.
    const auto down = [&](std::string_view name, std::int64_t to) { return linearModule(layer, in, name, spec.hidden, to, spec.queryKeyValueBias, Split::None); };
    const std::int64_t queries = in.heads() * spec.headDim;
    if (latent.queryRank > 0) {
        out.queryDown = down(kQueryDown, latent.queryRank);
        out.qNorm = normModule(layer, in, kQueryNorm, latent.queryRank);
        out.q = linearModule(layer, in, kQueryUp, latent.queryRank, queries, false, Split::Column);
    } else {
        out.q = linearModule(layer, in, in.names.q, spec.hidden, queries, false, Split::Column);
    }
    out.keyValueDown = down(kKeyValueDown, latent.keyValueRank + latent.ropeDim);
    out.kNorm = normModule(layer, in, kKeyValueNorm, latent.keyValueRank);
    out.keyValueUp = linearModule(layer, in, kKeyValueUp, latent.keyValueRank, in.heads() * jointFeatures(spec), false, Split::Column);
    out.out = linearModule(layer, in, in.names.out, in.heads() * latent.valueDim, spec.hidden, spec.attentionOutputBias, Split::Row);
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

QueryKeyValue projectQkv(LayerBuilder& layer, const TransformerContext& in, int x, const AttentionParameters& parameters) {
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

/// The latent vectors are of the residual stream's tokens (with sequence parallelism 1/tp of them); what is projected up from them is of all tokens and
/// of this rank's heads. `firstUp` becomes the first op that leads up.
QueryKeyValue projectLatent(LayerBuilder& layer, const TransformerContext& in, const AttentionShape& shape, int x, const AttentionParameters& parameters, int& firstUp) {
    const TransformerSpec& spec = in.spec;
    const LatentAttention& latent = spec.latent;
    const auto up = [&](std::string_view name, int from, std::int64_t to, WeightBias weights) {
        const Entered entered = enterTensorRegion(layer, in, name, from);
        return linear(layer, name, entered.value, to, weights, {1, false, entered.gathered});
    };
    // Both ways down come first, then both up, as in Megatron.
    int from = x;
    if (latent.queryRank > 0) from = linear(layer, kQueryDown, x, latent.queryRank, parameters.queryDown);
    const int narrow = linear(layer, kKeyValueDown, x, latent.keyValueRank + latent.ropeDim, parameters.keyValueDown);
    layer.consumersWriteParts(narrow);
    const auto part = [&](std::string_view name, std::int64_t features) {
        const int y = layer.value(name, {in.samples, in.streamLength(), features}, layer.at(narrow).dtype);
        layer.op(OpKind::Flatten, name, {narrow}, {y}).gradientInPlace = true;
        return y;
    };
    const int vector = part("kv", latent.keyValueRank);
    int sharedKey = layer.value("k_rope", {in.samples, in.streamLength(), latent.ropeDim}, layer.at(narrow).dtype);
    layer.op(OpKind::Flatten, "k_rope", {narrow}, {sharedKey}).backward = {memoryWork("concat gradient", 2 * static_cast<double>(layer.bytes(narrow)))};
    if (in.shard.splitsSequence()) sharedKey = sequenceGather(layer, "k_rope.sequence_gather", sharedKey, in.shard.tp, layer.at(sharedKey).dtype, false);
    else sharedKey = enterTensorRegion(layer, in, "k_rope", sharedKey).value;
    if (latent.queryRank > 0) from = norm(layer, kQueryNorm, from, spec.rmsNorm, parameters.qNorm, in.training.rmsNorm);
    const int normed = norm(layer, kKeyValueNorm, vector, spec.rmsNorm, parameters.kNorm, in.training.rmsNorm);
    firstUp = layer.opCount();
    const int q = up(latent.queryRank > 0 ? kQueryUp : in.names.q, from, shape.queryFeatures(), parameters.q);
    const int joint = up(kKeyValueUp, normed, in.heads() * jointFeatures(spec), parameters.keyValueUp);
    return latentHeads(layer, shape, q, joint, sharedKey);
}

}  // namespace

AttentionParameters registerAttention(LayerBuilder& layer, const TransformerContext& in) {
    const TransformerSpec& spec = in.spec;
    AttentionParameters out;
    if (spec.latent) {
        registerLatent(layer, in, out);
        return out;
    }
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
    return out;
}

int selfAttention(LayerBuilder& layer, const TransformerContext& in, int x, const AttentionParameters& parameters) {
    const TransformerSpec& spec = in.spec;
    AttentionShape shape{in.samples, in.length(), in.heads(), in.kvHeads(), spec.headDim, spec.causal, in.training.fp8Attention, spec.latent.valueDim};
    const bool dropped = in.training.dropout && spec.attentionDropout;
    int firstUp = 0;
    QueryKeyValue qkv = spec.latent ? projectLatent(layer, in, shape, x, parameters, firstUp) : projectQkv(layer, in, x, parameters);
    const int lastUp = layer.opCount() - 1;
    if (spec.positions == Positions::Rotary && !spec.latent) qkv = rotary(layer, shape, qkv);
    if (in.training.repeatKeysAndValues && in.shard.cp == 1 && isFlash(in.training.attention)) {  // else the products copy them, or the ring sends them as they are
        qkv = repeatKeysAndValues(layer, shape, qkv);
        shape.kvHeads = shape.heads;
    }
    const int context = in.shard.cp == 1                             ? attention(layer, shape, qkv, in.training.attention, dropped)
                        : in.shard.context == ContextKind::Ring ? ringAttention(layer, shape, qkv, in.shard, in.training.attention)
                                                                     : ulyssesAttention(layer, shape, qkv, in.shard, in.training.attention, dropped);
    if (spec.latent) layer.recomputable(RecomputeModule::LatentUp, firstUp, lastUp, layer.opCount() - 1);
    return leaveTensorRegion(layer, in, in.names.out, linear(layer, in.names.out, context, spec.hidden, parameters.out, {1, in.conv1d()}));
}

}  // namespace ringside
