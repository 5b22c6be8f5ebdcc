// Communicators over NCCL, by way of the CUDA module: no CUDA or NCCL header here, and nothing to link.
//
// A group's first rank makes the unique id and puts it in a store that the caller brings; the others fetch it. Operations are only
// enqueued, so what goes wrong is found out while the host waits: CudaDevice asks each communicator, which aborts NCCL when an
// error came in the background or when nothing has finished for the time-out, so that the streams end and the wait returns.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "calibrate/comm/communicator.h"
#include "kernels/cuda_device.h"

namespace ringside {

/// Bytes by name, the same for all ranks (a TCP or file store). `get` does not wait: nothing if nobody has set it yet.
struct ByteStore {
    std::function<Result<void>(const std::string& key, const std::string& bytes)> set;
    std::function<Result<std::optional<std::string>>(const std::string& key)> get;
};

struct NcclWorldOptions {
    int rank = 0, size = 1;
    CudaDevice* device = nullptr;  ///< outlives the world and its communicators
    ByteStore store;
    std::chrono::milliseconds timeout = std::chrono::minutes(10);
};
/// REQUIRES: 0 ≤ rank < size, a device and both functions of the store.
Result<std::unique_ptr<CommWorld>> makeNcclWorld(const NcclWorldOptions& options);

}  // namespace ringside
