#include "calibrate/published/published_cluster.h"

#include <algorithm>
#include <cctype>
#include <regex>

#include <fmt/format.h>

namespace ringside {
namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

struct DeviceWords {
    std::string_view all[2];  ///< each must be there; "" always is
    std::string_view device;
};
/// The first line whose words are all there. More particular ones stand first.
constexpr DeviceWords kDevices[] = {
    {{"gb300", ""}, "gb300"},        {{"b300", ""}, "b300"},           {{"gb200", ""}, "gb200"},           {{"b200", ""}, "b200"},
    {{"h200", ""}, "h200"},          {{"h100", "nvl"}, "h100-nvl"},    {{"h100", "pcie"}, "h100-pcie"},    {{"h100", ""}, "h100-sxm"},
    {{"a100", "pcie"}, "a100-pcie"}, {{"a100", ""}, "a100"},           {{"v100", "pcie"}, "v100-pcie"},    {{"v100", "16"}, "v100-sxm-16gb"},
    {{"v100", ""}, "v100-sxm"},      {{"a10g", ""}, "a10g"},           {{"l40s", ""}, "l40s"},  {{"l40", ""}, "l40"},             {{"6000", "ada"}, "rtx-6000-ada"},
    {{"a6000", ""}, "rtx-a6000"},    {{"rtx 8000", ""}, "rtx-8000"},   {{"titan rtx", ""}, "titan-rtx"},   {{"3090", ""}, "rtx-3090"},
    {{"4090", ""}, "rtx-4090"},      {{"5090", ""}, "rtx-5090"},       {{"a10", ""}, "a10"},               {{"l4", ""}, "l4"},
    {{"mi355x", ""}, "mi355x"},      {{"mi325x", ""}, "mi325x"},       {{"mi300x", ""}, "mi300x"},         {{"mi250x", ""}, "mi250x"},
};

/// How the devices of a node are joined, if the source says so; else as the node kind has it.
IntraNodeFabric fabricOf(const std::string& words, const NodeKind& kind) {
    if (has(words, "p2p disabled") || has(words, "via host")) return IntraNodeFabric::PcieHost;
    if (has(words, "nvlink") && !has(words, "bridge not stated") && kind.fabric == IntraNodeFabric::PcieHost && kind.device.interconnect == "nvlink") return IntraNodeFabric::NvLinkMesh;
    if (has(words, "nvswitch") && kind.device.interconnect == "nvlink") return IntraNodeFabric::NvSwitch;  // DGX-2: V100s behind a switch
    return kind.fabric;
}

/// A rack of 72 is one NVLink domain; jobs larger than it take 64 of each, so that the domains are alike.
std::int64_t nvl72Share(std::int64_t devices) {
    if (devices <= 72) return devices;
    return devices % 72 == 0 ? 72 : 64;
}

/// What the text says beside the name: memory, its bandwidth, a power limit ("H100-96GB-SXM (500 W, 2.4 TB/s)").
Result<void> addStatedFigures(Device& device, const std::string& gpu) {
    static const std::regex memory(R"((\d{1,4}(\.\d{1,2})?)\s*(GB|GiB)\b(?!/))"), bandwidth(R"((\d{1,2}(\.\d{1,3})?)\s*TB/s)"), power(R"((\d{2,4})\s*W\b(?!/))");
    // A figure of something else (a rack, a link) is not near what the device usually has.
    const auto stated = [&](const std::regex& what, double unit, const std::optional<double>& usual) -> std::optional<double> {
        std::smatch found;
        if (!usual || !std::regex_search(gpu, found, what)) return std::nullopt;
        const double value = unit * std::stod(found[1]);
        return value >= *usual / 2 && value <= *usual * 1.5 && value != *usual ? std::optional(value) : std::nullopt;
    };
    if (const auto gb = stated(memory, 1, device.memoryGb)) TRY_VOID(setDeviceFigure(device, "memory_gb", *gb));
    if (const auto rate = stated(bandwidth, 1000, device.memoryBandwidthGbPerS)) TRY_VOID(setDeviceFigure(device, "memory_bandwidth_gb_per_s", *rate));
    if (const auto watts = stated(power, 1, device.tdpW); watts && *watts < *device.tdpW) TRY_VOID(setDeviceFigure(device, "power_limit_w", *watts));
    return {};
}

}  // namespace

