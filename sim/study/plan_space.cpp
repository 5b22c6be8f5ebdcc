#include "sim/study/plan_space.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "model/base/names.h"

namespace ringside {
namespace {

/// What is tried for a knob beside its default; `replacesDefault`: never worse, so the default is not tried.
struct PlanningChoice {
    const char* key;
    std::vector<Json> values;
    bool replacesDefault = false;
};

const std::vector<PlanningChoice>& planningChoices() {
    static const std::vector<PlanningChoice> choices = {
        {"bucket_mb", {100}},
        {"gradient_as_bucket_view", {true}, true},  // the same sums with one copy and one tensor less
        {"sharding_strategy", {"shard_grad_op", "hybrid_shard"}},
        {"reshard_after_forward", {false}},
        {"overlap_comm", {true}, true},
        {"overlap_grad_reduce", {true}, true},
        {"overlap_param_gather", {true}, true},
        {"tp", {2, 4, 8}},
        {"pp", {2, 4, 8}},
    };
    return choices;
}

std::string textOf(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::int64_t wholeNumber(const Json& knobs, const char* key) {
    const auto found = knobs.find(key);
    return found != knobs.end() && found->is_number_integer() ? std::max<std::int64_t>(1, found->get<std::int64_t>()) : 1;
}

std::vector<std::string> allNames(const HardwareCatalog& hardware) {
    std::vector<std::string> names;
    for (const Device& device : hardware.devices()) names.push_back(device.name);
    for (const CatalogNodeKind& kind : hardware.nodeKinds()) names.push_back(kind.kind.name);
    for (const Cluster& cluster : hardware.clusters()) names.push_back(cluster.name);
    return names;
}

Result<std::vector<std::int64_t>> countsFor(const HardwareOption& option, const CountRequest& request) {
    if (option.kind != HardwareOption::Kind::Cluster) {
        if (!request.given.empty()) return request.given;
        return doublingCounts(option.devicesPerNode(), request.most > 0 ? request.most : kDefaultMostDevices);
    }
    const std::int64_t whole = option.cluster.deviceCount();
    if (option.cluster.nodes.size() > 1) return std::vector<std::int64_t>{whole};  // mixed: nobody says which part
    std::vector<std::int64_t> counts;
    if (!request.given.empty()) {
        std::copy_if(request.given.begin(), request.given.end(), std::back_inserter(counts), [&](std::int64_t n) { return n <= whole; });
        if (counts.empty())
            return badInput("--devices", fmt::format("the cluster {} has {} devices; ask for at most as many", option.name, formatCount(whole)));
        return counts;
    }
    if (request.most == 0) return std::vector<std::int64_t>{whole};
    counts = doublingCounts(option.devicesPerNode(), std::min(whole, request.most));
    if (whole <= request.most && counts.back() != whole) counts.push_back(whole);
    return counts;
}

}  // namespace

std::vector<std::int64_t> doublingCounts(std::int64_t devicesPerNode, std::int64_t most) {
    std::vector<std::int64_t> counts;
    for (std::int64_t n = 1; n < devicesPerNode && n <= most; n *= 2) counts.push_back(n);
    for (std::int64_t n = devicesPerNode; n <= most; n *= 2) counts.push_back(n);
    return counts;
}

Result<HardwareOption> hardwareOption(const std::string& name, const CountRequest& request, const Json& base, const Catalogs& catalogs) {
    HardwareOption option;
    const HardwareCatalog& hardware = catalogs.hardware;
    const auto device = hardware.findDevice(name);
    const auto kind = hardware.findNodeKind(name);
    if (device || kind) {
        option.kind = device ? HardwareOption::Kind::Device : HardwareOption::Kind::Node;
        option.name = device ? device->name : kind->kind.name;
        HardwareCatalog::ClusterRequest node;
        (device ? node.device : node.nodeKind) = option.name;
        auto one = hardware.makeCluster(node);
        if (!one) return badInput("--hardware " + name, one.error().message);
        option.cluster = std::move(*one);
        // One device was asked for; the node's own size (or the one given) is what counts go by.
        TRY(const CatalogNodeKind full, hardware.findNodeKind(device ? device->defaultNodeKind : option.name));
        option.cluster.nodes.front().kind.devices = full.kind.devices;
        if (const auto perNode = base.find("devices_per_node"); perNode != base.end() && perNode->is_number_integer() && perNode->get<std::int64_t>() > 0)
            option.cluster.nodes.front().kind.devices = perNode->get<std::int64_t>();
    } else {
        if (!name.ends_with(".json") && name != "-" && !hardware.findCluster(name))
            return badInput("--hardware", unknownName("device, node or cluster", name, allNames(hardware), "`ringside catalog devices` and `ringside catalog clusters` list them"));
        option.kind = HardwareOption::Kind::Cluster;
        TRY(option.cluster, resolveCluster(hardware, name));
        option.name = option.cluster.name.empty() ? name : option.cluster.name;
        option.reference = name == "-" ? toJson(option.cluster) : Json(name);
    }
    TRY(option.counts, countsFor(option, request));
    std::sort(option.counts.begin(), option.counts.end());
    option.counts.erase(std::unique(option.counts.begin(), option.counts.end()), option.counts.end());
    return option;
}

Result<void> layHardware(Json& document, const HardwareOption& option, std::int64_t count) {
    for (const char* key : {"devices", "node", "cluster"}) document.erase(key);
    if (option.kind == HardwareOption::Kind::Cluster) {
        document.erase("devices_per_node");
        const Cluster& whole = option.cluster;
        if (count == whole.deviceCount()) {
            document["cluster"] = option.reference;
        } else {
            if (whole.nodes.size() > 1) return badInput("--devices", fmt::format("{} mixes nodes and is planned as a whole", option.name));
            TRY(const Cluster part, makeCluster(whole.nodes.front().kind, count, 0, whole.network, whole.name));
            document["cluster"] = toJson(part);
        }
        if (document.contains("device") && document["device"].is_string()) document.erase("device");
        return {};
    }
    document["devices"] = count;
    if (option.kind == HardwareOption::Kind::Node) {
        document["node"] = option.name;
        if (document.contains("device") && document["device"].is_string()) document.erase("device");
    } else if (document.contains("device") && document["device"].is_object()) {
        document["device"]["name"] = option.name;  // figures of --set device.… stay
    } else {
        document["device"] = option.name;
    }
    return {};
}

bool isPlannedByDefault(std::string_view strategy) {
    static constexpr std::array kProduction{"single", "ddp", "zero1", "zero2", "zero3", "megatron", "fsdp1", "fsdp2", "hsdp"};
    return std::find(kProduction.begin(), kProduction.end(), strategy) != kProduction.end();
}

std::vector<Json> knobSettings(const Strategy& strategy, const Json& fixed, std::int64_t devices, std::int64_t devicesPerNode) {
    std::vector<Json> settings{Json::object()};
    for (const Knob& knob : strategy.knobs()) {
        if (fixed.is_object() && fixed.contains(knob.key)) {
            for (Json& setting : settings) setting[knob.key] = fixed[knob.key];
            continue;
        }
        const auto choice = std::find_if(planningChoices().begin(), planningChoices().end(), [&](const PlanningChoice& c) { return knob.key == c.key; });
        if (choice == planningChoices().end() || (choice->replacesDefault && textOf(choice->values.front()) == knob.defaultValue)) continue;
        std::vector<Json> next;
        if (!choice->replacesDefault) next = settings;
        for (const Json& value : choice->values) {
            if (!choice->replacesDefault && textOf(value) == knob.defaultValue) continue;
            if (knob.key == "tp" && value.get<std::int64_t>() > devicesPerNode) continue;  // beyond a node the links are too slow
            for (Json setting : settings) {
                setting[knob.key] = value;
                if (modelParallelDevices(setting) <= devices) next.push_back(std::move(setting));
            }
        }
        settings = std::move(next);
    }
    return settings;
}

std::int64_t modelParallelDevices(const Json& knobs) { return wholeNumber(knobs, "tp") * wholeNumber(knobs, "pp") * wholeNumber(knobs, "cp"); }

std::int64_t defaultGlobalBatch(std::int64_t parameters, std::int64_t tokensPerSample) {
    if (tokensPerSample == 0) return 1024;
    const double tokens = parameters < 1'000'000'000 ? 0.5e6 : parameters < 4'000'000'000 ? 1e6 : parameters < 20'000'000'000 ? 2e6 : 4e6;
    return std::int64_t{1} << std::max(0, static_cast<int>(std::lround(std::log2(tokens / static_cast<double>(tokensPerSample)))));
}

}  // namespace ringside
