#include "cli/commands/scenario_flags.h"

namespace ringside {

void ScenarioFlags::add(CLI::App& command, const std::string& flag, const std::string& key, const std::string& help, const std::string& group) {
    flags_.push_back(std::make_unique<Flag>(Flag{key, {}}));
    command.add_option(flag, flags_.back()->value, help)->group(group);
}

void ScenarioFlags::addTo(CLI::App& command, bool withTraining) {
    command.add_option("scenario", file_, "scenario file (JSON; '-' reads standard input); flags go over it");
    if (withTraining) add(command, "--model", "model", "model of the catalogue, or path to a Hugging Face config.json", "Scenario");
    add(command, "--device", "device", "device of the catalogue", "Scenario");
    add(command, "--devices", "devices", "devices in all", "Scenario");
    add(command, "--devices-per-node", "devices_per_node", "devices in each node (default: the node kind's)", "Scenario");
    add(command, "--node", "node", "node kind of the catalogue (default: the device's usual one)", "Scenario");
    add(command, "--network", "network", "network of the catalogue (default: the node kind's usual one)", "Scenario");
    add(command, "--cluster", "cluster", "cluster of the catalogue, or path to a cluster file; instead of the five above", "Scenario");
    if (withTraining) {
        add(command, "--strategy", "strategy.name", "how training is spread (default: ddp, or single on one device)", "Scenario");
        add(command, "--seq-len", "training.seq_len", "tokens per sample (default: the model's own)", "Training");
        add(command, "--micro-batch", "training.micro_batch", "samples per rank and micro-step (default: 1)", "Training");
        add(command, "--grad-accum", "training.grad_accum", "micro-steps per optimizer step (default: 1)", "Training");
        add(command, "--global-batch", "training.global_batch", "samples per step over all ranks; settles the one of the two above that is not given", "Training");
        add(command, "--precision", "training.precision", "fp32, tf32, fp16-autocast, bf16-autocast, bf16, bf16-master", "Training");
        add(command, "--optimizer", "training.optimizer", "sgd, momentum, adam, adamw, adafactor, adam-8bit; -fused, -foreach or -for-loop may follow", "Training");
        add(command, "--recompute", "training.recompute", "none, selective or full", "Training");
        add(command, "--bucket-mb", "strategy.bucket_mb", "gradient bucket in MiB (default: 25, the first 1)", "Strategy");
        add(command, "--profile", "profile", "profile of the catalogue, or path to a profile file", "Scenario");
        command.add_flag("--first-step", firstStep_, "describe the first step instead of a steady one")->group("Strategy");
    }
    command.add_option("--set", assignments_, "any other key of the scenario: --set training.dropout=true (may be repeated)")
        ->expected(1)
        ->take_all()
        ->allow_extra_args(false)
        ->group("Scenario");
}

Result<Json> ScenarioFlags::document() const {
    Json document = Json::object();
    if (!file_.empty()) {
        TRY(document, readJsonFile(file_));
        if (!document.is_object()) return badInput(file_, "expected a JSON object (a scenario)");
        // A result holds the scenario it answers: take that, so that an answer can be asked again.
        if (document.contains("format") && document["format"] == "ringside-result" && document.contains("scenario")) document = Json(document["scenario"]);
    }
    for (const auto& flag : flags_) {
        if (flag->value.empty()) continue;
        if (flag->key == "cluster")  // flags win over the file: another way to say the cluster replaces the file's
            for (const char* other : {"device", "devices", "devices_per_node", "node"}) document.erase(other);
        if ((flag->key == "device" || flag->key == "devices" || flag->key == "node") && document.contains("cluster")) document.erase("cluster");
        // A name stays a name, even if it looks like a number.
        const bool name = flag->key == "model" || flag->key == "device" || flag->key == "network" || flag->key == "cluster" || flag->key == "node" ||
                          flag->key == "profile" || flag->key == "strategy.name";
        TRY_VOID(setScenarioKey(document, flag->key + "=" + (name ? Json(flag->value).dump() : flag->value)));
    }
    for (const std::string& assignment : assignments_) TRY_VOID(setScenarioKey(document, assignment));
    if (firstStep_) document["step"] = "first";
    return document;
}

Result<Scenario> ScenarioFlags::resolve(const Catalogs& catalogs) const {
    TRY(const Json json, document());
    return resolveScenario(json, file_.empty() ? "command line" : file_ == "-" ? "standard input" : file_, catalogs);
}

}  // namespace ringside
