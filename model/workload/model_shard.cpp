#include "model/workload/model_shard.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/workload/model_spec.h"

namespace ringside {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

Result<void> divides(const std::string& name, const char* flag, std::int64_t ranks, std::int64_t figure, const char* what) {
    if (figure % ranks == 0) return {};
    return badInput(name, fmt::format("{} {} do not divide by {} {}; use a --{} that divides {}", figure, what, flag, ranks, flag, figure));
}

// Key/value heads are split, or each is held by several ranks.
Result<void> sharesKeyValueHeads(const std::string& name, const char* flag, std::int64_t ranks, std::int64_t kvHeads) {
    if (kvHeads % ranks == 0 || ranks % kvHeads == 0) return {};
    return badInput(name, fmt::format("{} key/value heads can neither be split over {} {} nor held by equally many ranks each; use a --{} that "
                                      "divides {} or is a multiple of it", kvHeads, flag, ranks, flag, kvHeads));
}

Result<void> noExperts(const ModelShard& shard, const std::string& name) {
    return badInput({}, shard.ep > 1 ? fmt::format("{} has no experts to split over ep {}; use --ep 1", name, shard.ep)
                                     : fmt::format("{} has no experts; leave etp out", name));
}

Result<void> validateTensor(const ModelShard& shard, const TransformerSpec& spec, std::int64_t length, const std::string& name) {
    if (shard.tp == 1) return {};
    TRY_VOID(divides(name, "tp", shard.tp, spec.heads, "attention heads"));
    TRY_VOID(sharesKeyValueHeads(name, "tp", shard.tp, spec.kvHeads));
    if (spec.experts == 0 || !spec.denseLayers.empty()) TRY_VOID(divides(name, "tp", shard.tp, spec.ffn, "features of the feed-forward layer"));
    if (spec.experts > 0) TRY_VOID(divides(name, "tp", shard.expertTp(), spec.expertWidth(), "features of an expert"));
    if (spec.sharedExperts > 0) TRY_VOID(divides(name, "tp", shard.tp, spec.sharedExperts * spec.expertWidth(), "features of the shared experts"));
    if (shard.wholeExperts && spec.experts > 0 && !shard.splitsSequence())
        return badInput(name, fmt::format("experts that are not cut over tp {} need tokens that are: set sequence_parallel to true, or leave etp out", shard.tp));
    if (!shard.sequenceParallel) return {};
    if (shard.style == TensorStyle::Picotron)
        return badInput(name, "Picotron's tensor parallelism has no sequence-parallel form; use the Megatron style, or leave sequence parallelism off");
    if (spec.family == TransformerFamily::Vit)
        return badInput(name, fmt::format("an image of {} tokens has no sequence-parallel form; leave sequence parallelism off", length));
    if (length % shard.cp == 0 && (length / shard.cp) % shard.tp != 0)
        return badInput(name, fmt::format("{} tokens per rank do not divide by tp {}, as sequence parallelism needs; use a --seq-len that divides by {}",
                                          length / shard.cp, shard.tp, shard.tp * shard.cp));
    return {};
}

Result<void> validateContext(const ModelShard& shard, const TransformerSpec& spec, const TrainingConfig& training, std::int64_t length,
                             const std::string& name) {
    if (shard.cp == 1) return {};
    if (spec.family == TransformerFamily::Vit || spec.family == TransformerFamily::Bert)
        return badInput({}, fmt::format("{} has no context-parallel form, because its head reads the first token of the whole sequence; use --cp 1", name));
    if (shard.context == ContextKind::Ulysses) {
        if (length % shard.cp != 0)
            return badInput(name, fmt::format("a sequence of {} tokens does not divide by cp {}; use a --seq-len that divides by {}", length, shard.cp, shard.cp));
        if ((spec.heads / shard.tp) % shard.cp != 0)
            return badInput(name, fmt::format("Ulysses splits the {} attention heads of a rank ({} / tp {}) over cp {}, which does not divide them; use a "
                                              "--cp that divides {}, or ring attention",
                                              spec.heads / shard.tp, spec.heads, shard.tp, shard.cp, spec.heads / shard.tp));
        return sharesKeyValueHeads(name, "cp", shard.cp, keyValueHeadsPerRank(spec.kvHeads, shard.tp));
    }
    if (!isFlash(training.attention))
        return badInput(name, "ring attention is made of fused attention kernels; use --attention flash, or Ulysses");
    const bool zigZag = spec.causal && shard.balanced;
    const std::int64_t pieces = zigZag ? 2 * shard.cp : shard.cp;
    if (length % pieces != 0)
        return badInput(name, fmt::format("a sequence of {} tokens does not divide into {} pieces ({} for each of cp {}); use a --seq-len that divides by {}",
                                          length, pieces, pieces / shard.cp, shard.cp, pieces));
    return {};
}

}  // namespace

std::int64_t keyValueHeadsPerRank(std::int64_t kvHeads, std::int64_t ranks) { return std::max<std::int64_t>(1, kvHeads / ranks); }

Result<void> validate(const ModelShard& shard, const std::string& name) {
    struct Bound {
        const char* what;
        std::int64_t ranks;
    };
    for (const Bound& bound : std::array{Bound{"tp", shard.tp}, Bound{"cp", shard.cp}, Bound{"ep", shard.ep}})
        if (bound.ranks < 1 || bound.ranks > kMostRanks)
            return badInput(name, fmt::format("{} is {}; expected 1 to {}", bound.what, bound.ranks, kMostRanks));
    if (shard.cpRank < 0 || shard.cpRank >= shard.cp)
        return badInput(name, fmt::format("context rank {} of cp {}; expected 0 to {}", shard.cpRank, shard.cp, shard.cp - 1));
    return {};
}

Result<void> validate(const ModelShard& shard, const TransformerSpec& spec, const TrainingConfig& training, std::int64_t length,
                      const std::string& name) {
    TRY_VOID(validateTensor(shard, spec, length, name));
    TRY_VOID(validateContext(shard, spec, training, length, name));
    if (shard.spreadsExperts() && spec.experts == 0) return noExperts(shard, name);
    if (shard.ep > 1) TRY_VOID(divides(name, "ep", shard.ep, spec.experts, "experts"));
    return {};
}

Result<void> requireWhole(const ModelShard& shard, const std::string& name) {
    if (shard.tp > 1) return badInput({}, fmt::format("{} has no tensor-parallel form; use --tp 1", name));
    if (shard.cp > 1) return badInput({}, fmt::format("{} has no context-parallel form; use --cp 1", name));
    if (shard.ep > 1) return noExperts(shard, name);
    return {};
}

}  // namespace ringside
