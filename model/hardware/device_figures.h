// The figures of a device as one table: file key, words for errors, field, range. Reading, writing, --set and the errors
// about missing figures all walk it, so that a new figure is one line.
#pragma once

#include <array>
#include <string_view>

#include "model/hardware/device.h"

namespace ringside {

struct DeviceNumber {
    std::string_view key, words;
    std::optional<double> Device::*field;
    double min, max;
};

struct DeviceCount {
    std::string_view key, words;
    std::optional<std::int64_t> Device::*field;
    std::int64_t min, max;
};

inline constexpr std::array kDeviceNumbers = {
    DeviceNumber{"compute_capability", "compute capability", &Device::computeCapability, 1, 99},
    DeviceNumber{"memory_gb", "memory size", &Device::memoryGb, 1e-3, 1e6},
    DeviceNumber{"memory_bandwidth_gb_per_s", "memory bandwidth", &Device::memoryBandwidthGbPerS, 1e-3, 1e7},
    DeviceNumber{"nvlink_gb_per_s", "NVLink rate", &Device::nvlinkGbPerS, 1e-3, 1e6},
    DeviceNumber{"nvlink_nccl_gb_per_s", "NVLink rate that NCCL counts", &Device::nvlinkNcclGbPerS, 1e-3, 1e6},
    DeviceNumber{"pcie_gb_per_s", "PCIe rate", &Device::pcieGbPerS, 1e-3, 1e5},
    DeviceNumber{"pcie_nccl_gb_per_s", "PCIe rate that NCCL counts", &Device::pcieNcclGbPerS, 1e-3, 1e5},
    DeviceNumber{"loopback_gb_per_s", "rate between processes of one host", &Device::loopbackGbPerS, 1e-3, 1e5},
    DeviceNumber{"tdp_w", "power draw", &Device::tdpW, 0, 1e5},
    DeviceNumber{"power_limit_w", "power limit", &Device::powerLimitW, 1, 1e5},
    DeviceNumber{"measured_best_bf16_tflops", "measured best bf16 matmul", &Device::measuredBestBf16Tflops, 1e-6, 1e6},
};

inline constexpr std::array kDeviceCounts = {
    DeviceCount{"sms", "number of multiprocessors", &Device::sms, 1, 100000},
    DeviceCount{"memory_bytes", "memory size that a process sees", &Device::memoryBytes, 1, Bytes{1} << 50},
    DeviceCount{"nvlinks", "number of NVLinks", &Device::nvlinks, 0, 1024},
    DeviceCount{"pcie_gen", "PCIe generation", &Device::pcieGen, 1, 9},
    DeviceCount{"pcie_lanes", "number of PCIe lanes", &Device::pcieLanes, 1, 32},
};

inline constexpr std::array kPeakTypes = {DType::Fp64, DType::Fp32, DType::Tf32, DType::Fp16, DType::Bf16, DType::Fp8, DType::Int8};
inline constexpr std::array<std::string_view, 3> kOtherPeaks = {"fp64_tensor", "fp6", "fp4"};
inline constexpr double kMinPeakTflops = 1e-6, kMaxPeakTflops = 1e6;

}  // namespace ringside
