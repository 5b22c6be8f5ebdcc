// DeviceMemory: the CPU device's allocator: counts what is in use, refuses what is beyond the limit, and keeps freed blocks.
//
// A step frees and allocates the same sizes again and again; giving large blocks back to the system each time would make every
// step pay for fresh pages. A freed block waits for a request of its size, as long as there is room for both.
#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "model/base/result.h"
#include "model/base/units.h"

namespace ringside {

class DeviceMemory {
public:
    explicit DeviceMemory(Bytes limit) : limit_(limit) {}
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    /// Aligned to 64 bytes. Never null, even for 0 bytes.
    Result<void*> allocate(Bytes bytes);
    /// REQUIRES: null, or from allocate() and not freed since.
    void free(void* memory);
    Bytes inUse() const;  ///< what was asked for, without rounding

private:
    void dropKept();

    const Bytes limit_;
    mutable std::mutex mutex_;
    Bytes inUse_ = 0, blocksInUse_ = 0, kept_ = 0;
    std::unordered_map<void*, Bytes> sizes_;                // what was asked for
    std::unordered_map<Bytes, std::vector<void*>> freed_;  // by the block's size
};

}  // namespace ringside
