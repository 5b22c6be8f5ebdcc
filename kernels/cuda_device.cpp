#include "kernels/device.h"

namespace ringside {

Result<std::unique_ptr<ComputeDevice>> makeCudaDevice(int, const std::string&) {
    return failure(ErrorCode::MissingCapability, "cuda", "this build has no CUDA module");
}

}  // namespace ringside
