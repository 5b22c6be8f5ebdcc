#include "model/workload/convnet.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "model/workload/dense_ops.h"
#include "model/workload/image_ops.h"
#include "model/workload/loss_ops.h"

namespace ringside {
namespace {

struct Unit {
    const char* convolution;
    const char* norm;
    std::int64_t to;
    ConvolutionShape window;
};

LayerType buildStem(const ConvNetSpec& spec, const TrainingConfig& training) {
    LayerBuilder layer("stem", training.precision, training.memoryFormat);
    const int image = layer.value("image", {training.microBatch, spec.channels, spec.imageSize, spec.imageSize}, layer.streamType(), false);
    const WeightBias weights = convolutionModule(layer, "conv1", spec.channels, 64, {7, 2, 3}, false);
    const WeightBias normWeights = layer.module("bn1", {64}, 64);
    int x = convolution(layer, "conv1", image, 64, {7, 2, 3}, weights);
    x = activation(layer, "relu", OpKind::Relu, batchNorm(layer, "bn1", x, normWeights));
    return layer.finish(maxPool(layer, "maxpool", x, {3, 2, 1}), false, false);
}

LayerType buildResidualBlock(const ConvNetSpec& spec, const TrainingConfig& training, const Carried& from, std::int64_t width, std::int64_t stride,
                             std::string_view name) {
    LayerBuilder layer(name, training.precision, training.memoryFormat);
    const int x = layer.value("input", from.shape, from.dtype);
    const std::int64_t channels = from.shape[1], out = spec.bottleneck ? 4 * width : width;
    std::vector<Unit> units;
    const std::int64_t inner = width / 64 * spec.groupWidth * spec.groups;  // ResNet: `width`
    if (spec.bottleneck)
        units = {{"conv1", "bn1", inner, {1, 1, 0}}, {"conv2", "bn2", inner, {3, stride, 1, spec.groups}}, {"conv3", "bn3", out, {1, 1, 0}}};
    else
        units = {{"conv1", "bn1", width, {3, stride, 1}}, {"conv2", "bn2", width, {3, 1, 1}}};

    int main = x;
    std::int64_t in = channels;
    for (std::size_t i = 0; i < units.size(); ++i) {
        const Unit& unit = units[i];
        const WeightBias weights = convolutionModule(layer, unit.convolution, in, unit.to, unit.window, false);
        const WeightBias normWeights = layer.module(unit.norm, {unit.to}, unit.to);
        main = batchNorm(layer, unit.norm, convolution(layer, unit.convolution, main, unit.to, unit.window, weights), normWeights);
        if (i + 1 < units.size()) main = activation(layer, "relu", OpKind::Relu, main);
        in = unit.to;
    }
    if (spec.squeeze > 0) {
        const WeightBias squeeze = layer.module("se.fc1", {out / spec.squeeze, out}, out / spec.squeeze), expand = layer.module("se.fc2", {out, out / spec.squeeze}, out);
        main = squeezeExcitation(layer, "se", main, out / spec.squeeze, OpKind::Relu, squeeze, expand);
    }
    int shortcut = x;
    if (stride != 1 || channels != out) {
        const WeightBias weights = convolutionModule(layer, "downsample.0", channels, out, {1, stride, 0}, false);
        const WeightBias normWeights = layer.module("downsample.1", {out}, out);
        shortcut = batchNorm(layer, "downsample.1", convolution(layer, "downsample.0", x, out, {1, stride, 0}, weights), normWeights);
    }
    return layer.finish(activation(layer, "relu", OpKind::Relu, add(layer, "add", main, shortcut)), true, true);
}

LayerType buildResNetHead(const ConvNetSpec& spec, const TrainingConfig& training, const Carried& from) {
    LayerBuilder layer("head", training.precision, training.memoryFormat);
    const int x = layer.value("input", from.shape, from.dtype);
    const WeightBias weights = layer.module("fc", {spec.classes, from.shape[1]}, spec.classes);
    const int pooled = flatten(layer, "flatten", averagePool(layer, "avgpool", x, 1));
    return layer.finish(crossEntropy(layer, linear(layer, "fc", pooled, spec.classes, weights)), false, false);
}

Workload buildResNet(const ConvNetSpec& spec, const TrainingConfig& training) {
    Workload out;
    out.types.push_back(buildStem(spec, training));
    out.layers.push_back({0, "stem"});
    for (std::size_t stage = 0; stage < spec.blocksPerStage.size(); ++stage) {
        const std::int64_t width = std::int64_t{64} << stage;
        const std::string prefix = "layer" + std::to_string(stage + 1);
        // The first block changes size and has a type of its own; the others of a stage share one.
        for (std::int64_t block = 0; block < spec.blocksPerStage[stage]; ++block) {
            if (block < 2) {
                const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
                LayerType type = buildResidualBlock(spec, training, outputOf(out.types.back()), width, stride,
                                                    prefix + (block == 0 ? ".first" : ".block"));
                out.types.push_back(std::move(type));
            }
            out.layers.push_back({static_cast<int>(out.types.size()) - 1, prefix + "." + std::to_string(block)});
        }
    }
    LayerType head = buildResNetHead(spec, training, outputOf(out.types.back()));
    out.types.push_back(std::move(head));
    out.layers.push_back({static_cast<int>(out.types.size()) - 1, "head"});
    return out;
}

LayerType buildVggStage(const ConvNetSpec& spec, const TrainingConfig& training, const Carried* from, std::size_t stage, int& module) {
    LayerBuilder layer("stage" + std::to_string(stage + 1), training.precision, training.memoryFormat);
    int x = from ? layer.value("input", from->shape, from->dtype)
                 : layer.value("image", {training.microBatch, spec.channels, spec.imageSize, spec.imageSize}, layer.streamType(), false);
    const std::int64_t width = std::min<std::int64_t>(512, std::int64_t{64} << stage);
    for (std::int64_t i = 0; i < spec.blocksPerStage[stage]; ++i) {
        const std::string name = "features." + std::to_string(module);
        const WeightBias weights = convolutionModule(layer, name, layer.at(x).shape[1], width, {3, 1, 1}, true);
        x = activation(layer, "relu", OpKind::Relu, convolution(layer, name, x, width, {3, 1, 1}, weights));
        module += 2;  // the ReLU is a module too
    }
    ++module;  // and so is the pool
    return layer.finish(maxPool(layer, "maxpool", x, {2, 2, 0}), true, false);
}

LayerType buildVggHead(const ConvNetSpec& spec, const TrainingConfig& training, const Carried& from) {
    LayerBuilder layer("classifier", training.precision, training.memoryFormat);
    int x = layer.value("input", from.shape, from.dtype);
    const std::int64_t flat = from.shape[1] * 49;
    const WeightBias first = layer.module("classifier.0", {4096, flat}, 4096);
    const WeightBias second = layer.module("classifier.3", {4096, 4096}, 4096);
    const WeightBias third = layer.module("classifier.6", {spec.classes, 4096}, spec.classes);
    x = flatten(layer, "flatten", averagePool(layer, "avgpool", x, 7));
    x = activation(layer, "relu", OpKind::Relu, linear(layer, "classifier.0", x, 4096, first));
    if (training.dropout) x = dropout(layer, "dropout", x);
    x = activation(layer, "relu", OpKind::Relu, linear(layer, "classifier.3", x, 4096, second));
    if (training.dropout) x = dropout(layer, "dropout", x);
    return layer.finish(crossEntropy(layer, linear(layer, "classifier.6", x, spec.classes, third)), false, false);
}

Workload buildVgg(const ConvNetSpec& spec, const TrainingConfig& training) {
    Workload out;
    int module = 0;
    for (std::size_t stage = 0; stage < spec.blocksPerStage.size(); ++stage) {
        Carried from{};
        if (stage > 0) from = outputOf(out.types.back());
        LayerType type = buildVggStage(spec, training, stage > 0 ? &from : nullptr, stage, module);
        out.types.push_back(std::move(type));
        out.layers.push_back({static_cast<int>(stage), "stage" + std::to_string(stage + 1)});
    }
    LayerType head = buildVggHead(spec, training, outputOf(out.types.back()));
    out.types.push_back(std::move(head));
    out.layers.push_back({static_cast<int>(out.types.size()) - 1, "classifier"});
    return out;
}

}  // namespace

WeightBias convolutionModule(LayerBuilder& layer, std::string_view name, std::int64_t from, std::int64_t to, const ConvolutionShape& window, bool bias) {
    return layer.module(name, {to, from / window.groups, window.kernel, window.kernel}, bias ? to : 0);
}

Carried outputOf(const LayerType& type) {
    const Value& value = type.values[static_cast<std::size_t>(type.output)];
    return {value.shape, value.dtype};
}

Result<void> validate(const ConvNetSpec& spec, const std::string& name) {
    const std::size_t stages = spec.family == ConvNetSpec::Family::EfficientNet ? 4 : spec.blocksPerStage.size();
    if (spec.family == ConvNetSpec::Family::EfficientNet && (spec.widthCoefficient < 0.1 || spec.widthCoefficient > 20 || spec.depthCoefficient < 0.1 || spec.depthCoefficient > 20))
        return badInput(name, fmt::format("width_coefficient {} and depth_coefficient {}; expected 0.1 to 20", spec.widthCoefficient, spec.depthCoefficient));
    if (spec.groups < 1 || spec.groups > 4096 || spec.groupWidth < 1 || spec.groupWidth > 4096)
        return badInput(name, fmt::format("{} groups of width {}; expected 1 to 4096 of both", spec.groups, spec.groupWidth));
    if (spec.groups > 1 && !spec.bottleneck) return badInput(name, "groups in basic blocks are not supported; expected bottlenecks");
    if (spec.squeeze < 0 || spec.squeeze > 64) return badInput(name, fmt::format("squeeze_ratio is {}; expected 0 to 64", spec.squeeze));
    if (stages < 1 || stages > 5) return badInput(name, fmt::format("{} stages; expected 1 to 5", stages));
    for (const std::int64_t blocks : spec.blocksPerStage)
        if (blocks < 1 || blocks > 1000) return badInput(name, fmt::format("a stage of {} blocks; expected 1 to 1000", blocks));
    // Each stage (and ResNet's stem, twice) halves the image; something must be left of it.
    const std::int64_t smallest = spec.family == ConvNetSpec::Family::Vgg ? std::int64_t{1} << stages : std::int64_t{1} << (stages + 1);
    if (spec.imageSize < smallest || spec.imageSize > (1 << 14))
        return badInput(name, fmt::format("image size is {}; expected {} to {}", spec.imageSize, smallest, 1 << 14));
    if (spec.channels < 1 || spec.channels > 4096) return badInput(name, fmt::format("{} image channels; expected 1 to 4096", spec.channels));
    if (spec.classes < 1 || spec.classes > (1 << 24)) return badInput(name, fmt::format("{} classes; expected 1 to {}", spec.classes, 1 << 24));
    return {};
}

Workload buildConvNet(const ConvNetSpec& spec, const TrainingConfig& training) {
    const bool vgg = spec.family == ConvNetSpec::Family::Vgg, resnet = spec.family == ConvNetSpec::Family::ResNet;
    Workload out = vgg ? buildVgg(spec, training) : resnet ? buildResNet(spec, training) : buildEfficientNet(spec, training);
    out.samples = training.microBatch;
    out.inputBytes = training.microBatch * (4 * spec.channels * spec.imageSize * spec.imageSize + 8);
    return out;
}

}  // namespace ringside
