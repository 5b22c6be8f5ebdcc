#include "model/workload/transformer_parts.h"

#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"
#include "model/workload/tensor_overlap.h"

namespace ringside {
namespace {

struct BlockParameters {
    WeightBias norm1, norm2, postNorm1, postNorm2;  // the post norms are Gemma 2's
    AttentionParameters attention;
    FeedForwardParameters feedForward;
};

BlockParameters registerBlock(LayerBuilder& layer, const TransformerContext& in, bool experts) {
    const TransformerSpec& spec = in.spec;
    BlockParameters out;
    const auto norm1 = [&] { out.norm1 = normModule(layer, in, in.names.norm1, spec.hidden); };
    const auto norm2 = [&] {
        if (!in.names.norm2.empty()) out.norm2 = normModule(layer, in, in.names.norm2, spec.hidden);
    };
    switch (in.names.order) {
        case BlockOrder::NormAttentionNormMlp:
            norm1();
            out.attention = registerAttention(layer, in);
            norm2();
            out.feedForward = registerFeedForward(layer, in, experts);
            break;
        case BlockOrder::AttentionMlpNorms:
            out.attention = registerAttention(layer, in);
            out.feedForward = registerFeedForward(layer, in, experts);
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
            out.attention = registerAttention(layer, in);
            norm1();
            norm2();
            out.feedForward = registerFeedForward(layer, in, experts);
            break;
        case BlockOrder::NormsAttentionMlp:
            norm1();
            norm2();
            out.attention = registerAttention(layer, in);
            out.feedForward = registerFeedForward(layer, in, experts);
            break;
        case BlockOrder::AttentionNormMlpNorm:
            out.attention = registerAttention(layer, in);
            norm1();
            out.feedForward = registerFeedForward(layer, in, experts);
            norm2();
            break;
    }
    return out;
}

/// Norms, attention, MLP and residual adds from `x` to the block's output.
int runBlock(LayerBuilder& layer, const TransformerContext& in, int x, const BlockParameters& parameters, bool experts) {
    const TransformerSpec& spec = in.spec;
    const auto dropped = [&](std::string_view name, int value) { return in.residualDropout() ? dropout(layer, name, value) : value; };
    const auto normed = [&](std::string_view name, int value, WeightBias weights) { return norm(layer, name, value, spec.rmsNorm, weights, in.training.rmsNorm); };

    if (in.postNorm()) {
        const int attended = add(layer, "add_1", dropped("dropout_1", selfAttention(layer, in, x, parameters.attention)), x);
        const int middle = normed(in.names.norm1, attended, parameters.norm1);
        const int fed = add(layer, "add_2", dropped("dropout_2", feedForward(layer, in, middle, parameters.feedForward, experts)), middle);
        return normed(in.names.norm2, fed, parameters.norm2);
    }
    // A norm that Transformer Engine makes one module with the product after it is not one that can run again by itself.
    const auto recomputable = [&](int normOp, bool alone) {
        if (alone || !in.shard.transformerEngine) layer.recomputable(RecomputeModule::LayerNorm, normOp, normOp, layer.opCount() - 1);
    };
    const int firstNorm = layer.opCount();
    const int first = normed(in.names.norm1, x, parameters.norm1);
    int attended = selfAttention(layer, in, first, parameters.attention);
    if (!spec.parallelBlock) recomputable(firstNorm, static_cast<bool>(spec.latent));
    attended = dropped("dropout_1", attended);
    if (spec.parallelBlock) {
        const int second = in.names.norm2.empty() ? first : normed(in.names.norm2, x, parameters.norm2);
        const int fed = dropped("dropout_2", feedForward(layer, in, second, parameters.feedForward, experts));
        return add(layer, "add_2", x, add(layer, "add_1", attended, fed));
    }
    const bool sandwich = spec.family == TransformerFamily::Gemma2;
    if (sandwich) attended = normed("post_attention_layernorm", attended, parameters.postNorm1);
    const int middle = add(layer, "add_1", x, attended);
    layer.capturable(GraphScope::Attention, firstNorm);
    const int secondNorm = layer.opCount();
    const int second = normed(sandwich ? "pre_feedforward_layernorm" : in.names.norm2, middle, parameters.norm2);
    layer.capturable(experts ? GraphScope::Router : GraphScope::Mlp, secondNorm);
    int fed = feedForward(layer, in, second, parameters.feedForward, experts);
    recomputable(secondNorm, experts);
    fed = dropped("dropout_2", fed);
    if (sandwich) fed = normed("post_feedforward_layernorm", fed, parameters.postNorm2);
    const int y = add(layer, "add_2", middle, fed);
    layer.capturable(experts ? GraphScope::Experts : GraphScope::Mlp, secondNorm);
    return y;
}

}  // namespace

LayerType buildBlock(const TransformerContext& in, bool experts) {
    // Blocks without experts among those with them are a kind of their own.
    const bool among = in.spec.experts > 0 && !experts;
    LayerBuilder layer(among ? "dense_block" : "block", in.training.precision);
    const int x = layer.value("input", {in.samples, in.streamLength(), in.spec.hidden}, layer.streamType());
    const BlockParameters parameters = registerBlock(layer, in, experts);
    LayerType block = layer.finish(runBlock(layer, in, x, parameters, experts), true, true);
    if (in.shard.overlapsTensor && in.shard.splitsSequence()) overlapTensorCollectives(block, in.shard.tp);
    return block;
}

LayerType buildPredictionModule(const TransformerContext& in, std::int64_t index, int& table) {
    const TransformerSpec& spec = in.spec;
    const bool experts = spec.hasExperts(spec.layers - 1);
    LayerBuilder layer("prediction", in.training.precision);
    const Shape one{in.samples, in.streamLength(), spec.hidden};
    const int before = layer.value("input", {(1 + index) * in.samples, in.streamLength(), spec.hidden}, layer.streamType());
    table = layer.parameter("embed_tokens.weight", {in.vocab(), spec.hidden});
    if (in.shard.tp > 1) markSharded(layer, table);
    const WeightBias tokenNorm = normModule(layer, in, "enorm", spec.hidden), stateNorm = normModule(layer, in, "hnorm", spec.hidden);
    const WeightBias joins = linearModule(layer, in, "eh_proj", 2 * spec.hidden, spec.hidden, false, Split::None);
    const BlockParameters block = registerBlock(layer, in, experts);
    const WeightBias lastNorm = normModule(layer, in, "shared_head.norm", spec.hidden);
    const auto normed = [&](std::string_view name, int value, WeightBias weights) { return norm(layer, name, value, spec.rmsNorm, weights, in.training.rmsNorm); };

    // Tokens are on the device already: the look-up waits for nothing in this layer.
    int tokens = embedding(layer, "embed_tokens", Shape{in.samples, in.length()}, table, in.shard.tp);
    tokens = leaveTensorRegion(layer, in, "embed_tokens", tokens);
    int states = before;
    if (index > 0) {
        states = layer.value("states", one, layer.at(before).dtype);
        layer.op(OpKind::Flatten, "states", {before}, {states}).gradientInPlace = true;
    }
    const int nextTokens = normed("enorm", tokens, tokenNorm), ownStates = normed("hnorm", states, stateNorm);
    const int pairs = layer.value("pairs", {in.samples, in.streamLength(), 2 * spec.hidden}, layer.at(ownStates).dtype);
    {
        Op& op = layer.op(OpKind::Concat, "pairs", {nextTokens, ownStates}, {pairs});
        op.forward = {memoryWork("concat", 2 * static_cast<double>(layer.bytes(pairs)))};
        op.attributes = {2};
    }
    const int x = linear(layer, "eh_proj", pairs, spec.hidden, joins);
    const int predicted = normed("shared_head.norm", runBlock(layer, in, x, block, experts), lastNorm);
    const int all = layer.value("all states", {(2 + index) * in.samples, in.streamLength(), spec.hidden}, layer.at(before).dtype);
    Op& op = layer.op(OpKind::Concat, "all states", {before, predicted}, {all});
    op.forward = {memoryWork("concat", 2 * static_cast<double>(layer.bytes(all)))};
    op.attributes = {0};
    return layer.finish(all, true, true);
}

}  // namespace ringside
