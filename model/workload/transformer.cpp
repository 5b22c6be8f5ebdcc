#include "model/workload/transformer.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "model/workload/transformer_parts.h"

namespace ringside {

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

Workload buildTransformer(const TransformerSpec& spec, const TrainingConfig& training, std::int64_t length, const ModelShard& shard) {
    const TransformerContext in{spec, training, shard, namesOf(spec.family), training.microBatch, length};
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
    const std::int64_t perSample = image ? 4 * spec.channels * spec.imageSize * spec.imageSize + 8 : 16 * in.length();
    out.inputBytes = training.microBatch * perSample;
    return out;
}

}  // namespace ringside
