#include "model/workload/transformer.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "model/workload/attention_ops.h"
#include "model/workload/dense_ops.h"
#include "model/workload/expert_ops.h"
#include "model/workload/family_names.h"
#include "model/workload/image_ops.h"

namespace ringside {
namespace {

OpKind kindOf(Activation activation) {
    switch (activation) {
        case Activation::Gelu: return OpKind::Gelu;
        case Activation::Relu: return OpKind::Relu;
        case Activation::Silu: return OpKind::Silu;
    }
    return OpKind::Gelu;
}

/// What every layer of one model has in common.
struct Context {
    const TransformerSpec& spec;
    const TrainingConfig& training;
    const FamilyNames& names;
    std::int64_t samples, length;
    bool conv1d() const { return spec.family == TransformerFamily::Gpt2 || spec.family == TransformerFamily::Gpt3; }
    bool postNorm() const { return spec.family == TransformerFamily::Bert; }
    bool residualDropout() const { return training.dropout && spec.residualDropout; }
};

WeightBias normModule(LayerBuilder& layer, const TransformerSpec& spec, std::string_view name, std::int64_t features) {
    return layer.module(name, {features}, !spec.rmsNorm && spec.normBias ? features : 0);
}

WeightBias linearModule(LayerBuilder& layer, const Context& in, std::string_view name, std::int64_t from, std::int64_t to, bool bias) {
    return layer.module(name, in.conv1d() ? Shape{from, to} : Shape{to, from}, bias ? to : 0);
}

struct BlockParameters {
    WeightBias norm1, norm2, postNorm1, postNorm2;  // the post norms are Gemma 2's
    WeightBias qkv, q, k, v, qNorm, kNorm, out;
    WeightBias gate, up, down;
    ExpertParameters experts;
};

void registerAttention(LayerBuilder& layer, const Context& in, BlockParameters& out) {
    const TransformerSpec& spec = in.spec;
    const FamilyNames& names = in.names;
    const std::int64_t queries = spec.heads * spec.headDim, keys = spec.kvHeads * spec.headDim;
    if (spec.fusedQkv) {
        out.qkv = linearModule(layer, in, names.qkv, spec.hidden, queries + 2 * keys, spec.queryKeyValueBias);
    } else if (spec.family == TransformerFamily::Opt) {
        out.k = linearModule(layer, in, names.k, spec.hidden, keys, spec.queryKeyValueBias);
        out.v = linearModule(layer, in, names.v, spec.hidden, keys, spec.queryKeyValueBias);
        out.q = linearModule(layer, in, names.q, spec.hidden, queries, spec.queryKeyValueBias);
    } else {
        out.q = linearModule(layer, in, names.q, spec.hidden, queries, spec.queryKeyValueBias);
        out.k = linearModule(layer, in, names.k, spec.hidden, keys, spec.queryKeyValueBias);
        out.v = linearModule(layer, in, names.v, spec.hidden, keys, spec.queryKeyValueBias);
    }
    out.out = linearModule(layer, in, names.out, queries, spec.hidden, spec.attentionOutputBias);
    if (spec.queryKeyNorm) {
        out.qNorm = layer.module("self_attn.q_norm", {spec.headDim}, 0);
        out.kNorm = layer.module("self_attn.k_norm", {spec.headDim}, 0);
    }
}

void registerMlp(LayerBuilder& layer, const Context& in, BlockParameters& out) {
    const TransformerSpec& spec = in.spec;
    if (spec.experts > 0) {
        out.experts.router = layer.module("mlp.gate", {spec.experts, spec.hidden}, 0);
        out.experts.gateUp.weight = layer.parameter("mlp.experts.gate_up_proj", {spec.experts, 2 * spec.ffn, spec.hidden});
        out.experts.down.weight = layer.parameter("mlp.experts.down_proj", {spec.experts, spec.hidden, spec.ffn});
        return;
    }
    if (spec.gatedMlp) out.gate = linearModule(layer, in, in.names.gate, spec.hidden, spec.ffn, spec.mlpBias);
    out.up = linearModule(layer, in, in.names.up, spec.hidden, spec.ffn, spec.mlpBias);
    out.down = linearModule(layer, in, in.names.down, spec.ffn, spec.hidden, spec.mlpBias);
}

BlockParameters registerBlock(LayerBuilder& layer, const Context& in) {
    const TransformerSpec& spec = in.spec;
    BlockParameters out;
    const auto norm1 = [&] { out.norm1 = normModule(layer, spec, in.names.norm1, spec.hidden); };
    const auto norm2 = [&] {
        if (!in.names.norm2.empty()) out.norm2 = normModule(layer, spec, in.names.norm2, spec.hidden);
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
                out.postNorm1 = normModule(layer, spec, "post_attention_layernorm", spec.hidden);
                out.norm2 = normModule(layer, spec, "pre_feedforward_layernorm", spec.hidden);
                out.postNorm2 = normModule(layer, spec, "post_feedforward_layernorm", spec.hidden);
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

int headNorm(LayerBuilder& layer, const Context& in, std::string_view name, int x, std::int64_t heads, WeightBias parameters) {
    // One statistic per head and token: the norm sees rows of headDim.
    const int split = layer.value(name, {in.samples, in.length, heads, in.spec.headDim}, layer.at(x).dtype);
    layer.op(OpKind::Flatten, "split heads", {x}, {split}).gradientInPlace = true;
    return norm(layer, name, split, true, parameters);
}

int selfAttention(LayerBuilder& layer, const Context& in, int x, const BlockParameters& parameters) {
    const TransformerSpec& spec = in.spec;
    const std::int64_t queries = spec.heads * spec.headDim, keys = spec.kvHeads * spec.headDim;
    const LinearOptions options{1, in.conv1d()};
    const AttentionShape shape{in.samples, in.length, spec.heads, spec.kvHeads, spec.headDim, spec.causal};
    QueryKeyValue qkv;
    if (spec.fusedQkv) {
        qkv.q = linear(layer, in.names.qkv, x, queries + 2 * keys, parameters.qkv, options);
    } else {
        // Each norm stands right after its projection: backward then completes v, k's norm, k, q's norm, q.
        qkv.q = linear(layer, in.names.q, x, queries, parameters.q, options);
        if (spec.queryKeyNorm) qkv.q = headNorm(layer, in, "self_attn.q_norm", qkv.q, spec.heads, parameters.qNorm);
        qkv.k = linear(layer, in.names.k, x, keys, parameters.k, options);
        if (spec.queryKeyNorm) qkv.k = headNorm(layer, in, "self_attn.k_norm", qkv.k, spec.kvHeads, parameters.kNorm);
        qkv.v = linear(layer, in.names.v, x, keys, parameters.v, options);
    }
    if (spec.positions == Positions::Rotary) qkv = rotary(layer, shape, qkv);
    const int context = attention(layer, shape, qkv, in.training.attention, in.training.dropout && spec.attentionDropout);
    return linear(layer, in.names.out, context, spec.hidden, parameters.out, options);
}

int feedForward(LayerBuilder& layer, const Context& in, int x, const BlockParameters& parameters) {
    const TransformerSpec& spec = in.spec;
    const LinearOptions options{1, in.conv1d()};
    const OpKind act = kindOf(spec.activation);
    if (spec.experts > 0) return expertMlp(layer, x, spec.experts, spec.expertsPerToken, spec.ffn, act, parameters.experts);
    int hidden = 0;
    if (spec.gatedMlp) {
        const int gate = linear(layer, in.names.gate, x, spec.ffn, parameters.gate, options);
        const int up = linear(layer, in.names.up, x, spec.ffn, parameters.up, options);
        hidden = gatedActivation(layer, "mlp.act", act, gate, up);
    } else {
        hidden = activation(layer, "mlp.act", act, linear(layer, in.names.up, x, spec.ffn, parameters.up, options));
    }
    return linear(layer, in.names.down, hidden, spec.hidden, parameters.down, options);
}

LayerType buildBlock(const Context& in) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("block", in.training.precision);
    const int x = layer.value("input", {in.samples, in.length, spec.hidden}, layer.streamType());
    const BlockParameters parameters = registerBlock(layer, in);
    const auto dropped = [&](std::string_view name, int value) { return in.residualDropout() ? dropout(layer, name, value) : value; };
    const auto normed = [&](std::string_view name, int value, WeightBias weights) { return norm(layer, name, value, spec.rmsNorm, weights); };

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

std::string weightName(std::string_view module) { return std::string(module) + ".weight"; }

LayerType buildTokenEmbedding(const Context& in) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("embedding", in.training.precision);
    const int tokens = layer.value("tokens", {in.samples, in.length}, DType::Int64, false);
    const int table = layer.parameter(weightName(in.names.tokens), {spec.vocab, spec.hidden});
    const std::int64_t rows = (spec.positionsGrow ? in.length : spec.contextLength) + spec.positionOffset;
    const bool learned = spec.positions == Positions::Learned;
    const int positions = learned ? layer.parameter(weightName(in.names.positions), {rows, spec.hidden}) : -1;
    const int types = spec.typeVocab > 0 ? layer.parameter("embeddings.token_type_embeddings.weight", {spec.typeVocab, spec.hidden}) : -1;
    const WeightBias normWeights = in.postNorm() ? normModule(layer, spec, "embeddings.LayerNorm", spec.hidden) : WeightBias{};

    int x = embedding(layer, in.names.tokens, tokens, table, spec.tiedHead);
    if (types >= 0) x = positionEmbedding(layer, "embeddings.token_type_embeddings", x, types);
    if (positions >= 0) x = positionEmbedding(layer, in.names.positions, x, positions);
    if (in.postNorm()) x = norm(layer, "embeddings.LayerNorm", x, spec.rmsNorm, normWeights);
    if (in.residualDropout()) x = dropout(layer, "dropout", x);
    return layer.finish(x, false, false);
}

LayerType buildPatchEmbedding(const Context& in) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("embedding", in.training.precision);
    const int image = layer.value("image", {in.samples, spec.channels, spec.imageSize, spec.imageSize}, layer.streamType(), false);
    const int classToken = layer.parameter("embeddings.cls_token", {1, 1, spec.hidden});
    const int positions = layer.parameter("embeddings.position_embeddings", {in.length, spec.hidden});
    const WeightBias projection =
        layer.module("embeddings.patch_embeddings.projection", {spec.hidden, spec.channels, spec.patchSize, spec.patchSize}, spec.hidden);
    int x = convolution(layer, "patch_embeddings", image, spec.hidden, {spec.patchSize, spec.patchSize, 0}, projection);
    x = patchesToTokens(layer, "tokens", x, classToken);
    x = positionEmbedding(layer, "position_embeddings", x, positions);
    if (in.residualDropout()) x = dropout(layer, "dropout", x);
    return layer.finish(x, false, false);
}

/// `tied` becomes the index of the head's use of the embedding table, or -1.
LayerType buildLanguageHead(const Context& in, int& tied) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("head", in.training.precision);
    const int x = layer.value("input", {in.samples, in.length, spec.hidden}, layer.streamType());
    const WeightBias normWeights = normModule(layer, spec, in.names.finalNorm, spec.hidden);
    const WeightBias head = layer.module(in.names.head, {spec.vocab, spec.hidden}, spec.headBias ? spec.vocab : 0);
    tied = spec.tiedHead ? head.weight : -1;
    const int normed = norm(layer, in.names.finalNorm, x, spec.rmsNorm, normWeights);
    return layer.finish(crossEntropy(layer, linear(layer, in.names.head, normed, spec.vocab, head)), false, false);
}

LayerType buildImageHead(const Context& in) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("head", in.training.precision);
    const int x = layer.value("input", {in.samples, in.length, spec.hidden}, layer.streamType());
    const WeightBias normWeights = normModule(layer, spec, in.names.finalNorm, spec.hidden);
    const WeightBias classifier = layer.module(in.names.head, {spec.classes, spec.hidden}, spec.classes);
    const int first = firstToken(layer, "class_token", norm(layer, in.names.finalNorm, x, spec.rmsNorm, normWeights));
    return layer.finish(crossEntropy(layer, linear(layer, in.names.head, first, spec.classes, classifier)), false, false);
}

