#include "model/hardware/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <vector>

#include "model/base/names.h"
#include "model/hardware/device_figures.h"

namespace ringside {
namespace {

constexpr std::array kArchs = {GpuArch::Volta,          GpuArch::Ampere, GpuArch::Ada,   GpuArch::Hopper, GpuArch::Blackwell,
                               GpuArch::BlackwellUltra, GpuArch::Cdna2,  GpuArch::Cdna3, GpuArch::Other};
constexpr std::string_view kPeakPrefix = "peak_dense_tflops.";

/// What a key means, in words.
std::string describe(std::string_view key) {
    if (key.starts_with(kPeakPrefix)) return fmt::format("peak {} throughput", key.substr(kPeakPrefix.size()));
    for (const DeviceNumber& figure : kDeviceNumbers)
        if (figure.key == key) return std::string(figure.words);
    for (const DeviceCount& figure : kDeviceCounts)
        if (figure.key == key) return std::string(figure.words);
    return std::string(key);
}

tl::unexpected<Error> missing(const Device& device, std::string_view key) {
    std::string instead;
    if (key.starts_with(kPeakPrefix) && !device.peakDenseTflops.empty()) {
        std::vector<std::string_view> known;
        for (const auto& [dtype, tflops] : device.peakDenseTflops) known.push_back(nameOf(dtype));
        instead = fmt::format(" (the peaks known are {}: a --precision that uses one of them works)", fmt::join(known, ", "));
    }
    return badInput("device " + device.name,
                    fmt::format("the {} of {} is not known: the device has none, or no trustworthy source gives it; supply it with --set device.{}=VALUE{}",
                                describe(key), device.name, key, instead));
}

tl::unexpected<Error> outOfRange(std::string_view key, double value, double min, double max, std::string_view kind = "a number") {
    return badInput(fmt::format("--set device.{}", key), fmt::format("{:g} is out of range; expected {} from {:g} to {:g}", value, kind, min, max));
}

bool within(double value, double min, double max) { return std::isfinite(value) && value >= min && value <= max; }

/// NCCL's count of a link is a fixed share of the datasheet's; a new rate keeps the share.
void rescaleNcclRate(std::optional<double>& nccl, const std::optional<double>& oldRate, double newRate) {
    if (!nccl) return;
    if (oldRate && *oldRate > 0)
        *nccl *= newRate / *oldRate;
    else
        nccl.reset();
}

}  // namespace

std::string_view nameOf(GpuArch arch) {
    switch (arch) {
        case GpuArch::Volta:
            return "volta";
        case GpuArch::Ampere:
            return "ampere";
        case GpuArch::Ada:
            return "ada";
        case GpuArch::Hopper:
            return "hopper";
        case GpuArch::Blackwell:
            return "blackwell";
        case GpuArch::BlackwellUltra:
            return "blackwell-ultra";
        case GpuArch::Cdna2:
            return "cdna2";
        case GpuArch::Cdna3:
            return "cdna3";
        case GpuArch::Other:
            return "other";
    }
    return "?";
}

Result<GpuArch> gpuArchByName(std::string_view name) {
    std::vector<std::string> known;
    for (const GpuArch arch : kArchs) {
        if (name == nameOf(arch)) return arch;
        known.emplace_back(nameOf(arch));
    }
    return badInput({}, unknownName("architecture", name, known));
}

Result<double> require(const std::optional<double>& field, const Device& device, std::string_view key) {
    if (field) return *field;
    return missing(device, key);
}

Result<double> peakFlops(const Device& device, DType math) {
    const auto found = device.peakDenseTflops.find(math);
    if (found != device.peakDenseTflops.end()) return found->second * 1e12;
    return missing(device, fmt::format("{}{}", kPeakPrefix, nameOf(math)));
}

Result<double> memoryBandwidth(const Device& device) {
    TRY(const double gb, require(device.memoryBandwidthGbPerS, device, "memory_bandwidth_gb_per_s"));
    return gb * 1e9;
}

Result<std::int64_t> multiprocessors(const Device& device) {
    if (device.sms) return *device.sms;
    return missing(device, "sms");
}

Result<Bytes> memoryCapacity(const Device& device) {
    if (device.memoryBytes) return *device.memoryBytes;
    TRY(const double gb, require(device.memoryGb, device, "memory_gb"));
    return static_cast<Bytes>(std::llround(gb * static_cast<double>(kGiB) * kUsableMemoryFraction));
}

Result<double> linkRateGbPerS(const Device& device) {
    if (device.nvlinkNcclGbPerS) return *device.nvlinkNcclGbPerS;
    return require(device.nvlinkGbPerS, device, "nvlink_gb_per_s");
}

Result<double> pcieRateGbPerS(const Device& device) {
    if (device.pcieNcclGbPerS) return *device.pcieNcclGbPerS;
    return require(device.pcieGbPerS, device, "pcie_gb_per_s");
}

std::vector<std::string> deviceFigureKeys() {
    std::vector<std::string> keys;
    for (const DType type : kPeakTypes) keys.push_back(fmt::format("{}{}", kPeakPrefix, nameOf(type)));
    for (const DeviceCount& figure : kDeviceCounts) keys.emplace_back(figure.key);
    for (const DeviceNumber& figure : kDeviceNumbers) keys.emplace_back(figure.key);
    keys.emplace_back("peer_to_peer");
    return keys;
}

Result<void> setDeviceFigure(Device& device, std::string_view key, double value) {
    if (key.starts_with(kPeakPrefix)) {
        for (const DType type : kPeakTypes) {
            if (key.substr(kPeakPrefix.size()) != nameOf(type)) continue;
            if (!within(value, kMinPeakTflops, kMaxPeakTflops)) return outOfRange(key, value, kMinPeakTflops, kMaxPeakTflops);
            device.peakDenseTflops[type] = value;
            return {};
        }
    }
    for (const DeviceCount& figure : kDeviceCounts) {
        if (key != figure.key) continue;
        const auto min = static_cast<double>(figure.min), max = static_cast<double>(figure.max);
        if (!within(value, min, max) || value != std::floor(value)) return outOfRange(key, value, min, max, "a whole number");
        device.*figure.field = static_cast<std::int64_t>(value);
        return {};
    }
    for (const DeviceNumber& figure : kDeviceNumbers) {
        if (key != figure.key) continue;
        if (!within(value, figure.min, figure.max)) return outOfRange(key, value, figure.min, figure.max);
        if (figure.field == &Device::memoryGb) device.memoryBytes.reset();
        if (figure.field == &Device::nvlinkGbPerS) rescaleNcclRate(device.nvlinkNcclGbPerS, device.nvlinkGbPerS, value);
        if (figure.field == &Device::pcieGbPerS) rescaleNcclRate(device.pcieNcclGbPerS, device.pcieGbPerS, value);
        device.*figure.field = value;
        return {};
    }
    if (key == "peer_to_peer") {
        if (value != 0 && value != 1) return outOfRange(key, value, 0, 1, "a whole number");
        device.peerToPeer = value == 1;
        return {};
    }
    return badInput(fmt::format("--set device.{}", key), unknownName("device figure", key, deviceFigureKeys()));
}

}  // namespace ringside
