// Random small configurations for the property tests: every strategy, knob, precision and kind of cluster, with models that
// take well under a millisecond to simulate.
#pragma once

#include <string>

#include <rapidcheck.h>

#include "tests/support/scenarios.h"

namespace ringside::testing {

inline rc::Gen<std::string> oneOf(std::vector<std::string> choices) { return rc::gen::elementOf(std::move(choices)); }

/// A tiny Hugging Face configuration: GPT-2 or Llama style.
inline Json randomModel() {
    const std::string kind = *oneOf({"mlp", "resnet-18", "gpt2", "bert-base", "tiny gpt2", "tiny llama", "tiny llama", "tiny gpt2"});
    if (kind.substr(0, 4) != "tiny") return kind;
    const int layers = *rc::gen::inRange(1, 4), heads = *rc::gen::element(1, 2, 4, 8), headSize = *rc::gen::element(16, 64);
    const int vocabulary = *rc::gen::element(100, 5000, 50257);
    if (kind == "tiny gpt2")
        return {{"model_type", "gpt2"}, {"n_layer", layers}, {"n_head", heads}, {"n_embd", heads * headSize}, {"vocab_size", vocabulary}, {"n_positions", 512}};
    return {{"model_type", "llama"}, {"num_hidden_layers", layers}, {"num_attention_heads", heads}, {"num_key_value_heads", *rc::gen::element(1, heads)},
            {"hidden_size", heads * headSize}, {"intermediate_size", 3 * heads * headSize}, {"vocab_size", vocabulary}, {"max_position_embeddings", 512},
            {"tie_word_embeddings", *rc::gen::arbitrary<bool>()}};
}

inline bool isFsdp(const std::string& strategy) { return strategy == "fsdp1" || strategy == "fsdp2" || strategy == "hsdp"; }

/// Knobs of FSDP1, FSDP2 and HSDP that go together.
inline void randomFsdpKnobs(Json& strategy, const Json& document) {
    const auto maybe = [] { return *rc::gen::arbitrary<bool>(); };
    const std::string name = strategy["name"];
    strategy["no_sync"] = maybe();
    strategy["wrap"] = *oneOf({"block", "block", "size", "none"});
    strategy["min_wrap_elements"] = *rc::gen::element(1e3, 1e5, 1e7);
    strategy["forward_prefetch"] = *rc::gen::element(0, 1, 2);
    if (maybe()) strategy["reduce_dtype"] = *oneOf({"fp32", "bf16", "fp16"});
    if (name == "fsdp1") {
        strategy["sharding_strategy"] = *oneOf({"full_shard", "full_shard", "shard_grad_op", "hybrid_shard", "hybrid_shard_zero2", "no_shard"});
        strategy["backward_prefetch"] = *oneOf({"pre", "post", "none"});
        for (const char* knob : {"limit_all_gathers", "use_orig_params", "keep_low_precision_grads"}) strategy[knob] = maybe();
        const bool canOffload = strategy["sharding_strategy"] != "no_shard" && (strategy["no_sync"] || document["training"]["grad_accum"] == 1);
        strategy["cpu_offload"] = canOffload && *rc::gen::inRange(0, 4) == 0;
        return;
    }
    strategy["cpu_offload"] = *rc::gen::inRange(0, 4) == 0;
    strategy["overlap_comm"] = *rc::gen::inRange(0, 4) != 0;
    // Groups and sub-groups of two or more, where the ranks divide.
    const std::int64_t devices = document.value("devices", std::int64_t{3});
    if (name == "hsdp" && devices % 4 == 0) strategy["shard_group"] = *rc::gen::element(2, 4);
    switch (*rc::gen::inRange(0, 4)) {
        case 0: strategy["reshard_after_forward"] = maybe(); break;
        case 1:
            if (devices % 2 == 0) strategy["reshard_after_forward"] = 2;
            break;
        default: break;
    }
}

inline void flip(Json& strategy, std::initializer_list<const char*> knobs) {
    for (const char* knob : knobs) strategy[knob] = *rc::gen::arbitrary<bool>();
}

/// The knobs of DeepSpeed's stages. `devices`: data-parallel ranks.
inline void randomZero(Json& strategy, int stage, int devices) {
    flip(strategy, {"overlap_comm", "reduce_scatter", "contiguous_gradients"});
    if (*rc::gen::arbitrary<bool>()) strategy["reduce_bucket_size"] = *rc::gen::element(1e4, 1e6, 2e7);
    if (stage < 3) {
        flip(strategy, {"use_multi_rank_bucket_allreduce"});
        strategy["offload_optimizer"] = *oneOf({"none", "none", "cpu"});
        return;
    }
    flip(strategy, {"zero_quantized_weights", "zero_quantized_gradients"});
    strategy["prefetch_bucket_size"] = *rc::gen::element(0.0, 1e5, 5e7);
    strategy["max_live_parameters"] = *rc::gen::element(0.0, 1e6, 1e9);
    strategy["max_reuse_distance"] = *rc::gen::element(0.0, 1e6, 1e9);
    strategy["param_persistence_threshold"] = *rc::gen::element(0.0, 1e3, 1e5);
    strategy["offload_optimizer"] = *oneOf({"none", "none", "cpu", "nvme"});
    strategy["offload_param"] = *oneOf({"none", "none", "cpu", "nvme"});
    strategy["zero_hpz_partition_size"] = *rc::gen::element(1, devices, devices % 2 == 0 ? 2 : 1);
}

inline void randomMegatron(Json& strategy, int devices) {
    flip(strategy, {"use_distributed_optimizer", "overlap_grad_reduce", "grad_reduce_in_fp32", "pad_buckets_for_high_nccl_busbw"});
    if (*rc::gen::arbitrary<bool>()) strategy["bucket_elements"] = *rc::gen::element(1e4, 1e6, 1e8);
    if (!strategy["use_distributed_optimizer"].get<bool>()) return;
    if (strategy["overlap_grad_reduce"].get<bool>()) flip(strategy, {"overlap_param_gather"});
    strategy["num_distributed_optimizer_instances"] = *rc::gen::element(1, 1, devices % 2 == 0 ? 2 : 1, devices);
}

/// A scenario document that always resolves. `recompute` and the like are left to chance.
inline Json randomDocument() {
    Json document;
    document["model"] = randomModel();
    const bool mixed = *rc::gen::inRange(0, 5) == 0;
    bool several = true;
    int ranks = 0;
    if (mixed) {
        ranks = 32;
        document["cluster"] = "mixed-a100-h100";
    } else {
        document["device"] = *oneOf({"a100-80gb-sxm", "a100-40gb-sxm", "h100-sxm", "b200", "v100-sxm", "l4", "rtx-4090"});
        const int devices = *rc::gen::element(1, 2, 3, 4, 8, 16);
        document["devices"] = devices;
        if (devices == 16) document["devices_per_node"] = 8;
        several = devices > 1;
        ranks = devices;
    }
    Json& training = document["training"];
    training["micro_batch"] = *rc::gen::element(1, 2, 5, 16);
    training["grad_accum"] = *rc::gen::element(1, 1, 2, 3);
    const bool readsText = document["model"] != "mlp" && document["model"] != "resnet-18";
    if (readsText) training["seq_len"] = *rc::gen::element(16, 128, 500);
    training["precision"] = *oneOf({"fp32", "fp16-autocast", "fp16-autocast", "bf16-autocast", "bf16", "bf16-master"});
    if (document.value("device", "") == "v100-sxm") training["precision"] = *oneOf({"fp32", "fp16-autocast"});
    training["optimizer"] = *oneOf({"sgd", "momentum", "adamw", "adamw-fused", "adam-for-loop", "adafactor", "adam-8bit"});
    training["recompute"] = *oneOf({"none", "selective", "full"});
    if (readsText) training["loss_metrics"] = *rc::gen::element(0, 0, 2);
    training["attention"] = *oneOf({"flash", "math"});
    training["dropout"] = *rc::gen::arbitrary<bool>();
    training["gradient_clipping"] = *rc::gen::arbitrary<bool>();
    training["read_loss_each_step"] = *rc::gen::arbitrary<bool>();
    if (several) {
        Json& strategy = document["strategy"];
        const bool oneNode = !mixed && document["devices"] <= 8;
        std::string name = *oneOf({"ddp", "ddp", "naive", "picotron", "zero1", "zero2", "zero3", "zero3", "zero-redundancy-optimizer", "megatron", "fsdp1", "fsdp1", "fsdp2", "fsdp2", "hsdp",
                                   "dp", "ps-device0", "ps-host", "ps-sharded", "ps-servers", "async-ps", "ssp", "local-sgd", "diloco", "easgd"});
        if (name == "dp" && !oneNode) name = "ddp";
        strategy["name"] = name;
        const bool reEnters = name == "zero1" || name == "zero2" || name == "zero3" || name == "megatron";
        if (!reEnters) document["training"]["recompute_early_stop"] = *rc::gen::arbitrary<bool>();
        if (isFsdp(name)) randomFsdpKnobs(strategy, document);
        const bool server = name.substr(0, 3) == "ps-" || name == "async-ps" || name == "ssp";
        if (server) flip(strategy, {"push_pull_overlap"});
        if ((name == "ps-servers" || name == "async-ps" || name == "ssp") && *rc::gen::arbitrary<bool>()) strategy["servers"] = *rc::gen::element(1, 2, 7);
        if (name == "ssp") strategy["staleness"] = *rc::gen::element(0, 1, 5);
        if (name == "local-sgd" || name == "diloco" || name == "easgd") strategy["period"] = *rc::gen::element(1, 2, 10);
        if (name == "easgd") flip(strategy, {"async_averaging"});
        const bool hasReducer = name == "ddp" || name == "zero-redundancy-optimizer";
        if ((hasReducer || name == "picotron") && *rc::gen::arbitrary<bool>()) strategy["bucket_mb"] = *rc::gen::element(0.1, 1.0, 25.0);
        if (hasReducer || name == "naive") flip(strategy, {"no_sync"});
        if (hasReducer) {
            flip(strategy, {"gradient_as_bucket_view", "find_unused_parameters", "static_graph", "broadcast_buffers"});
            strategy["comm_hook"] = *oneOf({"none", "none", "fp16", "bf16", "powersgd"});
        }
        if (name == "ddp") {
            flip(strategy, {"join"});
            if (strategy["join"]) strategy["exhausted_ranks"] = *rc::gen::element(0, 1);
            else strategy["async_gradients"] = *rc::gen::inRange(0, 4) == 0;
        }
        if (name == "zero-redundancy-optimizer") flip(strategy, {"parameters_as_bucket_view"});
        if (name == "zero1" || name == "zero2" || name == "zero3") randomZero(strategy, name.back() - '0', ranks);
        if (name == "megatron") randomMegatron(strategy, ranks);
    }
    document["step"] = *oneOf({"steady", "steady", "first"});
    return document;
}

/// Resolves and logs it, so that a failure shows the scenario as a document that can be run.
inline Scenario randomScenario() {
    const Json document = randomDocument();
    RC_LOG() << document.dump() << std::endl;
    return scenarioOfJson(document);
}

}  // namespace ringside::testing