LayerType buildBertHead(const Context& in, int& tied) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("head", in.training.precision);
    const int x = layer.value("input", {in.samples, in.length, spec.hidden}, layer.streamType());
    const std::int64_t h = spec.hidden;
    WeightBias pooler, transform, normWeights, decoder, classifier;
    if (spec.pooler) pooler = layer.module("pooler.dense", {h, h}, h);
    if (spec.maskedLmHead) {
        decoder.bias = layer.parameter("cls.predictions.bias", {spec.vocab});  // registered before the modules, shared with the decoder
        transform = layer.module("cls.predictions.transform.dense", {h, h}, h);
        normWeights = normModule(layer, spec, "cls.predictions.transform.LayerNorm", h);
        decoder.weight = layer.module(in.names.head, {spec.vocab, h}, 0).weight;
        if (spec.tiedHead) tied = decoder.weight;
    }
    const bool pretraining = spec.maskedLmHead && spec.classes > 0;
    if (spec.classes > 0) classifier = layer.module(pretraining ? "cls.seq_relationship" : "classifier", {spec.classes, h}, spec.classes);

    int loss = -1;
    if (spec.maskedLmHead) {
        const int transformed = activation(layer, "transform.act", kindOf(spec.activation), linear(layer, "transform.dense", x, h, transform));
        const int normed = norm(layer, "transform.LayerNorm", transformed, spec.rmsNorm, normWeights);
        loss = crossEntropy(layer, linear(layer, "decoder", normed, spec.vocab, decoder));
    }
    if (spec.pooler || loss < 0) {
        int pooled = firstToken(layer, "first_token", x);
        if (spec.pooler) pooled = activation(layer, "pooler.act", OpKind::Tanh, linear(layer, "pooler.dense", pooled, h, pooler));
        if (spec.classes > 0) pooled = linear(layer, "classifier", pooled, spec.classes, classifier);
        const int second = crossEntropy(layer, pooled);
        loss = loss < 0 ? second : add(layer, "loss_sum", loss, second);
    }
    return layer.finish(loss, false, false);
}

}  // namespace

