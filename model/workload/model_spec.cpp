#include "model/workload/model_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/workload/convnet.h"
#include "model/workload/mlp.h"
#include "model/workload/transformer.h"

namespace ringside {
namespace {

constexpr std::int64_t kMaxMicroBatch = 1 << 20;
constexpr std::int64_t kMaxSeqLen = 1 << 28;
// The largest tensor, in elements, that is still counted: 2⁵⁶ leaves room for element sizes and sums in 63 bits.
constexpr double kMaxElements = 72057594037927936.0;

const TransformerSpec* transformerOf(const ModelSpec& model) { return std::get_if<TransformerSpec>(&model.architecture); }

bool isImageTransformer(const TransformerSpec& spec) { return spec.family == TransformerFamily::Vit; }

Result<Workload> buildChecked(const ModelSpec& model, const TransformerSpec& spec, const TrainingConfig& training, const ModelShard& shard) {
    TRY_VOID(validate(spec, model.name));
    const std::int64_t length = isImageTransformer(spec) ? imageTokens(spec) : effectiveSeqLen(model, training);
    if (length < 1 || length > kMaxSeqLen)
        return badInput(model.name, fmt::format("a sequence of {} tokens; expected 1 to {}", length, kMaxSeqLen));
    if (spec.positions == Positions::Learned && !spec.positionsGrow && !isImageTransformer(spec) && length > spec.contextLength)
        return badInput(model.name,
                        fmt::format("a sequence of {} tokens does not fit the position table of {} rows; use --seq-len {} or shorter", length,
                                    spec.contextLength, spec.contextLength));
    const double tokens = static_cast<double>(training.microBatch) * static_cast<double>(length);
    const double perToken =
        std::max({static_cast<double>(spec.vocab),
                  static_cast<double>(std::max<std::int64_t>(1, spec.expertsPerToken)) * 2.0 * static_cast<double>(std::max(spec.ffn, spec.expertWidth())),
                  static_cast<double>((spec.heads + 2 * spec.kvHeads) * spec.headDim),
                  !isFlash(training.attention) ? static_cast<double>(spec.heads) * static_cast<double>(length) : 0.0});
    // (Of every block as if it had experts: this guards sums, it counts nothing.)
    const double perBlock = static_cast<double>(spec.hidden) *
                            (4.0 * static_cast<double>(spec.heads * spec.headDim) +
                             3.0 * static_cast<double>(std::max(spec.ffn, spec.expertWidth())) * static_cast<double>(std::max<std::int64_t>(1, spec.experts + spec.sharedExperts)));
    if (tokens * perToken > kMaxElements || perBlock * static_cast<double>(spec.layers) > kMaxElements)
        return badInput(model.name, fmt::format("absurd size: {:.3g} tokens of up to {:.3g} elements, {:.3g} parameters in the blocks",
                                                tokens, perToken, perBlock * static_cast<double>(spec.layers)));
    TRY_VOID(validate(shard, spec, training, length, model.name));
    return buildTransformer(spec, training, length, shard);
}

Result<Workload> buildChecked(const ModelSpec& model, const ConvNetSpec& spec, const TrainingConfig& training, const ModelShard& shard) {
    TRY_VOID(requireWhole(shard, model.name));
    TRY_VOID(validate(spec, model.name));
    const double pixels =
        static_cast<double>(training.microBatch) * static_cast<double>(spec.imageSize) * static_cast<double>(spec.imageSize);
    if (pixels * static_cast<double>(std::max<std::int64_t>(64, spec.channels)) > kMaxElements ||
        static_cast<double>(training.microBatch) * static_cast<double>(spec.classes) > kMaxElements)
        return badInput(model.name,
                        fmt::format("absurd size: {} images of {} × {} pixels", training.microBatch, spec.imageSize, spec.imageSize));
    return buildConvNet(spec, training);
}

Result<Workload> buildChecked(const ModelSpec& model, const MlpSpec& spec, const TrainingConfig& training, const ModelShard& shard) {
    TRY_VOID(requireWhole(shard, model.name));
    TRY_VOID(validate(spec, model.name));
    return buildMlp(spec, training);
}

}  // namespace

double activeParameters(const TransformerSpec& spec, const Workload& workload) {
    const double all = static_cast<double>(parameterCount(workload));
    if (spec.experts == 0) return all;
    const double perExpert = 3.0 * static_cast<double>(spec.hidden) * static_cast<double>(spec.expertWidth());
    const std::int64_t sparse = spec.layers - static_cast<std::int64_t>(spec.denseLayers.size()) + spec.predictionModules;
    return all - static_cast<double>(sparse) * static_cast<double>(spec.experts - spec.expertsPerToken) * perExpert;
}

std::int64_t effectiveSeqLen(const ModelSpec& model, const TrainingConfig& training) {
    const TransformerSpec* spec = transformerOf(model);
    if (spec == nullptr || isImageTransformer(*spec)) return 0;
    return training.seqLen > 0 ? training.seqLen : spec->contextLength;
}

Result<Workload> buildWorkload(const ModelSpec& model, const TrainingConfig& training) { return buildWorkload(model, training, ModelShard{}); }

Result<Workload> buildWorkload(const ModelSpec& model, const TrainingConfig& training, const ModelShard& shard) {
    if (training.microBatch < 1 || training.microBatch > kMaxMicroBatch)
        return badInput(model.name, fmt::format("a micro-batch of {}; expected 1 to {}", training.microBatch, kMaxMicroBatch));
    if (training.seqLen < 0)
        return badInput(model.name,
                        fmt::format("a sequence of {} tokens; expected a positive number, or 0 for the model's own", training.seqLen));
    TRY_VOID(validate(shard, model.name));
    TRY(Workload out, std::visit([&](const auto& spec) { return buildChecked(model, spec, training, shard); }, model.architecture));
    out.name = model.name;
    return out;
}

double modelFlopsPerSample(const ModelSpec& model, const Workload& workload) {
    const TransformerSpec* spec = transformerOf(model);
    if (spec == nullptr || isImageTransformer(*spec)) return 3.0 * forwardFlops(workload) / static_cast<double>(workload.samples);
    const double length = static_cast<double>(workload.tokensPerSample);
    const double width = static_cast<double>(spec->heads * (spec->headDim + spec->valueDim())) / 2;
    const double attention = 12.0 * static_cast<double>(spec->layers + spec->predictionModules) * width * length;
    // Each module of multi-token prediction goes through the head once more.
    const double heads = static_cast<double>(spec->predictionModules) * static_cast<double>(spec->vocab) * static_cast<double>(spec->hidden);
    return length * (6.0 * (activeParameters(*spec, workload) + heads) + attention);
}

}  // namespace ringside
