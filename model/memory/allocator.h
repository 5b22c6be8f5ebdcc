// CachingAllocator: PyTorch's CUDA caching allocator as a model: rounding, pools, segments, splitting, merging and reuse,
// so that "allocated" becomes "reserved" as it does for real (docs/models/allocator.md).
//
// It hands out addresses of a made-up address space and touches no memory. Every answer is a pure function of the calls made
// so far. An allocate/free pair costs about 0.1 µs once the object is warm (tests/bench/allocator_bench.cpp); reset() keeps it warm.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/units.h"
#include "model/memory/free_blocks.h"

namespace ringside {

class CachingAllocator {
public:
    using Block = std::uint32_t;
    /// What a request of 0 bytes gets: PyTorch takes no memory for an empty tensor.
    static constexpr Block kNoBlock = 0xffffffffU;
    static constexpr Bytes kUnlimited = Bytes{1} << 62;
    /// Larger requests count as this many bytes (256 TiB): no device comes near it, and sums of it stay exact.
    static constexpr Bytes kLargestRequest = Bytes{1} << 48;

    /// `expandableSegments`: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.
    /// `capacity`: what the device has for segments, that is, without context, NCCL buffers and other processes.
    explicit CachingAllocator(bool expandableSegments = false, Bytes capacity = kUnlimited);

    /// Always succeeds, also above the capacity. Blocks are per stream: a freed block is reused only on the stream it was
    /// allocated on. REQUIRES: bytes ≥ 0.
    Block allocate(Bytes bytes, int stream);
    /// As PyTorch does near the capacity: gives cached segments back to the driver and tries once more. Empty: out of memory.
    /// REQUIRES: bytes ≥ 0.
    std::optional<Block> tryAllocate(Bytes bytes, int stream);
    /// REQUIRES: `block` is from allocate or tryAllocate and was not freed since; kNoBlock is fine.
    void free(Block block);

    /// Gives back what torch.cuda.empty_cache() would: segments without a live block, or with expandable segments the pages
    /// without one. Returns the bytes given back.
    Bytes releaseCached();
    /// As new, but keeps its own memory. Capacity and mode stay; blocks handed out before are gone.
    void reset();
    void setCapacity(Bytes capacity) { capacity_ = capacity; }

    Bytes allocated() const { return allocated_; }          ///< live blocks: rounded to 512 B, with what was not split off
    Bytes reserved() const { return reserved_; }            ///< segments held from the driver
    Bytes peakAllocated() const { return peakAllocated_; }
    /// From now on the peak is that of what comes; what is reserved stays.
    void forgetPeakAllocated() { peakAllocated_ = allocated_; }
    Bytes peakReserved() const { return peakReserved_; }
    Bytes capacity() const { return capacity_; }
    std::int64_t segments() const { return segments_; }     ///< held now; with expandable segments one per stream and pool
    std::int64_t retries() const { return retries_; }       ///< times tryAllocate gave back the cache (num_alloc_retries)

    /// Of a live block; 0 for kNoBlock.
    Bytes sizeOf(Block block) const { return block == kNoBlock ? 0 : nodes_[block].size; }
    Bytes addressOf(Block block) const { return block == kNoBlock ? 0 : nodes_[block].address; }

private:
    enum class State : std::uint8_t { Unused, Live, Free, Unmapped };

    /// A piece of a segment; neighbours in the segment are linked.
    struct Node {
        Bytes address = 0, size = 0;
        std::uint32_t previous = kNoBlock, next = kNoBlock;
        std::uint32_t pool = 0;
        State state = State::Unused;
    };

    /// The free blocks of one stream, small or large.
    struct Pool {
        bool small = false;
        FreeBlocks free;
        std::vector<std::uint32_t> unmapped;  ///< expandable segments: by rising address
    };

    std::uint32_t poolOf(Bytes size, int stream);
    std::optional<Block> allocateWithin(Bytes size, std::uint32_t pool, Bytes limit);
    Block takeFree(Pool& pool, FreeBlocks::Position position, Bytes size);
    Block finish(std::uint32_t node, Bytes size);
    std::optional<std::uint32_t> newSegment(Bytes size, std::uint32_t pool, Bytes limit);
    std::optional<std::uint32_t> expandSegment(Bytes size, std::uint32_t pool, Bytes limit);
    std::optional<std::uint32_t> map(std::uint32_t node, Bytes size, Bytes limit);
    std::uint32_t unmappedWithRoom(Bytes size, std::uint32_t pool);
    Bytes unmap(std::uint32_t node);
    FreeBlocks::Position preferUnexpandable(const Pool& pool, FreeBlocks::Position position) const;

    std::uint32_t newNode(Bytes address, Bytes size, std::uint32_t pool, State state);
    void dropNode(std::uint32_t node);
    void insertAfter(std::uint32_t node, std::uint32_t inserted);
    void mergeWithNeighbours(std::uint32_t node);
    void absorb(std::uint32_t node, std::uint32_t neighbour);
    void setFree(std::uint32_t node);
    void setUnmapped(std::uint32_t node);
    void addReserved(Bytes bytes);

    bool expandable_;
    Bytes capacity_;
    Bytes allocated_ = 0, reserved_ = 0, peakAllocated_ = 0, peakReserved_ = 0;
    Bytes nextAddress_ = 0;
    std::int64_t segments_ = 0, retries_ = 0;
    std::vector<Node> nodes_;
    std::uint32_t unusedNodes_ = kNoBlock;  ///< linked by `next`
    std::vector<int> streams_;
    std::vector<Pool> pools_;               ///< two per stream: small, large
};

}  // namespace ringside
