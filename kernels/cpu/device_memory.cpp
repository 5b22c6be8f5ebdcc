#include "kernels/cpu/device_memory.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "model/base/check.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ringside {

namespace {

constexpr Bytes kAlignment = 64;
constexpr Bytes kHugePage = 2 * kMiB;

Bytes blockSize(Bytes bytes) {
    const Bytes unit = bytes >= 2 * kHugePage ? 64 * kKiB : kAlignment;
    return std::max(kAlignment, (bytes + unit - 1) / unit * unit);
}

void* newBlock(Bytes size) {
    if (size < 2 * kHugePage) return std::aligned_alloc(static_cast<std::size_t>(kAlignment), static_cast<std::size_t>(size));
    // Large tensors ask for huge pages: fewer translation misses, less noise.
    void* memory = nullptr;
    if (posix_memalign(&memory, static_cast<std::size_t>(kHugePage), static_cast<std::size_t>(size)) != 0) return nullptr;
#if defined(__linux__)
    madvise(memory, static_cast<std::size_t>(size), MADV_HUGEPAGE);
#endif
    return memory;
}

}  // namespace

DeviceMemory::~DeviceMemory() {
    for (const auto& [memory, size] : sizes_) std::free(memory);
    dropKept();
}

void DeviceMemory::dropKept() {
    for (auto& [size, blocks] : freed_)
        for (void* block : blocks) std::free(block);
    freed_.clear();
    kept_ = 0;
}

Result<void*> DeviceMemory::allocate(Bytes bytes) {
    if (bytes < 0) return badInput("allocate", fmt::format("{} bytes were asked for", bytes));
    const std::lock_guard lock(mutex_);
    const auto tooMuch = [&] {
        return failure(ErrorCode::RuntimeFailure, "CPU memory",
                       fmt::format("{} were asked for, {} are in use and there are {}: use a smaller batch or model, or give the device more", formatBytes(bytes),
                                   formatBytes(inUse_), formatBytes(limit_)));
    };
    if (bytes > limit_ - inUse_) return tooMuch();
    const Bytes size = blockSize(bytes);
    void* memory = nullptr;
    if (const auto found = freed_.find(size); found != freed_.end() && !found->second.empty()) {
        memory = found->second.back();
        found->second.pop_back();
        kept_ -= size;
    } else {
        if (blocksInUse_ + kept_ + size > limit_) dropKept();
        memory = newBlock(size);
        if (memory == nullptr) {
            dropKept();
            memory = newBlock(size);
        }
        if (memory == nullptr) return tooMuch();
    }
    sizes_[memory] = bytes;
    inUse_ += bytes;
    blocksInUse_ += size;
    return memory;
}

void DeviceMemory::free(void* memory) {
    if (memory == nullptr) return;
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(memory);
    CHECK(found != sizes_.end());
    const Bytes size = blockSize(found->second);
    inUse_ -= found->second;
    blocksInUse_ -= size;
    sizes_.erase(found);
    freed_[size].push_back(memory);
    kept_ += size;
}

Bytes DeviceMemory::inUse() const {
    const std::lock_guard lock(mutex_);
    return inUse_;
}

}  // namespace ringside