std::string deviceNameOf(const std::string& gpu) {
    static const std::regex links("nvlink|nvl[0-9]+");  // which the H100 NVL is not
    const std::string words = std::regex_replace(lower(gpu), links, "");
    if (words.empty() || has(words, "not stated") || has(words, "not named")) return {};
    for (const DeviceWords& line : kDevices) {
        if (!has(words, line.all[0]) || !has(words, line.all[1])) continue;
        if (line.device == "a100" || line.device == "a100-pcie") {
            const bool pcie = line.device == "a100-pcie", small = has(words, "40g") || has(words, "40 g");
            return fmt::format("a100-{}gb-{}", small ? 40 : 80, pcie ? "pcie" : "sxm");
        }
        return std::string(line.device);
    }
    return words;
}

std::optional<Nics> nicsOf(const std::string& interconnect, std::int64_t devicesPerNode) {
    const std::string words = lower(interconnect);
    static const std::regex several(R"((\d{1,4})\s*x\s*(\d{1,6}(\.\d{1,6})?)\s*gb)"), total(R"((\d{1,6}(\.\d{1,6})?)\s*(gbps|gb/s|gbit))");
    Nics nics;
    std::smatch found;
    if (std::regex_search(words, found, several)) {
        nics.count = std::stoll(found[1]);
        nics.gbitPerS = std::stod(found[2]);
    } else if (std::regex_search(words, found, total)) {
        const double gbit = std::stod(found[1]);
        nics.count = gbit >= 800 ? std::min<std::int64_t>(8, std::max<std::int64_t>(1, devicesPerNode)) : 1;  // a NIC beside each device
        nics.gbitPerS = gbit / static_cast<double>(nics.count);
    } else {
        return std::nullopt;
    }
    nics.gpuDirect = !has(words, "tcp") && !has(words, "ethernet");
    nics.latencyUs = has(words, "efa") ? 75 : nics.gpuDirect ? 0 : 25;  // as the catalogue's networks of those kinds
    if (nics.count < 1 || nics.gbitPerS <= 0) return std::nullopt;
    return nics;
}

Result<Cluster> clusterOf(const PublishedHardware& hardware, const HardwareCatalog& catalog) {
    if (hardware.nodes && hardware.gpusPerNode && *hardware.nodes * *hardware.gpusPerNode != hardware.gpus)
        return badInput("", fmt::format("n_gpus is {}, but nodes × gpus_per_node is {}", hardware.gpus, *hardware.nodes * *hardware.gpusPerNode));
    const std::string name = deviceNameOf(hardware.gpu);
    if (name.empty()) return badInput("", "the device is not stated");
    const auto device = catalog.findDevice(name);
    if (!device) return badInput("", fmt::format("the device '{}' is not in the catalogue", hardware.gpu));
    TRY(CatalogNodeKind usual, catalog.findNodeKind(device->defaultNodeKind.empty() ? "pcie-box" : device->defaultNodeKind));
    NodeKind kind = usual.kind;
    kind.device = *device;
    TRY_VOID(addStatedFigures(kind.device, hardware.gpu));
    const std::string words = lower(hardware.interconnect);
    kind.fabric = fabricOf(words, kind);

    const bool rack = kind.devices == 72 || has(words, "nvl72");
    std::int64_t perNode = hardware.gpusPerNode.value_or(hardware.gpus / std::max<std::int64_t>(1, hardware.nodes.value_or(1)));
    if (rack) perNode = nvl72Share(hardware.gpus);
    perNode = std::max<std::int64_t>(1, std::min(perNode, hardware.gpus));
    if (hardware.gpus % perNode != 0) return badInput("", fmt::format("{} devices do not fill nodes of {}", hardware.gpus, perNode));
    if (perNode > kind.devices) {
        if (kind.fabric == IntraNodeFabric::NvLinkMesh) return badInput("", fmt::format("a node of {} devices without a switch is not known", perNode));
        kind.devices = perNode;
    }
    TRY(const NamedNetwork network, catalog.findNetwork(usual.network));
    TRY(Cluster cluster, makeCluster(kind, hardware.gpus, perNode, network.spec));
    if (cluster.nodeCount() > 1)
        if (const auto stated = nicsOf(hardware.interconnect, perNode))
            for (NodeGroup& group : cluster.nodes) group.kind.nics = *stated;
    return cluster;
}

}  // namespace ringside
