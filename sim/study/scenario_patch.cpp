#include "sim/study/scenario_patch.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace ringside {

Result<std::string> scenarioPath(const std::string& key) {
    if (key == "strategy") return std::string("strategy.name");
    if (key.find('.') != std::string::npos) return key;
    // setScenarioKey knows which section a bare key belongs to: let it set one in an empty document, and look where it went.
    Json probe = Json::object();
    TRY_VOID(setScenarioKey(probe, key + "=0"));
    std::string path;
    for (const Json* node = &probe; node->is_object(); node = &node->begin().value()) path += (path.empty() ? "" : ".") + node->begin().key();
    return path;
}

void makeRoomFor(Json& document, const std::vector<std::string>& paths) {
    const auto given = [&](const std::string& path) {
        return std::any_of(paths.begin(), paths.end(), [&](const std::string& p) { return p == path || p.starts_with(path + "."); });
    };
    if (given("cluster"))
        for (const char* other : {"device", "devices", "devices_per_node", "node"}) document.erase(other);
    if (given("device") || given("devices") || given("node")) document.erase("cluster");

    if (!document.contains("training") || !document["training"].is_object()) return;
    Json& training = document["training"];
    const auto said = [&](const char* key) { return given(std::string("training.") + key) || training.contains(key); };
    if (!said("micro_batch") || !said("grad_accum") || !said("global_batch")) return;
    const auto drop = [&](const char* key) { return !given(std::string("training.") + key) && training.erase(key) > 0; };
    if (given("training.global_batch")) {
        if (!drop("grad_accum")) drop("micro_batch");
        return;
    }
    for (const char* path : {"training.micro_batch", "training.grad_accum", "device", "devices", "devices_per_node", "node", "cluster"})
        if (given(path)) {
            drop("global_batch");
            return;
        }
}

void setStrategy(Json& document, const std::string& name) {
    Json& strategy = document["strategy"];
    if (!strategy.is_object()) strategy = Json::object();
    std::set<std::string> own, others;
    for (const auto& one : strategies())
        for (const Knob& knob : one->knobs()) (one->name() == name ? own : others).insert(knob.key);
    if (own.empty() && !strategyByName(name)) others.clear();  // unknown: resolveScenario says so
    Json kept = Json::object();
    kept["name"] = name;
    for (const auto& entry : strategy.items())
        if (entry.key() != "name" && (own.contains(entry.key()) || !others.contains(entry.key()))) kept[entry.key()] = entry.value();
    strategy = std::move(kept);
}

Result<void> setDevices(Json& document, std::int64_t devices, const std::string& source, const Catalogs& catalogs) {
    if (!document.contains("cluster")) {
        document["devices"] = devices;
        return {};
    }
    Json hardware = {{"model", "mlp"}, {"cluster", document["cluster"]}};  // any model: only the cluster is read
    if (document.contains("network")) hardware["network"] = document["network"];
    TRY(const Scenario whole, resolveScenario(hardware, source, catalogs));
    if (whole.cluster.nodes.size() != 1)
        return badInput(source + ": cluster",
                        "a cluster of several kinds of nodes has no one way to grow; describe the hardware by --device or --node instead");
    TRY(const Cluster resized, makeCluster(whole.cluster.nodes.front().kind, devices, 0, whole.cluster.network, whole.cluster.name));
    document["cluster"] = toJson(resized);
    document.erase("network");
    return {};
}

Result<std::vector<std::pair<std::string, Json>>> patchEntries(const Json& patch, const std::string& source) {
    if (!patch.is_object() || patch.empty())
        return badInput(source, "expected a JSON object of scenario keys, as in {\"devices\": 8, \"training\": {\"micro_batch\": 4}}");
    std::vector<std::pair<std::string, Json>> entries;
    const auto add = [&](const std::string& key, const Json& value) -> Result<void> {
        Result<std::string> path = scenarioPath(key);
        if (!path) return badInput(source, path.error().message);
        for (const auto& [other, ignored] : entries)
            if (other == *path) return badInput(source, fmt::format("'{}' is given twice; keep one of them", *path));
        entries.emplace_back(std::move(*path), value);
        return {};
    };
    for (const auto& entry : patch.items()) {
        const bool section = entry.key() == "training" || entry.key() == "strategy" || entry.key() == "collectives" || entry.key() == "memory";
        if (section && entry.value().is_object()) {
            for (const auto& inner : entry.value().items()) TRY_VOID(add(entry.key() + "." + inner.key(), inner.value()));
        } else {
            TRY_VOID(add(entry.key(), entry.value()));
        }
    }
    return entries;
}

}  // namespace ringside
