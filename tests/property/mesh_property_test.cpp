// Laws of every strategy that can be combined with tensor, pipeline, context and expert parallelism, on random meshes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;

std::vector<std::string> meshStrategies() {
    std::vector<std::string> names;
    for (const auto& strategy : strategies())
        for (const Knob& knob : strategy->knobs())
            if (knob.key == "tp") names.emplace_back(strategy->name());
    return names;
}

Json randomMeshDocument() {
    Json document;
    const int layers = *rc::gen::inRange(2, 7), heads = *rc::gen::element(4, 8), size = heads * 32;
    const bool experts = *rc::gen::inRange(0, 4) == 0;
    const std::string kind = experts ? *rc::gen::element(std::string("mixtral"), std::string("qwen3_moe"), std::string("deepseek_v3")) : std::string("llama");
    Json model = {{"model_type", kind}, {"num_hidden_layers", layers}, {"num_attention_heads", heads}, {"num_key_value_heads", *rc::gen::element(2, heads)},
                  {"hidden_size", size}, {"intermediate_size", 4 * size}, {"vocab_size", *rc::gen::element(1000, 32000)}, {"max_position_embeddings", 512}, {"tie_word_embeddings", false}};
    if (experts) {
        model[kind == "deepseek_v3" ? "n_routed_experts" : "num_local_experts"] = 8;
        model["num_experts_per_tok"] = 2;
        model["moe_intermediate_size"] = 64;
        model["decoder_sparse_step"] = *rc::gen::element(1, 2);
    } else {
        model["tie_word_embeddings"] = *rc::gen::arbitrary<bool>();
    }
    if (kind == "deepseek_v3") {
        model.update(Json{{"num_key_value_heads", heads}, {"first_k_dense_replace", *rc::gen::element(0, 1)}, {"q_lora_rank", *rc::gen::element(Json(nullptr), Json(96))}, {"kv_lora_rank", 64},
                          {"qk_nope_head_dim", 32}, {"qk_rope_head_dim", 16}, {"v_head_dim", 32}, {"n_group", 2}, {"mtp_num_layers", *rc::gen::element(0, 1, 2)}});
    }
    document["model"] = model;
    document["device"] = *rc::gen::element(std::string("h100-sxm"), std::string("a100-80gb-sxm"), std::string("l4"));
    document["devices"] = *rc::gen::element(4, 8, 16, 32);
    document["devices_per_node"] = *rc::gen::element(4, 8);
    if (document["devices"] == 4) document["devices_per_node"] = 4;
    document["training"] = {{"micro_batch", *rc::gen::element(1, 2)}, {"grad_accum", *rc::gen::element(1, 2, 4, 8)}, {"seq_len", 256},
                            {"precision", *rc::gen::element(std::string("bf16"), std::string("bf16-autocast"), std::string("bf16-master"), std::string("fp32"))},
                            {"recompute", *rc::gen::element(std::string("none"), std::string("selective"), std::string("full"))},
                            {"gradient_clipping", *rc::gen::arbitrary<bool>()}};
    Json strategy = {{"name", *rc::gen::elementOf(meshStrategies())}, {"tp", *rc::gen::element(1, 2, 4)}, {"pp", *rc::gen::element(1, 1, 2)}, {"cp", *rc::gen::element(1, 1, 2)}};
    strategy["sequence_parallel"] = *rc::gen::arbitrary<bool>();
    if (strategy["name"] == "megatron" && strategy["tp"] != 1 && strategy["sequence_parallel"] == true) strategy["tp_comm_overlap"] = *rc::gen::arbitrary<bool>();
    if (experts) {
        strategy["ep"] = *rc::gen::element(1, 2, 4);
        const bool megatron = strategy["name"] == "megatron";
        if (megatron && strategy["sequence_parallel"] == true) strategy["etp"] = *rc::gen::element(Json(nullptr), Json(1));
        if (megatron) strategy["moe_token_dispatcher"] = *rc::gen::element(std::string("alltoall"), std::string("flex"));
        if (megatron && strategy["ep"] != 1 && strategy["pp"] == 1) strategy["overlap_moe_expert_parallel_comm"] = *rc::gen::arbitrary<bool>();
    }
    document["training"]["gated_activation"] = *rc::gen::element(std::string("eager"), std::string("fused"), std::string("fused-in-place"));
    strategy["tensor_style"] = *rc::gen::element(std::string("megatron"), std::string("megatron"), std::string("picotron"));
    strategy["pipeline_schedule"] = *rc::gen::element(std::string("gpipe"), std::string("1f1b"), std::string("interleaved"));
    strategy["context_kind"] = *rc::gen::element(std::string("ring"), std::string("ulysses"));
    strategy["context_balanced"] = *rc::gen::arbitrary<bool>();
    document["strategy"] = strategy;
    if (kind == "deepseek_v3" && strategy["name"] == "megatron" && document["training"]["recompute"] == "selective")
        document["training"]["recompute_modules"] = *rc::gen::element(Json::array({"core_attn", "mla_up_proj"}), Json::array({"moe_act", "layernorm", "mlp"}), Json::array({"moe", "layernorm"}), Json::array());
    return document;
}

RC_GTEST_PROP(Mesh, EverySchedulePassesTheValidatorAndFoldsExactly, ()) {
    const Json document = randomMeshDocument();
    RC_LOG() << document.dump() << std::endl;
    const Result<Scenario> scenario = resolveScenario(document, "random.json", catalogs());
    if (!scenario) {  // a mesh that does not divide, a knob the strategy does not take: refused as the user's fault, with words
        RC_ASSERT(scenario.error().code == ErrorCode::BadInput);
        RC_DISCARD();
    }
    const Result<Schedule> schedule = writeSchedule(*scenario);
    if (!schedule) {
        RC_ASSERT(schedule.error().code == ErrorCode::BadInput);
        RC_DISCARD();
    }
    const Result<void> valid = validateSchedule(*schedule);
    if (!valid) RC_FAIL(valid.error().toString());
    const Result<Prices> prices = priceSchedule(*schedule, scenario->cluster, scenario->profiles, scenario->training.precision.math, scenario->pricing);
    RC_ASSERT(prices.has_value());
    const Result<Timeline> folded = play(*schedule, *prices), unfolded = play(unfoldRanks(*schedule), *prices);
    RC_ASSERT(folded.has_value());
    RC_ASSERT(unfolded.has_value());
    RC_ASSERT(folded->stepTime == unfolded->stepTime);
}

RC_GTEST_PROP(Mesh, CriticalPathAndBreakdownAddUpToTheStep, ()) {
    const Json document = randomMeshDocument();
    RC_LOG() << document.dump() << std::endl;
    const Result<Scenario> scenario = resolveScenario(document, "random.json", catalogs());
    if (!scenario) RC_DISCARD();
    const Result<Prediction> prediction = predict(*scenario, {false, false, false});
    if (!prediction) RC_DISCARD();
    double path = 0;
    for (const auto& [kind, seconds] : prediction->pathSeconds) path += seconds;
    RC_ASSERT(std::abs(path - prediction->stepSeconds) < 1e-6 * prediction->stepSeconds);
    const Breakdown& b = prediction->breakdown;
    RC_ASSERT(std::abs((b.compute + b.optimizer + b.communicationExposed + b.host + b.idle).seconds() - prediction->stepSeconds) < 1e-9);
}

}  // namespace
}  // namespace ringside
