#include "model/workload/mlp.h"

#include <string>

#include <fmt/format.h>

#include "model/workload/loss_ops.h"

namespace ringside {
namespace {

OpKind kindOf(Activation activation) {
    return activation == Activation::Gelu ? OpKind::Gelu : activation == Activation::Silu ? OpKind::Silu : OpKind::Relu;
}

LayerType buildLinearLayer(const MlpSpec& spec, const TrainingConfig& training, std::size_t index) {
    const bool first = index == 0, last = index + 2 == spec.widths.size();
    LayerBuilder layer(last ? "head" : "block", training.precision);
    const DType type = first ? layer.streamType() : training.precision.activation;
    const int x = layer.value("input", {training.microBatch, spec.widths[index]}, type, !first);
    const std::int64_t out = spec.widths[index + 1];
    const WeightBias weights = layer.module("linear", {out, spec.widths[index]}, spec.bias ? out : 0);
    const int y = linear(layer, "linear", x, out, weights);
    if (last) return layer.finish(crossEntropy(layer, y), false, true);
    return layer.finish(activation(layer, "act", kindOf(spec.activation), y), true, true);
}

}  // namespace

Result<void> validate(const MlpSpec& spec, const std::string& name) {
    if (spec.widths.size() < 2 || spec.widths.size() > 10'000)
        return badInput(name, fmt::format("{} widths; expected at least an input and an output width, at most 10000", spec.widths.size()));
    for (const std::int64_t width : spec.widths)
        if (width < 1 || width > (1 << 24)) return badInput(name, fmt::format("a width of {}; expected 1 to {}", width, 1 << 24));
    return {};
}

Workload buildMlp(const MlpSpec& spec, const TrainingConfig& training) {
    Workload out;
    const std::size_t count = spec.widths.size() - 1;
    for (std::size_t i = 0; i < count; ++i) {
        const bool sameAsBefore = i >= 2 && i + 1 < count && spec.widths[i] == spec.widths[i - 1] && spec.widths[i + 1] == spec.widths[i];
        if (!sameAsBefore) out.types.push_back(buildLinearLayer(spec, training, i));
        out.layers.push_back({static_cast<int>(out.types.size()) - 1, "layers." + std::to_string(i)});
    }
    out.samples = training.microBatch;
    out.inputBytes = training.microBatch * (4 * spec.widths.front() + 8);
    return out;
}

}  // namespace ringside
