// EfficientNet (Tan & Le, 2019): stages of inverted bottlenecks with depthwise convolutions and squeeze-and-excitation, scaled in width and
// depth. Names and order of torchvision's efficientnet_b0 to b7. Stochastic depth is left out: it drops whole blocks at random.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "model/workload/convnet.h"
#include "model/workload/dense_ops.h"
#include "model/workload/loss_ops.h"

namespace ringside {
namespace {

struct Stage {
    std::int64_t expand, kernel, stride, channels, repeats;
};
constexpr std::array kStages{Stage{1, 3, 1, 16, 1}, Stage{6, 3, 2, 24, 2}, Stage{6, 5, 2, 40, 2}, Stage{6, 3, 2, 80, 3}, Stage{6, 5, 1, 112, 3}, Stage{6, 5, 2, 192, 4}, Stage{6, 3, 1, 320, 1}};
constexpr std::int64_t kStem = 32, kFeatures = 1280, kSqueeze = 4;

/// To a multiple of eight, never more than a tenth below.
std::int64_t scaled(std::int64_t channels, double coefficient) {
    const double wanted = static_cast<double>(channels) * coefficient;
    const std::int64_t rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
    return static_cast<double>(rounded) < 0.9 * wanted ? rounded + 8 : rounded;
}

/// Convolution, batch norm and, if asked for, SiLU.
int unit(LayerBuilder& layer, const std::string& name, int x, std::int64_t to, const ConvolutionShape& window, bool activated) {
    const WeightBias weights = convolutionModule(layer, name + ".0", layer.at(x).shape[1], to, window, false);
    const WeightBias normWeights = layer.module(name + ".1", {to}, to);
    const int y = batchNorm(layer, name + ".1", convolution(layer, name + ".0", x, to, window, weights), normWeights);
    return activated ? activation(layer, name + ".2", OpKind::Silu, y) : y;
}

LayerType buildStem(const ConvNetSpec& spec, const TrainingConfig& training) {
    LayerBuilder layer("stem", training.precision, training.memoryFormat);
    const int image = layer.value("image", {training.microBatch, spec.channels, spec.imageSize, spec.imageSize}, layer.streamType(), false);
    return layer.finish(unit(layer, "features.0", image, scaled(kStem, spec.widthCoefficient), {3, 2, 1}, true), false, false);
}

LayerType buildBlock(const ConvNetSpec& spec, const TrainingConfig& training, const Carried& from, const Stage& stage, std::int64_t stride, const std::string& name) {
    LayerBuilder layer(name, training.precision, training.memoryFormat);
    const int x = layer.value("input", from.shape, from.dtype);
    const std::int64_t in = from.shape[1], hidden = in * stage.expand, out = scaled(stage.channels, spec.widthCoefficient);
    int part = 0;
    const auto next = [&] { return "block." + std::to_string(part++); };
    int y = x;
    if (stage.expand != 1) y = unit(layer, next(), y, hidden, {1, 1, 0}, true);
    y = unit(layer, next(), y, hidden, {stage.kernel, stride, stage.kernel / 2, hidden}, true);
    const std::int64_t squeezed = std::max<std::int64_t>(1, (spec.squeezeHidden ? hidden : in) / kSqueeze);
    const std::string gate = next();
    const WeightBias squeeze = layer.module(gate + ".fc1", {squeezed, hidden}, squeezed), expand = layer.module(gate + ".fc2", {hidden, squeezed}, hidden);
    y = squeezeExcitation(layer, gate, y, squeezed, OpKind::Silu, squeeze, expand);
    y = unit(layer, next(), y, out, {1, 1, 0}, false);
    if (stride == 1 && in == out) y = add(layer, "add", y, x);
    return layer.finish(y, true, true);
}

LayerType buildHead(const ConvNetSpec& spec, const TrainingConfig& training, const Carried& from) {
    LayerBuilder layer("head", training.precision, training.memoryFormat);
    int x = layer.value("input", from.shape, from.dtype);
    const std::int64_t features = scaled(kFeatures, spec.widthCoefficient);
    x = unit(layer, "features.8", x, features, {1, 1, 0}, true);
    const WeightBias weights = layer.module("classifier.1", {spec.classes, features}, spec.classes);
    x = flatten(layer, "flatten", averagePool(layer, "avgpool", x, 1));
    if (training.dropout) x = dropout(layer, "classifier.0", x);
    return layer.finish(crossEntropy(layer, linear(layer, "classifier.1", x, spec.classes, weights)), false, false);
}

}  // namespace

Workload buildEfficientNet(const ConvNetSpec& spec, const TrainingConfig& training) {
    Workload out;
    const auto append = [&](LayerType type, std::string name) {
        out.types.push_back(std::move(type));
        out.layers.push_back({static_cast<int>(out.types.size()) - 1, std::move(name)});
    };
    append(buildStem(spec, training), "stem");
    for (std::size_t s = 0; s < kStages.size(); ++s) {
        const Stage& stage = kStages[s];
        const std::string prefix = "features." + std::to_string(s + 1);
        const auto repeats = static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.repeats) * spec.depthCoefficient));
        for (std::int64_t block = 0; block < repeats; ++block) {
            const std::string name = prefix + "." + std::to_string(block);
            if (block < 2)  // the first changes size; the others of a stage are alike
                append(buildBlock(spec, training, outputOf(out.types.back()), stage, block == 0 ? stage.stride : 1, prefix + (block == 0 ? ".first" : ".block")), name);
            else
                out.layers.push_back({static_cast<int>(out.types.size()) - 1, name});
        }
    }
    append(buildHead(spec, training, outputOf(out.types.back())), "head");
    return out;
}

}  // namespace ringside
