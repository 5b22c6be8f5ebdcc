// The hook by which test suites get a CUDA device: one, or the reason why there is none.
#pragma once

#include <cstdlib>
#include <memory>

#include "kernels/device.h"

namespace ringside {

/// Device 0 by the module of this build, or by the one that RINGSIDE_CUDA_MODULE names.
inline Result<std::unique_ptr<ComputeDevice>> makeCudaDeviceForTests() {
#ifdef RINGSIDE_CUDA_MODULE_FILE
    if (std::getenv("RINGSIDE_CUDA_MODULE") == nullptr) return makeCudaDevice(0, RINGSIDE_CUDA_MODULE_FILE);
#endif
    return makeCudaDevice(0);
}

}  // namespace ringside
