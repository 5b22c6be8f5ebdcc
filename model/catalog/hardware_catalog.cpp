#include "model/catalog/hardware_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "model/base/names.h"

namespace ringside {
namespace {

bool sameName(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool answersTo(std::string_view wanted, const std::string& name, const std::vector<std::string>& aliases) {
    return sameName(wanted, name) || std::any_of(aliases.begin(), aliases.end(), [&](const std::string& alias) { return sameName(wanted, alias); });
}

const std::string& nameIn(const Device& device) { return device.name; }
const std::string& nameIn(const CatalogNodeKind& kind) { return kind.kind.name; }
const std::string& nameIn(const NamedNetwork& network) { return network.spec.name; }
const std::string& nameIn(const Cluster& cluster) { return cluster.name; }

std::vector<std::string> aliasesIn(const Cluster&) { return {}; }
template <class T>
const std::vector<std::string>& aliasesIn(const T& entry) {
    return entry.aliases;
}

template <class T>
Result<T> findIn(const std::vector<T>& entries, std::string_view what, std::string_view plural, std::string_view name) {
    std::vector<std::string> known;
    for (const T& entry : entries) {
        if (answersTo(name, nameIn(entry), aliasesIn(entry))) return entry;
        known.push_back(nameIn(entry));
        for (const std::string& alias : aliasesIn(entry)) known.push_back(alias);
    }
    return badInput({}, unknownName(what, name, known, fmt::format("`ringside catalog {}` lists them", plural)));
}

/// Refuses an entry whose name or alias another entry already has: the second would never be found.
template <class T>
Result<void> add(std::vector<T>& entries, T entry, const JsonCursor& json) {
    std::vector<std::string> names = aliasesIn(entry);
    names.push_back(nameIn(entry));
    for (const T& other : entries)
        for (const std::string& name : names)
            if (answersTo(name, nameIn(other), aliasesIn(other)))
                return json.error(fmt::format("the name '{}' is taken by {}; choose another", name, nameIn(other)));
    entries.push_back(std::move(entry));
    return {};
}

Result<std::vector<std::string>> readAliases(const JsonCursor& json) {
    std::vector<std::string> out;
    if (const auto aliases = json.find("aliases")) {
        TRY(const auto items, aliases->items());
        for (const JsonCursor& item : items) {
            TRY(std::string alias, item.asString());
            out.push_back(std::move(alias));
        }
    }
    return out;
}

Result<NamedNetwork> readNetwork(const JsonCursor& json) {
    NamedNetwork network;
    TRY(network.spec, networkSpecFromJson(json, {"aliases", "nics", "source"}));
    TRY(const JsonCursor nics, json.at("nics"));
    TRY(network.nics, nicsFromJson(nics));
    TRY(network.aliases, readAliases(json));
    TRY(network.source, json.stringOr("source", ""));
    return network;
}

Result<CatalogNodeKind> readNodeKind(const JsonCursor& json, const HardwareLookups& lookups) {
    CatalogNodeKind out;
    TRY(out.kind, nodeKindFromJson(json, lookups, {"aliases", "network", "any_device", "source"}));
    TRY(const JsonCursor network, json.at("network"));
    TRY(out.network, network.asString());
    const auto known = lookups.network(out.network);
    if (!known) return network.error(known.error().message);
    TRY(out.anyDevice, json.boolOr("any_device", false));
    TRY(out.aliases, readAliases(json));
    TRY(out.source, json.stringOr("source", ""));
    return out;
}

/// The list under `key` of a file whose format is `format`.
Result<std::vector<JsonCursor>> entriesOf(const JsonCursor& json, const std::string& key) {
    TRY_VOID(json.keys({"format", "version", "notes", key}));
    TRY(const JsonCursor list, json.at(key));
    return list.items();
}

}  // namespace

Result<HardwareCatalog> HardwareCatalog::builtin() { return fromFiles(embeddedCatalog()); }

Result<HardwareCatalog> HardwareCatalog::fromFiles(const std::vector<EmbeddedFile>& files) {
    struct File {
        std::string source, format;
        Json json;
    };
    std::vector<File> parsed;
    for (const EmbeddedFile& file : files) {
        if (!file.path.starts_with("devices/") && !file.path.starts_with("clusters/")) continue;
        const std::string source = fmt::format("catalog/{}", file.path);
        TRY(Json json, parseJson(file.text, source));
        TRY(const JsonCursor format, JsonCursor(json, source).at("format"));
        TRY(std::string name, format.asString());
        parsed.push_back({source, std::move(name), std::move(json)});
    }

    // Names refer downwards only: clusters to node kinds to networks and devices.
    HardwareCatalog catalog;
    const HardwareLookups lookups = {[&](std::string_view name) { return catalog.findDevice(name); },
                                     [&](std::string_view name) -> Result<NodeKind> {
                                         TRY(const CatalogNodeKind found, catalog.findNodeKind(name));
                                         return found.kind;
                                     },
                                     [&](std::string_view name) { return catalog.findNetwork(name); }};
    for (const std::string_view wanted : {"ringside-devices", "ringside-networks", "ringside-node-kinds", "ringside-cluster"}) {
        for (const File& file : parsed) {
            if (file.format != wanted) continue;
            const JsonCursor json(file.json, file.source);
            if (wanted == "ringside-devices") {
                TRY(const auto entries, entriesOf(json, "devices"));
                for (const JsonCursor& entry : entries) {
                    TRY(Device device, deviceFromJson(entry));
                    TRY_VOID(add(catalog.devices_, std::move(device), entry));
                }
            } else if (wanted == "ringside-networks") {
                TRY(const auto entries, entriesOf(json, "networks"));
                for (const JsonCursor& entry : entries) {
                    TRY(NamedNetwork network, readNetwork(entry));
                    TRY_VOID(add(catalog.networks_, std::move(network), entry));
                }
            } else if (wanted == "ringside-node-kinds") {
                TRY(const auto entries, entriesOf(json, "node_kinds"));
                for (const JsonCursor& entry : entries) {
                    TRY(CatalogNodeKind kind, readNodeKind(entry, lookups));
                    TRY_VOID(add(catalog.nodeKinds_, std::move(kind), entry));
                }
            } else {
                TRY(Cluster cluster, clusterFromJson(json, lookups));
                TRY_VOID(add(catalog.clusters_, std::move(cluster), json));
            }
        }
    }
    for (const File& file : parsed)
        if (file.format != "ringside-devices" && file.format != "ringside-networks" && file.format != "ringside-node-kinds" &&
            file.format != "ringside-cluster")
            return badInput(file.source, fmt::format("'{}' is not a format of the hardware catalogue", file.format));
    for (const Device& device : catalog.devices_)
        if (!device.defaultNodeKind.empty()) TRY_VOID(catalog.findNodeKind(device.defaultNodeKind));
    return catalog;
}

Result<Device> HardwareCatalog::findDevice(std::string_view name) const { return findIn(devices_, "device", "devices", name); }
Result<CatalogNodeKind> HardwareCatalog::findNodeKind(std::string_view name) const { return findIn(nodeKinds_, "node kind", "nodes", name); }
Result<NamedNetwork> HardwareCatalog::findNetwork(std::string_view name) const { return findIn(networks_, "network", "networks", name); }
Result<Cluster> HardwareCatalog::findCluster(std::string_view name) const { return findIn(clusters_, "cluster", "clusters", name); }

HardwareLookups HardwareCatalog::lookups() const {
    const auto copy = std::make_shared<const HardwareCatalog>(*this);
    return {[copy](std::string_view name) { return copy->findDevice(name); },
            [copy](std::string_view name) -> Result<NodeKind> {
                TRY(const CatalogNodeKind found, copy->findNodeKind(name));
                return found.kind;
            },
            [copy](std::string_view name) { return copy->findNetwork(name); }};
}

Result<Cluster> HardwareCatalog::makeCluster(const ClusterRequest& request) const {
    if (request.device.empty() && request.nodeKind.empty()) return badInput("--device", "no device is given; name one, for example --device a100");
    std::optional<Device> device;
    if (!request.device.empty()) {
        auto found = findDevice(request.device);
        if (!found) return badInput("--device", found.error().message);
        device = std::move(*found);
    }
    std::string kindName = request.nodeKind;
    if (kindName.empty()) {
        if (device->defaultNodeKind.empty())
            return badInput("--device", fmt::format("{} has no usual node kind; add --node KIND, or describe the cluster in a file", device->name));
        kindName = device->defaultNodeKind;
    }
    auto found = findNodeKind(kindName);
    if (!found) return badInput("--node", found.error().message);
    NodeKind kind = found->kind;
    if (device && device->name != kind.device.name) {
        if (!found->anyDevice)
            return badInput(
                "--node",
                fmt::format("a {} node holds {}, not {}; leave --device or --node out, use --node pcie-box, or describe the cluster in a file",
                            kind.name, kind.device.name, device->name));
        kind.device = *device;
    }
    auto network = findNetwork(request.network.empty() ? found->network : request.network);
    if (!network) return badInput("--network", network.error().message);
    if (!request.network.empty()) kind.nics = network->nics;
    return ringside::makeCluster(kind, request.devices, request.devicesPerNode, network->spec);
}

Result<Cluster> resolveCluster(const HardwareCatalog& catalog, const std::string& nameOrPath) {
    if (nameOrPath != "-" && !nameOrPath.ends_with(".json")) return catalog.findCluster(nameOrPath);
    TRY(const Json json, readJsonFile(nameOrPath));
    return clusterFromJson(JsonCursor(json, nameOrPath == "-" ? "standard input" : nameOrPath), catalog.lookups());
}

}  // namespace ringside
