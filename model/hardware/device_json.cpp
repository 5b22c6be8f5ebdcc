#include <fmt/format.h>

#include "model/hardware/device.h"
#include "model/hardware/device_figures.h"

namespace ringside {
namespace {

template <class T>
Json orNull(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Result<std::vector<std::string>> strings(const JsonCursor& json, std::string_view key) {
    std::vector<std::string> out;
    if (const auto list = json.find(key)) {
        TRY(const auto items, list->items());
        for (const JsonCursor& item : items) {
            TRY(std::string text, item.asString());
            out.push_back(std::move(text));
        }
    }
    return out;
}

Result<void> readPeaks(const JsonCursor& json, Device& device) {
    const auto peaks = json.find("peak_dense_tflops");
    if (!peaks) return {};
    std::vector<std::string> known;
    for (const DType type : kPeakTypes) known.emplace_back(nameOf(type));
    for (const std::string_view name : kOtherPeaks) known.emplace_back(name);
    TRY_VOID(peaks->keys(known));
    for (const DType type : kPeakTypes) {
        if (const auto peak = peaks->find(nameOf(type))) {
            TRY(const double value, peak->asNumber(kMinPeakTflops, kMaxPeakTflops));
            device.peakDenseTflops[type] = value;
        }
    }
    for (const std::string_view name : kOtherPeaks) {
        if (const auto peak = peaks->find(name)) {
            TRY(const double value, peak->asNumber(kMinPeakTflops, kMaxPeakTflops));
            device.otherPeakDenseTflops[std::string(name)] = value;
        }
    }
    return {};
}

std::vector<std::string> knownKeys() {
    std::vector<std::string> keys = {"name",         "full_name",         "arch",    "peak_dense_tflops", "memory_type", "interconnect",
                                     "peer_to_peer", "default_node_kind", "aliases", "confidence",        "sources",     "notes"};
    for (const DeviceNumber& figure : kDeviceNumbers) keys.emplace_back(figure.key);
    for (const DeviceCount& figure : kDeviceCounts) keys.emplace_back(figure.key);
    return keys;
}

}  // namespace

Result<Device> deviceFromJson(const JsonCursor& json) {
    TRY_VOID(json.keys(knownKeys()));
    Device device;
    TRY(const JsonCursor name, json.at("name"));
    TRY(device.name, name.asString());
    if (device.name.empty()) return name.error("the device's name is empty; give it one");
    TRY(device.fullName, json.stringOr("full_name", device.name));
    if (const auto arch = json.find("arch")) {
        TRY(const std::string text, arch->asString());
        auto parsed = gpuArchByName(text);
        if (!parsed) return arch->error(parsed.error().message);
        device.arch = *parsed;
    }
    TRY_VOID(readPeaks(json, device));
    for (const DeviceNumber& figure : kDeviceNumbers) {
        if (const auto value = json.find(figure.key)) {
            TRY(device.*figure.field, value->asNumber(figure.min, figure.max));
        }
    }
    for (const DeviceCount& figure : kDeviceCounts) {
        if (const auto value = json.find(figure.key)) {
            TRY(device.*figure.field, value->asInt(figure.min, figure.max));
        }
    }
    TRY(device.memoryType, json.stringOr("memory_type", ""));
    TRY(device.interconnect, json.stringOr("interconnect", "pcie"));
    if (device.interconnect != "nvlink" && device.interconnect != "xgmi" && device.interconnect != "pcie" && device.interconnect != "none")
        return json.at("interconnect")->error(fmt::format("'{}' is not an interconnect; expected nvlink, xgmi, pcie or none", device.interconnect));
    TRY(device.peerToPeer, json.boolOr("peer_to_peer", true));
    TRY(device.defaultNodeKind, json.stringOr("default_node_kind", ""));
    TRY(device.aliases, strings(json, "aliases"));
    TRY(device.confidence, json.stringOr("confidence", ""));
    TRY(device.sources, strings(json, "sources"));
    TRY(device.notes, json.stringOr("notes", ""));
    return device;
}

Json toJson(const Device& device) {
    Json json = Json::object();
    json["name"] = device.name;
    json["full_name"] = device.fullName;
    json["arch"] = std::string(nameOf(device.arch));
    Json peaks = Json::object();
    for (const DType type : kPeakTypes) {
        const auto peak = device.peakDenseTflops.find(type);
        peaks[std::string(nameOf(type))] = peak == device.peakDenseTflops.end() ? Json(nullptr) : Json(peak->second);
    }
    for (const auto& [name, peak] : device.otherPeakDenseTflops) peaks[name] = peak;
    json["peak_dense_tflops"] = std::move(peaks);
    for (const DeviceCount& figure : kDeviceCounts) json[std::string(figure.key)] = orNull(device.*figure.field);
    for (const DeviceNumber& figure : kDeviceNumbers) json[std::string(figure.key)] = orNull(device.*figure.field);
    json["memory_type"] = device.memoryType;
    json["interconnect"] = device.interconnect;
    json["peer_to_peer"] = device.peerToPeer;
    json["default_node_kind"] = device.defaultNodeKind;
    json["aliases"] = device.aliases;
    json["confidence"] = device.confidence;
    json["sources"] = device.sources;
    json["notes"] = device.notes;
    return json;
}

}  // namespace ringside
