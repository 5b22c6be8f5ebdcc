#include "model/workload/transformer.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/workload/compiled.h"
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
                            Bound{"feed-forward size of an expert", spec.expertFfn, 0, 1 << 22},
                            Bound{"shared experts", spec.sharedExperts, 0, 4096},
                            Bound{"modules of multi-token prediction", spec.predictionModules, 0, 16},
                            Bound{"rank of the queries", spec.latent.queryRank, 0, 1 << 20},
                            Bound{"rank of keys and values", spec.latent.keyValueRank, 0, 1 << 20},
                            Bound{"rotary part of a head", spec.latent.ropeDim, spec.latent ? 1 : 0, spec.latent ? spec.headDim : 0},
                            Bound{"size of a value head", spec.latent.valueDim, spec.latent ? 1 : 0, 1 << 16},
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
    if (spec.latent && spec.kvHeads != spec.heads)
        return badInput(name, fmt::format("latent attention with {} key/value heads for {} attention heads is not supported; expected as many", spec.kvHeads, spec.heads));
    if (spec.predictionModules > 0 && spec.tiedHead)
        return badInput(name, "multi-token prediction with a tied head is not supported; set tie_word_embeddings to false, or mtp_num_layers to 0");
    for (std::size_t i = 0; i < spec.denseLayers.size(); ++i)
        if (spec.denseLayers[i] < 0 || spec.denseLayers[i] >= spec.layers || (i > 0 && spec.denseLayers[i] <= spec.denseLayers[i - 1]))
            return badInput(name, fmt::format("block {} among those with a dense MLP; expected each of 0 to {} at most once, ascending", spec.denseLayers[i], spec.layers - 1));
    if (image && spec.imageSize % spec.patchSize != 0)
        return badInput(name, fmt::format("patches of {} do not divide an image of {}", spec.patchSize, spec.imageSize));
    return {};
}

namespace {

/// A product that adds its weight's gradient to the main one reads and writes that, instead of writing a tensor of its own.
/// docs/models/compute.md.
void addToMainGradients(LayerType& layer, std::int64_t bytesEach) {
    for (Op& op : layer.ops) {
        if (op.kind != OpKind::Linear) continue;
        std::erase_if(op.backward, [](const KernelWork& kernel) { return kernel.name == "cast weight gradient"; });
        for (KernelWork& kernel : op.backward) {
            if (kernel.name != "linear weight gradient") continue;
            const auto type = layer.values[static_cast<std::size_t>(op.outputs.front())].dtype;
            kernel.accumulatedBytes = static_cast<double>(kernel.shape.batch * kernel.shape.m * kernel.shape.n * (2 * bytesEach - sizeOf(type)));
        }
    }
}

}  // namespace

Workload buildTransformer(const TransformerSpec& spec, const TrainingConfig& training, std::int64_t length, const ModelShard& shard) {
    const TransformerContext in{spec, training, shard, namesOf(spec.family), training.microBatch, length};
    const bool image = spec.family == TransformerFamily::Vit;
    int tied = -1;
    Workload out;
    const auto addType = [&](LayerType type) {
        if (training.compiled) fuseElementwise(type);
        if (shard.transformerEngine) addToMainGradients(type, shard.mainGradientsInFp32 ? 4 : sizeOf(training.precision.parameter));
        out.types.push_back(std::move(type));
        return static_cast<int>(out.types.size()) - 1;
    };
    out.types.reserve(5);
    out.layers.reserve(static_cast<std::size_t>(spec.layers + spec.predictionModules) + 2);
    out.layers.push_back({addType(image ? buildPatchEmbedding(in) : buildTokenEmbedding(in)), "embedding"});
    int kinds[2] = {-1, -1};  // of blocks without and with experts
    std::string name(in.names.block);
    name += '.';
    const std::size_t stem = name.size();
    for (std::int64_t i = 0; i < spec.layers; ++i) {
        name.resize(stem);
        name += std::to_string(i);
        int& kind = kinds[spec.hasExperts(i)];
        if (kind < 0) kind = addType(buildBlock(in, spec.hasExperts(i)));
        out.layers.push_back({kind, name});
    }
    for (std::int64_t i = 0; i < spec.predictionModules; ++i) {
        name.resize(stem);
        name += std::to_string(spec.layers + i);
        int table = -1;
        const int type = addType(buildPredictionModule(in, i, table));
        out.ties.push_back({static_cast<int>(out.layers.size()), table, 0, 0});
        out.layers.push_back({type, name});
    }
    const int head = addType(image                                       ? buildImageHead(in)
                             : spec.family == TransformerFamily::Bert ? buildBertHead(in, tied)
                                                                         : buildLanguageHead(in, tied));
    if (tied >= 0) out.ties.push_back({static_cast<int>(out.layers.size()), tied, 0, 0});
    out.layers.push_back({head, "head"});
    out.samples = training.microBatch;
    out.tokensPerSample = image ? 0 : length;
    // Tokens and labels as int64; an image as fp32, and one label.
    const std::int64_t perSample = image ? 4 * spec.channels * spec.imageSize * spec.imageSize + 8 : 16 * in.length();
    out.inputBytes = training.microBatch * perSample;
    return out;
}

}  // namespace ringside
