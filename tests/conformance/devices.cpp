#include "tests/conformance/devices.h"

namespace ringside::conformance {

std::vector<DeviceFactory> deviceFactories() {
    return {
        {"Cpu", [](Bytes limit) { return makeCpuDevice({.threads = 1, .firstCore = -1, .memoryLimit = limit}); }},
        {"CpuWithThreeThreads", [](Bytes limit) { return makeCpuDevice({.threads = 3, .firstCore = -1, .memoryLimit = limit}); }},
        // Skips, saying why, where there is no module, driver or device.
        {"Cuda", [](Bytes) { return makeCudaDevice(0); }},
        {"CpuPinned", [](Bytes limit) { return makeCpuDevice({.threads = 1, .firstCore = 0, .memoryLimit = limit}); }},
    };
}

}  // namespace ringside::conformance
