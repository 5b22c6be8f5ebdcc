// Device: an accelerator as its datasheet describes it. What nobody published stays empty, and asking for it is an error
// that says how to supply it: a guess would hide in a prediction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/dtype.h"
#include "model/base/json_cursor.h"
#include "model/base/result.h"

namespace ringside {

enum class GpuArch : std::uint8_t { Volta, Ampere, Ada, Hopper, Blackwell, BlackwellUltra, Cdna2, Cdna3, Other };
std::string_view nameOf(GpuArch arch);  ///< "volta", …, "cdna3", "other"
Result<GpuArch> gpuArchByName(std::string_view name);

struct Device {
    std::string name;       ///< "a100-80gb-sxm"
    std::string fullName;   ///< "A100-SXM4-80GB"
    GpuArch arch = GpuArch::Other;
    std::optional<double> computeCapability;                 ///< 8.0, 8.6, 9.0, …; empty for AMD
    std::optional<std::int64_t> sms;                         ///< multiprocessors (compute units on AMD)
    std::map<DType, double> peakDenseTflops;                 ///< only what is known
    std::map<std::string, double> otherPeakDenseTflops;      ///< kept for reference: "fp64_tensor", "fp6", "fp4"
    std::optional<double> memoryGb;                          ///< as sold
    std::optional<Bytes> memoryBytes;                        ///< what a process sees, where known; wins over memoryGb
    std::string memoryType;                                  ///< "HBM2e"; "" if not stated
    std::optional<double> memoryBandwidthGbPerS;
    std::string interconnect = "pcie";                       ///< "nvlink", "xgmi", "pcie" or "none"
    std::optional<double> nvlinkGbPerS;                      ///< all NVLink (or xGMI) links, one direction
    std::optional<double> nvlinkNcclGbPerS;                  ///< as NCCL counts it (about 80 % of the above); empty for AMD
    std::optional<std::int64_t> nvlinks;
    std::optional<std::int64_t> pcieGen, pcieLanes;
    std::optional<double> pcieGbPerS;                        ///< one direction, usable
    std::optional<double> pcieNcclGbPerS;                    ///< as NCCL counts it
    std::optional<double> loopbackGbPerS;                    ///< CPU ranks only: between two processes of one host
    std::optional<double> tdpW;
    std::optional<double> powerLimitW;                       ///< set below the TDP (nvidia-smi -pl); empty: none
    std::optional<double> measuredBestBf16Tflops;            ///< best-shape matmul that somebody measured
    bool peerToPeer = true;                                  ///< PCIe peer access (false: RTX 4090, L4 boxes stage through host memory)
    std::string defaultNodeKind;                             ///< catalogue node kind this device is usually found in; may be ""
    std::vector<std::string> aliases;                        ///< other names the catalogue answers to
    std::string confidence;                                  ///< of the sources: "high", "medium", "low"; may be ""
    std::vector<std::string> sources;
    std::string notes;

    bool operator==(const Device&) const = default;
};

/// The field's value, or an error that names the field, the device and the flag that supplies it
/// ("the peak bf16 throughput of a10g is not known …; give it with --set device.peak_dense_tflops.bf16=…").
Result<double> require(const std::optional<double>& field, const Device& device, std::string_view key);
Result<double> peakFlops(const Device& device, DType math);      ///< FLOP/s (not TFLOPS)
Result<double> memoryBandwidth(const Device& device);            ///< bytes/s
Result<std::int64_t> multiprocessors(const Device& device);
/// Bytes usable by a process, context included: `memoryBytes` if given, else memoryGb × GiB × kUsableMemoryFraction.
Result<Bytes> memoryCapacity(const Device& device);

/// Memory is sold in powers of two ("80 GB" = 80 GiB) of which the driver keeps 1–1.5 %. Lowest of the ratios seen in
/// PyTorch's "total capacity": 79.25/80 (A100), 39.50/40 (A100), 23.65/24 (RTX 4090). docs/models/hardware.md.
constexpr double kUsableMemoryFraction = 0.985;

/// The rate of all NVLink/xGMI links of a device, GB/s, one direction, as collectives see it: NCCL's count where it has
/// one, else the datasheet's. Error if neither is known.
Result<double> linkRateGbPerS(const Device& device);
/// PCIe rate, GB/s, one direction: NCCL's count, else the datasheet's. Error if neither is known.
Result<double> pcieRateGbPerS(const Device& device);

/// Sets one figure by its file key: "memory_bandwidth_gb_per_s", "sms", "nvlink_gb_per_s", "peak_dense_tflops.bf16", …
/// Unknown keys are refused with the nearest one; values out of range say the range. "peer_to_peer" takes 0 or 1.
/// Setting memory_gb drops memory_bytes, so that the new figure counts; setting nvlink_gb_per_s or pcie_gb_per_s scales
/// NCCL's count of the same links in proportion (or drops it if the old rate is not known).
Result<void> setDeviceFigure(Device& device, std::string_view key, double value);
/// Every key that setDeviceFigure takes.
std::vector<std::string> deviceFigureKeys();

/// docs/reference/cluster.schema.json, "device". Only "name" is required; figures may be null.
Result<Device> deviceFromJson(const JsonCursor& json);
/// Complete: deviceFromJson(toJson(d)) == d.
Json toJson(const Device& device);

}  // namespace ringside