std::int64_t imageTokens(const TransformerSpec& spec) {
    const std::int64_t side = spec.imageSize / spec.patchSize;
    return side * side + 1;
}

Result<void> validate(const TransformerSpec& spec, const std::string& name) {
    struct Bound {
        const char* what;
        std::int64_t value, min, max;
    };
    const bool image = spec.family == TransformerFamily::Vit;
    const std::array bounds{Bound{"layers", spec.layers, 1, 10'000},
                            Bound{"hidden size", spec.hidden, 1, 1 << 20},
                            Bound{"attention heads", spec.heads, 1, 1 << 16},
                            Bound{"key/value heads", spec.kvHeads, 1, 1 << 16},
                            Bound{"head size", spec.headDim, 1, 1 << 16},
                            Bound{"feed-forward size", spec.ffn, 1, 1 << 22},
                            Bound{"vocabulary", image ? 1 : spec.vocab, 1, 1 << 24},
                            Bound{"context length", image ? 1 : spec.contextLength, 1, 1 << 28},
                            Bound{"experts", spec.experts, 0, 4096},
                            Bound{"image size", image ? spec.imageSize : 1, 1, 1 << 14},
                            Bound{"patch size", image ? spec.patchSize : 1, 1, 1 << 14},
                            Bound{"image channels", image ? spec.channels : 1, 1, 4096},
                            Bound{"classes", spec.classes, image ? 1 : 0, 1 << 24}};
    for (const Bound& bound : bounds)
        if (bound.value < bound.min || bound.value > bound.max)
            return badInput(name, fmt::format("{} is {}; expected {} to {}", bound.what, bound.value, bound.min, bound.max));
    if (spec.heads % spec.kvHeads != 0)
        return badInput(name, fmt::format("{} key/value heads do not divide {} attention heads", spec.kvHeads, spec.heads));
    if (spec.experts > 0 && (spec.expertsPerToken < 1 || spec.expertsPerToken > spec.experts))
        return badInput(name, fmt::format("a token uses {} of {} experts; expected 1 to {}", spec.expertsPerToken, spec.experts, spec.experts));
    if (image && spec.imageSize % spec.patchSize != 0)
        return badInput(name, fmt::format("patches of {} do not divide an image of {}", spec.patchSize, spec.imageSize));
    return {};
}

Workload buildTransformer(const TransformerSpec& spec, const TrainingConfig& training, std::int64_t length) {
    const Context in{spec, training, namesOf(spec.family), training.microBatch, length};
    const bool image = spec.family == TransformerFamily::Vit;
    int tied = -1;
    Workload out;
    out.types.reserve(3);
    out.types.push_back(image ? buildPatchEmbedding(in) : buildTokenEmbedding(in));
    out.types.push_back(buildBlock(in));
    out.types.push_back(image                                       ? buildImageHead(in)
                        : spec.family == TransformerFamily::Bert ? buildBertHead(in, tied)
                                                                    : buildLanguageHead(in, tied));
    out.layers.reserve(static_cast<std::size_t>(spec.layers) + 2);
    out.layers.push_back({0, "embedding"});
    std::string name(in.names.block);
    name += '.';
    const std::size_t stem = name.size();
    for (std::int64_t i = 0; i < spec.layers; ++i) {
        name.resize(stem);
        name += std::to_string(i);
        out.layers.push_back({1, name});
    }
    out.layers.push_back({2, "head"});
    if (tied >= 0) out.ties.push_back({static_cast<int>(spec.layers) + 1, tied, 0, 0});
    out.samples = training.microBatch;
    out.tokensPerSample = image ? 0 : length;
    // Tokens and labels as int64; an image as fp32, and one label.
    const std::int64_t perSample = image ? 4 * spec.channels * spec.imageSize * spec.imageSize + 8 : 16 * length;
    out.inputBytes = training.microBatch * perSample;
    return out;
}

}  // namespace ringside
