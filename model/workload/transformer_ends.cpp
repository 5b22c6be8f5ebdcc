#include "model/workload/transformer_parts.h"

#include <algorithm>
#include <string>

#include "model/workload/dense_ops.h"
#include "model/workload/image_ops.h"
#include "model/workload/loss_ops.h"
#include "model/workload/parallel_ops.h"

namespace ringside {
namespace {

std::string weightName(std::string_view module) { return std::string(module) + ".weight"; }

/// A table (or a bias of the vocabulary) cut over the tensor axis.
int vocabParameter(LayerBuilder& layer, const TransformerContext& in, std::string name, Shape shape) {
    const int parameter = layer.parameter(std::move(name), std::move(shape));
    if (in.shard.tp > 1) markSharded(layer, parameter);
    return parameter;
}

/// A table that every rank holds whole.
int streamTable(LayerBuilder& layer, const TransformerContext& in, std::string name, Shape shape) {
    const int parameter = layer.parameter(std::move(name), std::move(shape));
    if (in.shard.splitsSequence()) markPartial(layer, {parameter, -1});
    return parameter;
}

/// Loss over the vocabulary. Picotron gathers the logits first.
int vocabLoss(LayerBuilder& layer, const TransformerContext& in, std::string_view name, int x, WeightBias head) {
    const LossKernel kernel = in.training.loss;
    if (kernel == LossKernel::FusedLinear && in.shard.tp == 1 && head.bias < 0) return fusedLinearLoss(layer, name, x, in.vocab(), head);
    const Entered entered = enterTensorRegion(layer, in, name, x);
    const int logits = linear(layer, name, entered.value, in.vocab(), head, {1, false, entered.gathered, true});
    if (in.shard.tp == 1) return crossEntropy(layer, logits, kernel, in.training.lossMetrics);
    if (in.shard.style == TensorStyle::Megatron) return vocabParallelCrossEntropy(layer, logits, in.shard.tp, kernel != LossKernel::Eager);
    return crossEntropy(layer, tensorGather(layer, "logits.tensor_gather", logits, in.shard.tp), kernel, in.training.lossMetrics);
}

}  // namespace

LayerType buildTokenEmbedding(const TransformerContext& in) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("embedding", in.training.precision);
    const int tokens = layer.value("tokens", {in.samples, in.length()}, DType::Int64, false);
    const int table = vocabParameter(layer, in, weightName(in.names.tokens), {in.vocab(), spec.hidden});
    const std::int64_t rows = (spec.positionsGrow ? in.sequence : spec.contextLength) + spec.positionOffset;
    const bool learned = spec.positions == Positions::Learned;
    const int positions = learned ? streamTable(layer, in, weightName(in.names.positions), {rows, spec.hidden}) : -1;
    const int types = spec.typeVocab > 0 ? streamTable(layer, in, "embeddings.token_type_embeddings.weight", {spec.typeVocab, spec.hidden}) : -1;
    const WeightBias normWeights = in.postNorm() ? normModule(layer, in, "embeddings.LayerNorm", spec.hidden) : WeightBias{};

    int x = embedding(layer, in.names.tokens, tokens, table, in.shard.tp);
    x = leaveTensorRegion(layer, in, in.names.tokens, x);
    if (types >= 0) x = positionEmbedding(layer, "embeddings.token_type_embeddings", x, types);
    if (positions >= 0) x = positionEmbedding(layer, in.names.positions, x, positions);
    if (in.postNorm()) x = norm(layer, "embeddings.LayerNorm", x, spec.rmsNorm, normWeights);
    if (in.residualDropout()) x = dropout(layer, "dropout", x);
    return layer.finish(x, false, false);
}

LayerType buildPatchEmbedding(const TransformerContext& in) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("embedding", in.training.precision, in.training.memoryFormat);
    const int image = layer.value("image", {in.samples, spec.channels, spec.imageSize, spec.imageSize}, layer.streamType(), false);
    const int classToken = layer.parameter("embeddings.cls_token", {1, 1, spec.hidden});
    const int positions = layer.parameter("embeddings.position_embeddings", {in.sequence, spec.hidden});
    const WeightBias projection =
        layer.module("embeddings.patch_embeddings.projection", {spec.hidden, spec.channels, spec.patchSize, spec.patchSize}, spec.hidden);
    int x = convolution(layer, "patch_embeddings", image, spec.hidden, {spec.patchSize, spec.patchSize, 0}, projection);
    x = patchesToTokens(layer, "tokens", x, classToken);
    x = positionEmbedding(layer, "position_embeddings", x, positions);
    if (in.residualDropout()) x = dropout(layer, "dropout", x);
    return layer.finish(x, false, false);
}

