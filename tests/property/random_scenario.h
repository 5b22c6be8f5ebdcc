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

/// A scenario document that always resolves. `recompute` and the like are left to chance.
inline Json randomDocument() {
    Json document;
    document["model"] = randomModel();
    const bool mixed = *rc::gen::inRange(0, 5) == 0;
    bool several = true;
    if (mixed) {
        document["cluster"] = "mixed-a100-h100";
    } else {
        document["device"] = *oneOf({"a100-80gb-sxm", "a100-40gb-sxm", "h100-sxm", "b200", "v100-sxm", "l4", "rtx-4090"});
        const int devices = *rc::gen::element(1, 2, 3, 4, 8, 16);
        document["devices"] = devices;
        if (devices == 16) document["devices_per_node"] = 8;
        several = devices > 1;
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
    training["attention"] = *oneOf({"flash", "math"});
    training["dropout"] = *rc::gen::arbitrary<bool>();
    training["gradient_clipping"] = *rc::gen::arbitrary<bool>();
    training["read_loss_each_step"] = *rc::gen::arbitrary<bool>();
    if (several) {
        Json& strategy = document["strategy"];
        const std::string name = *oneOf({"ddp", "ddp", "ddp", "naive", "picotron"});
        strategy["name"] = name;
        if (name != "naive" && *rc::gen::arbitrary<bool>()) strategy["bucket_mb"] = *rc::gen::element(0.1, 1.0, 25.0);
        if (name != "picotron") strategy["no_sync"] = *rc::gen::arbitrary<bool>();
        if (name == "ddp") {
            for (const char* knob : {"gradient_as_bucket_view", "find_unused_parameters", "static_graph", "broadcast_buffers"})
                strategy[knob] = *rc::gen::arbitrary<bool>();
            strategy["comm_hook"] = *oneOf({"none", "none", "fp16", "bf16"});
        }
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
