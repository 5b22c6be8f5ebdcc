#include "cli/commands/scenario_flags.h"

#include <algorithm>

#include "cli/command.h"
#include "sim/scenario_keys.h"

namespace ringside {

void ScenarioFlags::add(Command& command, const std::string& flag, const std::string& key, const std::string& type, const std::string& group,
                        const std::string& help) {
    if (isLeftOut(flag)) return;
    flags_.push_back(std::make_unique<Flag>(Flag{flag, key, {}}));
    command.option(flag, flags_.back()->value, help.empty() ? helpOf(scenarioKey(key)) : help, type, group);
}

void ScenarioFlags::addTo(Command& command, bool withTraining) {
    command.option("scenario", file_, "scenario file (JSON; '-' reads standard input); flags go over it", "FILE", "");
    if (withTraining) add(command, "--model", "model", "NAME", "Scenario");
    add(command, "--device", "device", "NAME", "Scenario");
    add(command, "--devices", "devices", "N", "Scenario");
    add(command, "--devices-per-node", "devices_per_node", "N", "Scenario");
    add(command, "--node", "node", "NAME", "Scenario");
    add(command, "--network", "network", "NAME", "Scenario");
    add(command, "--cluster", "cluster", "NAME", "Scenario");
    if (withTraining) {
        add(command, "--strategy", "strategy.name", "NAME", "Scenario");
        add(command, "--seq-len", "training.seq_len", "N", "Training");
        add(command, "--micro-batch", "training.micro_batch", "N", "Training");
        add(command, "--grad-accum", "training.grad_accum", "N", "Training");
        add(command, "--global-batch", "training.global_batch", "N", "Training");
        add(command, "--precision", "training.precision", "WORD", "Training");
        add(command, "--optimizer", "training.optimizer", "WORD", "Training");
        add(command, "--recompute", "training.recompute", "WORD", "Training");
        add(command, "--bucket-mb", "strategy.bucket_mb", "X", "Strategy", "gradient bucket in MiB (default: 25, the first 1)");
        add(command, "--tp", "strategy.tp", "N", "Strategy", "tensor-parallel ranks (default: 1)");
        add(command, "--pp", "strategy.pp", "N", "Strategy", "pipeline stages (default: 1)");
        add(command, "--cp", "strategy.cp", "N", "Strategy", "context-parallel ranks (default: 1)");
        add(command, "--ep", "strategy.ep", "N", "Strategy", "expert-parallel ranks (default: 1)");
        add(command, "--profile", "profile", "NAME", "Scenario");
        command.flag("--first-step", firstStep_, "describe the first step instead of a steady one", "Strategy");
    }
    if (!isLeftOut("--set"))
        command.repeated("--set", assignments_, "any other key of the scenario: --set training.dropout=true (may be repeated)", "KEY=VALUE", "Scenario");
}

bool ScenarioFlags::isLeftOut(const std::string& flag) const { return std::find(leftOut_.begin(), leftOut_.end(), flag) != leftOut_.end(); }

bool ScenarioFlags::given(const std::string& key) const {
    for (const auto& flag : flags_)
        if (flag->key == key) return !flag->value.empty();
    return false;
}

void ScenarioFlags::dropDerivedBatch(Json& document) const {
    if (!document.contains("training") || !document["training"].is_object()) return;
    Json& training = document["training"];
    if (!training.contains("micro_batch") || !training.contains("grad_accum") || !training.contains("global_batch")) return;
    if (given("training.global_batch")) {
        if (!given("training.grad_accum")) training.erase("grad_accum");
        else if (!given("training.micro_batch")) training.erase("micro_batch");
        return;
    }
    for (const char* key : {"training.micro_batch", "training.grad_accum", "device", "devices", "devices_per_node", "node", "cluster"})
        if (given(key)) {
            training.erase("global_batch");
            return;
        }
}

Result<Json> ScenarioFlags::document() const {
    Json document = Json::object();
    if (!file_.empty()) {
        TRY(document, readJsonFile(file_));
        if (!document.is_object()) return badInput(file_, "expected a JSON object (a scenario)");
        // A result holds the scenario it answers: take that, so that an answer can be asked again.
        if (document.contains("format") && document["format"] == "ringside-result" && document.contains("scenario")) {
            Json scenario = std::move(document["scenario"]);
            document = std::move(scenario);
            if (!document.is_object()) return badInput(file_ + ": scenario", "expected a JSON object (a scenario)");
        }
    }
    // Flags win over the file: another way to say the cluster replaces the file's. Two ways in one command line are an
    // error, which resolveScenario finds because both are then in the document.
    if (given("cluster"))
        for (const char* other : {"device", "devices", "devices_per_node", "node"}) document.erase(other);
    if (given("device") || given("devices") || given("node")) document.erase("cluster");
    dropDerivedBatch(document);
    for (const auto& flag : flags_) {
        if (flag->value.empty()) continue;
        // A name stays a name, even if it looks like a number.
        const bool name = flag->key == "model" || flag->key == "device" || flag->key == "network" || flag->key == "cluster" || flag->key == "node" ||
                          flag->key == "profile" || flag->key == "strategy.name";
        TRY_VOID(setScenarioKey(document, flag->key + "=" + (name ? Json(flag->value).dump(-1, ' ', false, Json::error_handler_t::replace) : flag->value)));
    }
    for (const std::string& assignment : assignments_) TRY_VOID(setScenarioKey(document, assignment));
    if (firstStep_) document["step"] = "first";
    return document;
}

Error ScenarioFlags::named(Error error, const std::string& source) const {
    for (const auto& flag : flags_) {
        if (flag->value.empty()) continue;
        const std::string section = flag->key.substr(0, flag->key.find('.'));
        const bool nameOfSection = flag->key == section + ".name" && error.place == source + ": " + section;
        if (error.place == source + ": " + flag->key || nameOfSection) error.place = flag->flag;
    }
    for (const std::string& assignment : assignments_) {
        const std::string key = assignment.substr(0, assignment.find('='));
        if (error.place == source + ": " + key || error.place.ends_with("." + key)) error.place = "--set " + key;
    }
    return error;
}

Result<Scenario> ScenarioFlags::resolve(const Catalogs& catalogs) const {
    TRY(const Json json, document());
    return resolve(json, catalogs);
}

Result<Scenario> ScenarioFlags::resolve(const Json& json, const Catalogs& catalogs) const {
    Result<Scenario> scenario = resolveScenario(json, source(), catalogs);
    if (scenario) return scenario;
    return tl::unexpected<Error>(named(std::move(scenario).error(), source()));
}

std::string ScenarioFlags::source() const { return file_.empty() ? "command line" : file_ == "-" ? "standard input" : file_; }

}  // namespace ringside
