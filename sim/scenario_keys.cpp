#include "sim/scenario_keys.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/base/check.h"
#include "model/cost/collective_kinds.h"
#include "model/training/parallel_knobs.h"
#include "model/training/training_config.h"

namespace ringside {
namespace {

constexpr double kMaxDevices = 1 << 20, kMaxBatch = 1 << 20, kMaxSeqLen = 1 << 24;

ValueSpec flag() { return {ValueKind::Flag}; }
ValueSpec whole(double min, double max, std::string unit = {}) { return {ValueKind::Whole, min, max, {}, std::move(unit)}; }
ValueSpec number(double min, double max, std::string unit = {}) { return {ValueKind::Number, min, max, {}, std::move(unit)}; }
ValueSpec word(std::vector<std::string> choices) { return {ValueKind::Word, 0, 0, std::move(choices)}; }
ValueSpec name() { return {ValueKind::Name}; }
ValueSpec list() { return {ValueKind::List}; }

std::vector<ScenarioKey> table() {
    const std::string asItIs = "1";
    return {
        {"model", name(), "", "model of the catalogue, or path to a Hugging Face config.json"},
        {"device", name(), "", "device of the catalogue"},
        {"devices", whole(1, kMaxDevices, "devices"), "1", "devices in all"},
        {"devices_per_node", whole(1, 1024, "devices"), "the node kind's", "devices in each node"},
        {"node", name(), "the device's usual one", "node kind of the catalogue"},
        {"network", name(), "the node kind's usual one", "network of the catalogue"},
        {"cluster", name(), "", "cluster of the catalogue, or path to a cluster file; instead of --device … --node"},
        {"strategy.name", name(), "ddp, or single on one device", "how training is spread"},
        {"profile", name(), "the datasheet's", "profile of the catalogue, or path to a profile file"},
        {"step", word({"steady", "first"}), "steady", "a step after warm-up, or step 1"},

        {"training.seq_len", whole(1, kMaxSeqLen, "tokens"), "the model's own", "tokens per sample"},
        {"training.micro_batch", whole(1, kMaxBatch, "samples"), "1", "samples per rank and micro-step"},
        {"training.grad_accum", whole(1, 4096, "micro-steps"), "1", "micro-steps per optimizer step"},
        {"training.global_batch", whole(1, 1099511627776.0, "samples"), "", "samples per step over all ranks; settles the one of the two above not given"},
        {"training.precision", word(precisionNames()), "bf16-autocast, or fp16-autocast where there is no bf16", "what is stored, computed and kept in which type"},
        {"training.optimizer", word(optimizerNames()), "adamw", "sgd, momentum, adam, adamw, adafactor, adam-8bit; -fused, -foreach or -for-loop may follow"},
        {"training.recompute", word(recomputeNames()), "none", "what is computed again in backward instead of kept: selective is single modules, selective-op a block but for attention and every second product, full every block"},
        {"training.recompute_modules", list(), "[\"core_attn\"]", "what selective recompute runs again: core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts (all but the first: megatron)"},
        {"training.recompute_early_stop", flag(), "false", "full recompute ends with the last tensor that backward needs: PyTorch's checkpoints without re-entry since 2.1"},
        {"training.attention", word(attentionKernelNames()), "flash", "kernels of attention"},
        {"training.framework", word(frameworkNames()), "pytorch", "whose Python issues the kernels, which sets what a launch costs the host"},
        {"training.loss", word(lossKernelNames()), "eager", "how the loss over a vocabulary is computed"},
        {"training.loss_metrics", whole(0, 100, "metrics"), "0", "metrics of the training loop that take the cross-entropy of the logits once more in every micro-step"},
        {"training.gated_activation", word(gatedKernelNames()), "eager", "how act(gate)·up is computed, and what of it is kept"},
        {"training.memory_format", word(memoryFormatNames()), "contiguous", "how images lie in memory"},
        {"training.dropout", flag(), "false", "apply the model's dropout layers, whose masks are kept"},
        {"training.rms_norm", word(normKernelNames()), "fused", "RMS norms in one kernel, or written in Python, which keeps more"},
        {"training.compile", flag(), "false", "torch.compile of transformers: loss and gated activation are one kernel each, and so are residual adds, norms and sums of gradients beside each other"},
        {"training.fp8_dot_product_attention", flag(), "false", "with precision fp8: fused attention multiplies in eight bits too"},
        {"training.repeat_kv", flag(), "false", "key and value heads are copied for their query heads before attention"},
        {"training.zero_grad_set_to_none", flag(), "true", "gradients are freed between steps; false: kept and zeroed, as in PyTorch 1.x"},
        {"training.optimizer_in_backward", flag(), "false", "each parameter steps as soon as its gradient is there, which is then freed (single)"},
        {"training.offload_activations", flag(), "false", "what full recompute keeps goes to host memory and back"},
        {"training.gradient_clipping", flag(), "false", "clip by global norm before the optimizer step"},
        {"training.read_loss_each_step", flag(), "true", "the training loop waits for the loss at the end of every step"},
        {"training.rank_batches", list(), "", "unequal shards: the micro-batch of each data-parallel rank"},
        {"training.batch_split", word({"equal", "balanced"}), "equal", "balanced: batches in proportion to the peak rate of each rank's device"},
        {"training.input_ms_per_sample", number(0, 1e6, "ms"), "0", "time of one loader process for a sample; 0: the input is always there"},
        {"training.input_workers", whole(1, 4096, "processes"), "4", "loader processes per rank"},

        {"collectives.backend", word({"nccl", "gloo"}), "nccl, or gloo on CPU ranks", "the library that communicates"},
        {"collectives.nccl_version", word({"2.27", "2.30"}), "2.30", "whose choice of algorithm and protocol is followed"},
        {"collectives.algorithm", word(collectiveAlgorithmNames()), "the library's choice", "one algorithm for every collective"},
        {"collectives.protocol", word(collectiveProtocolNames()), "the library's choice", "one protocol for every collective"},
        {"collectives.level", word({"closed", "message"}), "closed", "message: play every message over shared links"},
        {"collectives.network_reduces", flag(), "false", "switches reduce, as SHARP does"},
        {"memory.expandable_segments", flag(), "false", "the allocator grows its segments instead of taking new ones"},

        {"perturbation.jitter", number(0, 1), "0", "standard deviation of a kernel's time, relative to it"},
        {"perturbation.pause_probability", number(0, 1), "0", "that a rank pauses once in a step"},
        {"perturbation.pause_ms", number(1e-3, 1e6, "ms"), "10", "the shortest pause"},
        {"perturbation.pause_tail", number(0.5, 100), "1.5", "Pareto exponent of a pause's length"},
        {"perturbation.seed", whole(0, 9007199254740992.0), "1", "of everything that is drawn"},
        {"perturbation.samples", whole(1, 100'000, "steps"), "10 where something is random", "steps to draw"},
        {"perturbation.stragglers", list(), "", "ranks whose device or link is slow: [{\"rank\": 3, \"compute\": 1.2, \"link\": 1}]"},

        {"what_if.compute", number(0.01, 1000, "×"), asItIs, "speed of arithmetic, times what the profile says"},
        {"what_if.memory_bandwidth", number(0.01, 1000, "×"), asItIs, "speed of device memory, likewise"},
        {"what_if.network", number(0.01, 1000, "×"), asItIs, "bandwidth of collectives and of messages to servers, likewise"},
        {"what_if.host", number(0.01, 1000, "×"), asItIs, "speed of the host: launches, the training loop, its memory"},
        {"what_if.latency_us", number(0, 1e6, "µs"), "0", "added to every collective and to every message to or from a server"},
    };
}

}  // namespace

const std::vector<ScenarioKey>& scenarioKeys() {
    static const std::vector<ScenarioKey> keys = table();
    return keys;
}

const ScenarioKey& scenarioKey(std::string_view path) {
    const auto& keys = scenarioKeys();
    const auto found = std::find_if(keys.begin(), keys.end(), [&](const ScenarioKey& key) { return key.path == path; });
    CHECK(found != keys.end());
    return *found;
}

std::vector<std::string> keysOfSection(std::string_view section) {
    std::vector<std::string> names;
    if (section.empty()) names = {"format", "version", "comment"};
    for (const ScenarioKey& key : scenarioKeys()) {
        const std::size_t dot = key.path.find('.');
        const std::string head = key.path.substr(0, dot);
        if (section.empty()) {
            if (std::find(names.begin(), names.end(), head) == names.end()) names.push_back(head);
        } else if (head == section && dot != std::string::npos) {
            names.push_back(key.path.substr(dot + 1));
        }
    }
    if (section == "strategy")
        for (std::string& knob : parallelKnobKeys()) names.push_back(std::move(knob));
    return names;
}

std::string helpOf(const ScenarioKey& key) {
    std::string text = key.help;
    if (key.spec.kind == ValueKind::Word && key.spec.choices.size() <= 8) text = fmt::format("{}: {}", fmt::join(key.spec.choices, ", "), text);
    return key.defaultValue.empty() ? text : fmt::format("{} (default: {})", text, key.defaultValue);
}

}  // namespace ringside
