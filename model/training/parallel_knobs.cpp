#include "model/training/parallel_knobs.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/base/check.h"
#include "model/base/names.h"

namespace ringside {
namespace {

using Config = ParallelConfig;
using Member = std::variant<bool Config::*, std::optional<bool> Config::*, std::int64_t Config::*, std::optional<std::int64_t> Config::*, double Config::*,
                            std::optional<double> Config::*, std::string Config::*, std::optional<DType> Config::*, std::vector<std::string> Config::*, std::vector<std::int64_t> Config::*>;

struct KnobField {
    std::string key;
    Member member;
    double min = 0, max = 0;                 // of numbers
    std::vector<std::string> choices = {};   // of words
    std::string unit = {};
};

constexpr double kManyRanks = 1 << 20, kManyElements = 1e15;

const std::vector<KnobField>& fields() {
    static const std::vector<KnobField> table = {
        {"tp", &Config::tp, 1, 1024, {}, "ranks"},
        {"pp", &Config::pp, 1, 1024, {}, "stages"},
        {"cp", &Config::cp, 1, 1024, {}, "ranks"},
        {"ep", &Config::ep, 1, 1024, {}, "ranks"},
        {"etp", &Config::etp, 1, 1024, {}, "ranks"},
        {"moe_token_dispatcher", &Config::tokenDispatcher, 0, 0, {"alltoall", "flex"}},
        {"sequence_parallel", &Config::sequenceParallel},
        {"tensor_style", &Config::tensorStyle, 0, 0, {"megatron", "picotron"}},
        {"pipeline_schedule", &Config::pipelineSchedule, 0, 0, {"gpipe", "1f1b", "interleaved"}},
        {"virtual_stages", &Config::virtualStages, 1, 64, {}, "chunks"},
        {"pipeline_layout", &Config::pipelineLayout, 1, 1e4, {}, "blocks"},
        {"context_kind", &Config::contextKind, 0, 0, {"ring", "ulysses"}},
        {"context_balanced", &Config::contextBalanced},
        {"bucket_mb", &Config::bucketMb, 1e-3, 1e6, {}, "MiB"},
        {"gradient_as_bucket_view", &Config::gradientAsBucketView},
        {"find_unused_parameters", &Config::findUnusedParameters},
        {"static_graph", &Config::staticGraph},
        {"comm_hook", &Config::commHook, 0, 0, {"none", "fp16", "bf16", "powersgd"}},
        {"powersgd_rank", &Config::powerSgdRank, 1, 4096},
        {"no_sync", &Config::noSync},
        {"broadcast_buffers", &Config::broadcastBuffers},
        {"join", &Config::join},
        {"exhausted_ranks", &Config::exhaustedRanks, 0, kManyRanks, {}, "ranks"},
        {"async_gradients", &Config::asyncGradients},
        {"period", &Config::period, 1, 1e6, {}, "steps"},
        {"local_group", &Config::localGroup, 0, kManyRanks, {}, "ranks"},
        {"async_averaging", &Config::asyncAveraging},
        {"servers", &Config::servers, 1, kManyRanks, {}, "nodes"},
        {"staleness", &Config::staleness, 0, 1e6, {}, "clocks"},
        {"push_pull_overlap", &Config::pushPullOverlap},
        {"reduce_bucket_size", &Config::reduceBucketElements, 1, kManyElements, {}, "elements"},
        {"overlap_comm", &Config::overlapComm},
        {"reduce_scatter", &Config::reduceScatter},
        {"use_multi_rank_bucket_allreduce", &Config::multiRankBucketAllReduce},
        {"contiguous_gradients", &Config::contiguousGradients},
        {"prefetch_bucket_size", &Config::prefetchBucketElements, 0, kManyElements, {}, "elements"},
        {"max_live_parameters", &Config::maxLiveParameters, 0, kManyElements, {}, "elements"},
        {"max_reuse_distance", &Config::maxReuseDistance, 0, kManyElements, {}, "elements"},
        {"param_persistence_threshold", &Config::paramPersistenceThreshold, 0, kManyElements, {}, "elements"},
        {"sub_group_size", &Config::subGroupElements, 1, kManyElements, {}, "elements"},
        {"zero_init", &Config::zeroInit},
        {"offload_optimizer", &Config::offloadOptimizer, 0, 0, {"none", "cpu", "nvme"}},
        {"offload_param", &Config::offloadParam, 0, 0, {"none", "cpu", "nvme"}},
        {"zero_quantized_weights", &Config::quantizedWeights},
        {"zero_hpz_partition_size", &Config::hpzPartitionSize, 1, kManyRanks, {}, "ranks"},
        {"zero_quantized_gradients", &Config::quantizedGradients},
        {"parameters_as_bucket_view", &Config::parametersAsBucketView},
        {"bucket_elements", &Config::bucketElements, 1, kManyElements, {}, "elements"},
        {"use_distributed_optimizer", &Config::distributedOptimizer},
        {"overlap_grad_reduce", &Config::overlapGradReduce},
        {"overlap_param_gather", &Config::overlapParamGather},
        {"grad_reduce_in_fp32", &Config::gradReduceInFp32},
        {"tp_comm_overlap", &Config::tpCommOverlap},
        {"transformer_impl", &Config::transformerImpl, 0, 0, {"local", "transformer_engine"}},
        {"num_distributed_optimizer_instances", &Config::optimizerInstances, 1, kManyRanks},
        {"pad_buckets_for_high_nccl_busbw", &Config::padBuckets},
        {"overlap_moe_expert_parallel_comm", &Config::overlapExpertExchange},
        {"use_transformer_engine_op_fuser", &Config::fusesExpertMlp},
        {"moe_pad_expert_input_to_capacity", &Config::padExpertInputToCapacity},
        {"cuda_graph_scope", &Config::cudaGraphScope, 0, 0, {"attn", "mlp", "moe", "moe_router", "moe_preprocess", "full_iteration"}},
        {"sharding_strategy", &Config::shardingStrategy, 0, 0, {"full_shard", "shard_grad_op", "hybrid_shard", "hybrid_shard_zero2", "no_shard"}},
        {"shard_group", &Config::shardGroup, 0, kManyRanks, {}, "ranks"},
        {"wrap", &Config::wrap, 0, 0, {"block", "size", "none", "layers"}},
        {"wrap_layers", &Config::wrapLayers},
        {"min_wrap_elements", &Config::minWrapElements, 1, kManyElements, {}, "elements"},
        {"backward_prefetch", &Config::backwardPrefetch, 0, 0, {"pre", "post", "none"}},
        {"forward_prefetch", &Config::forwardPrefetch, 0, 1024, {}, "units"},
        {"limit_all_gathers", &Config::limitAllGathers},
        {"use_orig_params", &Config::useOrigParams},
        {"reshard_after_forward", &Config::reshardAfterForward, 0, kManyRanks},
        {"param_dtype", &Config::paramDtype},
        {"reduce_dtype", &Config::reduceDtype},
        {"buffer_dtype", &Config::bufferDtype},
        {"keep_low_precision_grads", &Config::keepLowPrecisionGrads},
        {"cpu_offload", &Config::cpuOffload},
    };
    return table;
}

const KnobField& fieldOf(const std::string& key) {
    for (const KnobField& field : fields())
        if (field.key == key) return field;
    CHECK(false);
}

const std::vector<std::string>& dtypeNames() {
    static const std::vector<std::string> names = {"fp32", "fp16", "bf16"};
    return names;
}

Result<DType> dtypeOf(const JsonCursor& value) {
    TRY(const std::string name, value.asString());
    for (const DType dtype : {DType::Fp32, DType::Fp16, DType::Bf16})
        if (nameOf(dtype) == name) return dtype;
    return value.error(unknownName("type", name, dtypeNames()));
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
Result<T> readAs(const KnobField& field, const JsonCursor& value) {
    if constexpr (std::is_same_v<T, bool>) {
        return value.asBool();
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
        if (value.value().is_boolean() && field.min <= 0) return static_cast<std::int64_t>(value.value().get<bool>());  // reshard_after_forward: true
        return value.asInt(static_cast<std::int64_t>(field.min), static_cast<std::int64_t>(field.max));
    } else if constexpr (std::is_same_v<T, double>) {
        return value.asNumber(field.min, field.max);
    } else if constexpr (std::is_same_v<T, DType>) {
        return dtypeOf(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        TRY(const std::string word, value.asString());
        for (const std::string& choice : field.choices)
            if (choice == word) return word;
        return value.error(unknownName(field.key, word, field.choices));
    } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
        std::vector<std::int64_t> numbers;
        if (!value.value().is_array()) return value.error("expected a list of numbers, for example [4, 4, 3]");
        TRY(const std::vector<JsonCursor> items, value.items());
        for (const JsonCursor& item : items) {
            TRY(const std::int64_t number, item.asInt(static_cast<std::int64_t>(field.min), static_cast<std::int64_t>(field.max)));
            numbers.push_back(number);
        }
        return numbers;
    } else {
        const std::string expected = field.choices.empty() ? "expected a list of layer names, for example [\"model.layers.0\"]" : fmt::format("expected a list, for example [\"{}\"]", field.choices.front());
        std::vector<std::string> words;
        if (value.value().is_string()) words.push_back(value.value().get<std::string>());
        else if (!value.value().is_array()) return value.error(expected);
        else
            for (const Json& entry : value.value()) {
                if (!entry.is_string()) return value.error(expected);
                words.push_back(entry.get<std::string>());
            }
        for (const std::string& word : words)
            if (!field.choices.empty() && std::find(field.choices.begin(), field.choices.end(), word) == field.choices.end()) return value.error(unknownName(field.key, word, field.choices));
        return words;
    }
}

template <class T>
Json jsonOf(const T& value) {
    if constexpr (std::is_same_v<T, DType>) return std::string(nameOf(value));
    else return value;
}

}  // namespace

std::vector<std::string> parallelKnobKeys() {
    std::vector<std::string> keys;
    for (const KnobField& field : fields()) keys.push_back(field.key);
    return keys;
}

Result<void> readParallelKnob(ParallelConfig& config, const std::string& key, const JsonCursor& value) {
    const KnobField& field = fieldOf(key);
    return std::visit(
        [&](auto member) -> Result<void> {
            auto& target = config.*member;
            using T = std::remove_reference_t<decltype(target)>;
            if constexpr (IsOptional<T>::value) {
                if (value.value().is_null()) return {};  // the default, as a result document writes it
                TRY(target, readAs<typename T::value_type>(field, value));
            } else {
                TRY(target, readAs<T>(field, value));
            }
            return {};
        },
        field.member);
}

Json parallelKnob(const ParallelConfig& config, const std::string& key) {
    return std::visit(
        [&](auto member) -> Json {
            const auto& value = config.*member;
            using T = std::remove_cvref_t<decltype(value)>;
            if constexpr (IsOptional<T>::value) return value ? jsonOf(*value) : Json(nullptr);
            else return jsonOf(value);
        },
        fieldOf(key).member);
}

ValueSpec parallelKnobSpec(const std::string& key) {
    const KnobField& field = fieldOf(key);
    ValueSpec spec{ValueKind::List, field.min, field.max, field.choices, field.unit};
    std::visit(
        [&]<class T>(T Config::*) {
            if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>) spec.kind = ValueKind::Flag;
            else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::optional<std::int64_t>>) spec.kind = ValueKind::Whole;
            else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>) spec.kind = ValueKind::Number;
            else if constexpr (std::is_same_v<T, std::string>) spec.kind = ValueKind::Word;
            else if constexpr (std::is_same_v<T, std::optional<DType>>) {
                spec.kind = ValueKind::Word;
                spec.choices = dtypeNames();
            }
        },
        field.member);
    return spec;
}

std::string parallelKnobType(const std::string& key) {
    const ValueSpec spec = parallelKnobSpec(key);
    switch (spec.kind) {
        case ValueKind::Flag: return "true|false";
        case ValueKind::Word: return fmt::format("{}", fmt::join(spec.choices, "|"));
        case ValueKind::List: return spec.unit.empty() ? "NAMES" : "NUMBERS";
        default: return "N";
    }
}

}  // namespace ringside
