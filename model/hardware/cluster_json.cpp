
#include <fmt/format.h>

#include "model/hardware/cluster.h"

namespace ringside {
namespace {

/// The error of a lookup, with the place in the file that asked for it.
template <class T>
Result<T> placed(Result<T> result, const JsonCursor& json) {
    if (result) return result;
    return json.error(result.error().message);
}

std::vector<std::string> with(std::vector<std::string> keys, const std::vector<std::string>& extra) {
    keys.insert(keys.end(), extra.begin(), extra.end());
    return keys;
}

Result<Device> readDevice(const JsonCursor& json, const HardwareLookups& lookups) {
    if (json.value().is_object()) return deviceFromJson(json);
    if (!json.value().is_string()) return json.error("expected the name of a device or an object that describes one");
    TRY(const std::string name, json.asString());
    return placed(lookups.device(name), json);
}

struct Group {
    NodeGroup group;
    bool ownNics = false;  ///< the file itself says which NICs these nodes have
};

Result<Group> readGroup(const JsonCursor& json, const HardwareLookups& lookups) {
    TRY_VOID(json.keys({"kind", "count"}));
    TRY(const JsonCursor kind, json.at("kind"));
    Group out;
    if (kind.value().is_string()) {
        TRY(const std::string name, kind.asString());
        TRY(out.group.kind, placed(lookups.nodeKind(name), kind));
    } else if (kind.value().is_object()) {
        TRY(out.group.kind, nodeKindFromJson(kind, lookups));
        out.ownNics = kind.has("nics");
    } else {
        return kind.error("expected the name of a node kind or an object that describes one");
    }
    TRY(out.group.count, json.intOr("count", 1, 1, kMaxNodes));
    return out;
}

}  // namespace

Result<Nics> nicsFromJson(const JsonCursor& json) {
    TRY_VOID(json.keys({"count", "gbit_per_s", "latency_us", "gpu_direct"}));
    Nics nics;
    TRY(const JsonCursor count, json.at("count"));
    TRY(nics.count, count.asInt(0, 1024));
    if (nics.count > 0) {
        TRY(const JsonCursor rate, json.at("gbit_per_s"));
        TRY(nics.gbitPerS, rate.asNumber(1e-3, 1e5));
    } else {
        TRY(nics.gbitPerS, json.numberOr("gbit_per_s", 0, 0, 1e5));
    }
    TRY(nics.latencyUs, json.numberOr("latency_us", 0, 0, 1e6));
    TRY(nics.gpuDirect, json.boolOr("gpu_direct", true));
    return nics;
}

Json toJson(const Nics& nics) {
    return {{"count", nics.count}, {"gbit_per_s", nics.gbitPerS}, {"latency_us", nics.latencyUs}, {"gpu_direct", nics.gpuDirect}};
}

Result<NodeKind> nodeKindFromJson(const JsonCursor& json, const HardwareLookups& lookups, const std::vector<std::string>& extraKeys) {
    TRY_VOID(json.keys(with({"name", "device", "devices", "fabric", "cpu", "cpu_sockets", "devices_per_pcie_switch", "nics"}, extraKeys)));
    NodeKind kind;
    TRY(const JsonCursor device, json.at("device"));
    TRY(kind.device, readDevice(device, lookups));
    TRY(kind.name, json.stringOr("name", kind.device.name + "-node"));
    TRY(const JsonCursor devices, json.at("devices"));
    TRY(kind.devices, devices.asInt(1, kMaxDevicesPerNode));
    TRY(const JsonCursor fabric, json.at("fabric"));
    TRY(const std::string fabricName, fabric.asString());
    TRY(kind.fabric, placed(fabricByName(fabricName), fabric));
    if (const auto cpu = json.find("cpu")) {
        TRY(const std::string name, cpu->asString());
        TRY(kind.cpu, placed(cpuVendorByName(name), *cpu));
    }
    TRY(kind.cpuSockets, json.intOr("cpu_sockets", 2, 1, 64));
    TRY(kind.devicesPerPcieSwitch, json.intOr("devices_per_pcie_switch", 2, 1, kMaxDevicesPerNode));
    if (const auto nics = json.find("nics")) {
        TRY(kind.nics, nicsFromJson(*nics));
    }
    return kind;
}

Json toJson(const NodeKind& kind) {
    Json json = Json::object();
    json["name"] = kind.name;
    json["device"] = toJson(kind.device);
    json["devices"] = kind.devices;
    json["fabric"] = std::string(nameOf(kind.fabric));
    json["cpu"] = std::string(nameOf(kind.cpu));
    json["cpu_sockets"] = kind.cpuSockets;
    json["devices_per_pcie_switch"] = kind.devicesPerPcieSwitch;
    json["nics"] = toJson(kind.nics);
    return json;
}

Result<NetworkSpec> networkSpecFromJson(const JsonCursor& json, const std::vector<std::string>& extraKeys) {
    TRY_VOID(json.keys(with({"name", "rail_optimised", "oversubscription", "nodes_per_leaf", "switch_latency_us"}, extraKeys)));
    NetworkSpec network;
    TRY(network.name, json.stringOr("name", "custom"));
    TRY(network.railOptimised, json.boolOr("rail_optimised", network.railOptimised));
    TRY(network.oversubscription, json.numberOr("oversubscription", network.oversubscription, 1, 1000));
    TRY(network.nodesPerLeaf, json.intOr("nodes_per_leaf", network.nodesPerLeaf, 1, kMaxNodes));
    TRY(network.switchLatencyUs, json.numberOr("switch_latency_us", network.switchLatencyUs, 0, 1e6));
    return network;
}

Json toJson(const NetworkSpec& network) {
    return {{"name", network.name},
            {"rail_optimised", network.railOptimised},
            {"oversubscription", network.oversubscription},
            {"nodes_per_leaf", network.nodesPerLeaf},
            {"switch_latency_us", network.switchLatencyUs}};
}

Result<Cluster> clusterFromJson(const JsonCursor& json, const HardwareLookups& lookups) {
    TRY_VOID(json.keys({"$schema", "format", "version", "name", "notes", "nodes", "network"}));
    TRY(const JsonCursor format, json.at("format"));
    TRY(const std::string formatName, format.asString());
    if (formatName != "ringside-cluster") return format.error(fmt::format("this is a '{}' file; expected \"ringside-cluster\"", formatName));
    TRY(const JsonCursor version, json.at("version"));
    TRY_VOID(version.asInt(1, 1));

    Cluster cluster;
    TRY(cluster.name, json.stringOr("name", "cluster"));
    TRY(const JsonCursor nodes, json.at("nodes"));
    TRY(const auto entries, nodes.items());
    if (entries.empty()) return nodes.error("a cluster needs at least one entry in nodes");
    std::vector<bool> ownNics;
    std::int64_t count = 0;
    for (const JsonCursor& entry : entries) {
        TRY(Group group, readGroup(entry, lookups));
        count += group.group.count;
        if (count > kMaxNodes) return entry.error(fmt::format("{} nodes so far; expected at most {} in all", count, kMaxNodes));
        ownNics.push_back(group.ownNics);
        cluster.nodes.push_back(std::move(group.group));
    }
    if (const auto network = json.find("network")) {
        if (network->value().is_string()) {
            TRY(const std::string name, network->asString());
            TRY(const NamedNetwork named, placed(lookups.network(name), *network));
            cluster.network = named.spec;
            for (std::size_t g = 0; g < cluster.nodes.size(); ++g)
                if (!ownNics[g]) cluster.nodes[g].kind.nics = named.nics;
        } else if (network->value().is_object()) {
            TRY(cluster.network, networkSpecFromJson(*network));
        } else {
            return network->error("expected the name of a network or an object that describes one");
        }
    } else {
        cluster.network.name = "default";
    }
    return cluster;
}

Json toJson(const Cluster& cluster) {
    Json json = Json::object();
    json["format"] = "ringside-cluster";
    json["version"] = 1;
    json["name"] = cluster.name;
    json["nodes"] = Json::array();
    for (const NodeGroup& group : cluster.nodes) json["nodes"].push_back({{"kind", toJson(group.kind)}, {"count", group.count}});
    json["network"] = toJson(cluster.network);
    return json;
}

}  // namespace ringside