LayerType buildLanguageHead(const TransformerContext& in, int& tied) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("head", in.training.precision);
    // Multi-token prediction: the states of each module too, one batch after the other.
    const int x = layer.value("input", {(1 + spec.predictionModules) * in.samples, in.streamLength(), spec.hidden}, layer.streamType());
    const WeightBias normWeights = normModule(layer, in, in.names.finalNorm, spec.hidden);
    WeightBias head;
    head.weight = vocabParameter(layer, in, weightName(in.names.head), {in.vocab(), spec.hidden});
    if (spec.headBias) head.bias = vocabParameter(layer, in, std::string(in.names.head) + ".bias", {in.vocab()});
    tied = spec.tiedHead ? head.weight : -1;
    const int normed = norm(layer, in.names.finalNorm, x, spec.rmsNorm, normWeights, in.training.rmsNorm);
    return layer.finish(vocabLoss(layer, in, in.names.head, normed, head), false, false);
}

LayerType buildImageHead(const TransformerContext& in) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("head", in.training.precision);
    const int x = layer.value("input", {in.samples, in.streamLength(), spec.hidden}, layer.streamType());
    const WeightBias normWeights = normModule(layer, in, in.names.finalNorm, spec.hidden);
    const WeightBias classifier = layer.module(in.names.head, {spec.classes, spec.hidden}, spec.classes);
    const int first = firstToken(layer, "class_token", norm(layer, in.names.finalNorm, x, spec.rmsNorm, normWeights));
    return layer.finish(crossEntropy(layer, linear(layer, in.names.head, first, spec.classes, classifier)), false, false);
}

LayerType buildBertHead(const TransformerContext& in, int& tied) {
    const TransformerSpec& spec = in.spec;
    LayerBuilder layer("head", in.training.precision);
    const int x = layer.value("input", {in.samples, in.streamLength(), spec.hidden}, layer.streamType());
    const std::int64_t h = spec.hidden;
    WeightBias pooler, transform, normWeights, decoder, classifier;
    if (spec.pooler) pooler = layer.module("pooler.dense", {h, h}, h);
    if (spec.maskedLmHead) {
        decoder.bias = vocabParameter(layer, in, "cls.predictions.bias", {in.vocab()});  // registered before the modules, shared with the decoder
        transform = linearModule(layer, in, "cls.predictions.transform.dense", h, h, true, Split::None);
        normWeights = normModule(layer, in, "cls.predictions.transform.LayerNorm", h);
        decoder.weight = vocabParameter(layer, in, weightName(in.names.head), {in.vocab(), h});
        if (spec.tiedHead) tied = decoder.weight;
    }
    const bool pretraining = spec.maskedLmHead && spec.classes > 0;
    if (spec.classes > 0) classifier = layer.module(pretraining ? "cls.seq_relationship" : "classifier", {spec.classes, h}, spec.classes);

    int loss = -1;
    if (spec.maskedLmHead) {
        const std::int64_t masked = std::max<std::int64_t>(1, spec.maskedPredictions * in.streamLength() / in.sequence);  // of this rank's tokens
        const bool all = spec.maskedPredictions == 0 || masked >= in.streamLength();
        const int predicted = all ? x : selectTokens(layer, "masked_tokens", x, masked);
        const int transformed = activation(layer, "transform.act", kindOf(spec.activation), linear(layer, "transform.dense", predicted, h, transform));
        const int normed = norm(layer, "transform.LayerNorm", transformed, spec.rmsNorm, normWeights);
        loss = vocabLoss(layer, in, "decoder", normed, decoder);
    }
    if (spec.pooler || loss < 0) {
        // The first token is one rank's; all gather the sequence, and compute the same.
        const int sequence = in.shard.splitsSequence() ? sequenceGather(layer, "pooler.sequence_gather", x, in.shard.tp, layer.at(x).dtype, false,
                                                                        GatheredGradient::Same)
                                                       : x;
        int pooled = firstToken(layer, "first_token", sequence);
        if (spec.pooler) pooled = activation(layer, "pooler.act", OpKind::Tanh, linear(layer, "pooler.dense", pooled, h, pooler));
        if (spec.classes > 0) pooled = linear(layer, "classifier", pooled, spec.classes, classifier);
        const int second = crossEntropy(layer, pooled);
        loss = loss < 0 ? second : add(layer, "loss_sum", loss, second);
    }
    return layer.finish(loss, false, false);
}

}  // namespace ringside
