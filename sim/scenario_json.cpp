// A resolved scenario as the document that says all of it.
#include "sim/scenario.h"

#include "model/training/parallel_knobs.h"

namespace ringside {

Json toJson(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    const ParallelConfig& parallel = scenario.parallel;
    Json json;
    json["format"] = "ringside-scenario";
    json["version"] = 1;
    json["model"] = scenario.modelAsGiven;
    json["cluster"] = toJson(scenario.cluster);
    Json& t = json["training"];
    t["micro_batch"] = training.microBatch;
    t["grad_accum"] = training.gradAccum;
    t["global_batch"] = scenario.globalBatch();
    if (training.seqLen > 0) t["seq_len"] = training.seqLen;
    if (!parallel.paramDtype) t["precision"] = training.precision.name;
    t["optimizer"] = nameOf(training.optimizer);
    t["recompute"] = nameOf(training.recompute);
    if (training.recomputeModules != TrainingConfig{}.recomputeModules) {
        t["recompute_modules"] = Json::array();
        for (const RecomputeModule module : training.recomputeModules) t["recompute_modules"].push_back(nameOf(module));
    }
    if (training.recomputeEarlyStop) t["recompute_early_stop"] = true;
    t["attention"] = nameOf(training.attention);
    t["framework"] = nameOf(training.framework);
    if (training.compiled || training.loss != LossKernel::Eager) t["loss"] = nameOf(training.loss);
    if (training.lossMetrics > 0) t["loss_metrics"] = training.lossMetrics;
    if (training.compiled || training.gatedActivation != GatedKernel::Eager) t["gated_activation"] = nameOf(training.gatedActivation);
    if (training.rmsNorm != NormKernel::Fused) t["rms_norm"] = nameOf(training.rmsNorm);
    if (training.compiled) t["compile"] = true;
    if (training.fp8Attention) t["fp8_dot_product_attention"] = true;
    if (training.repeatKeysAndValues) t["repeat_kv"] = true;
    if (!training.zeroGradSetToNone) t["zero_grad_set_to_none"] = false;
    if (training.optimizerInBackward) t["optimizer_in_backward"] = true;
    if (training.offloadActivations) t["offload_activations"] = true;
    if (training.memoryFormat != MemoryFormat::Contiguous) t["memory_format"] = nameOf(training.memoryFormat);
    t["dropout"] = training.dropout;
    t["gradient_clipping"] = training.gradientClipping;
    t["read_loss_each_step"] = training.readLossEachStep;
    if (!training.rankBatches.empty()) t["rank_batches"] = training.rankBatches;
    if (training.inputMsPerSample > 0) {
        t["input_ms_per_sample"] = training.inputMsPerSample;
        t["input_workers"] = training.inputWorkers;
    }
    Json& s = json["strategy"];
    s["name"] = parallel.strategy;
    const auto strategy = strategyByName(parallel.strategy);
    if (strategy)
        for (const Knob& knob : (*strategy)->knobs()) s[knob.key] = parallelKnob(parallel, knob.key);
    if (!scenario.profileAsGiven.is_null()) json["profile"] = scenario.profileAsGiven;
    Json& c = json["collectives"];
    c["backend"] = nameOf(scenario.pricing.backend);
    const NcclOptions& nccl = scenario.pricing.collectives.nccl;
    c["nccl_version"] = nccl.version == NcclVersion::V2_27 ? "2.27" : "2.30";
    if (nccl.algorithm) c["algorithm"] = nameOf(*nccl.algorithm);
    if (nccl.protocol) c["protocol"] = nameOf(*nccl.protocol);
    c["level"] = scenario.pricing.level == CollectiveLevel::Message ? "message" : "closed";
    c["network_reduces"] = nccl.networkReduces;
    json["memory"]["expandable_segments"] = scenario.expandableSegments;
    const Perturbation& perturbation = scenario.perturbation;
    if (perturbation != Perturbation{}) {
        Json& p = json["perturbation"];
        p["jitter"] = perturbation.jitter;
        p["pause_probability"] = perturbation.pauseProbability;
        p["pause_ms"] = perturbation.pauseMs;
        p["pause_tail"] = perturbation.pauseTail;
        p["seed"] = perturbation.seed;
        p["samples"] = perturbation.samples;
        for (const Straggler& straggler : perturbation.stragglers)
            p["stragglers"].push_back({{"rank", straggler.rank}, {"compute", straggler.compute}, {"link", straggler.link}});
    }
    const PricingOptions& pricing = scenario.pricing;
    if (pricing.computeScale != 1 || pricing.memoryScale != 1 || pricing.networkScale != 1 || pricing.hostScale != 1 || pricing.extraLatencyUs != 0)
        json["what_if"] = {{"compute", pricing.computeScale}, {"memory_bandwidth", pricing.memoryScale}, {"network", pricing.networkScale},
                           {"host", pricing.hostScale}, {"latency_us", pricing.extraLatencyUs}};
    json["step"] = scenario.step == StepKind::First ? "first" : "steady";
    return json;
}

}  // namespace ringside
