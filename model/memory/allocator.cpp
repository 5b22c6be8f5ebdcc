#include "model/memory/allocator.h"

#include <algorithm>

#include "model/base/check.h"

namespace ringside {
namespace {

// The constants of c10/cuda/CUDACachingAllocator.cpp, in its order.
constexpr Bytes kMinBlock = 512;              // every size is a multiple of it
constexpr Bytes kSmallLimit = kMiB;           // up to here a request belongs to the small pool
constexpr Bytes kSmallSegment = 2 * kMiB;     // segments, or pages, of the small pool
constexpr Bytes kLargeSegment = 20 * kMiB;    // segments for requests below 10 MiB, and pages of the large pool
constexpr Bytes kMinLargeAlloc = 10 * kMiB;   // from here a request gets a segment of its own …
constexpr Bytes kRoundLarge = 2 * kMiB;       // … rounded up to this

constexpr Bytes roundUp(Bytes value, Bytes unit) { return (value + unit - 1) / unit * unit; }

Bytes blockSize(Bytes request) {
    CHECK(request > 0);
    return roundUp(std::min(request, CachingAllocator::kLargestRequest), kMinBlock);
}

Bytes segmentSize(Bytes size) {
    if (size <= kSmallLimit) return kSmallSegment;
    if (size < kMinLargeAlloc) return kLargeSegment;
    return roundUp(size, kRoundLarge);
}

Bytes pageSize(bool small) { return small ? kSmallSegment : kLargeSegment; }

}  // namespace

CachingAllocator::CachingAllocator(bool expandableSegments, Bytes capacity) : expandable_(expandableSegments), capacity_(capacity) {}

CachingAllocator::Block CachingAllocator::allocate(Bytes bytes, int stream) {
    if (bytes == 0) return kNoBlock;
    const Bytes size = blockSize(bytes);
    const auto block = allocateWithin(size, poolOf(size, stream), kUnlimited);
    CHECK(block.has_value());
    return *block;
}

std::optional<CachingAllocator::Block> CachingAllocator::tryAllocate(Bytes bytes, int stream) {
    if (bytes == 0) return kNoBlock;
    const Bytes size = blockSize(bytes);
    const std::uint32_t pool = poolOf(size, stream);
    if (const auto block = allocateWithin(size, pool, capacity_)) return block;
    ++retries_;
    releaseCached();
    return allocateWithin(size, pool, capacity_);
}

void CachingAllocator::free(Block block) {
    if (block == kNoBlock) return;
    CHECK(block < nodes_.size() && nodes_[block].state == State::Live);
    allocated_ -= nodes_[block].size;
    setFree(block);
}

std::uint32_t CachingAllocator::poolOf(Bytes size, int stream) {
    // A rank has a handful of streams: a linear search is the fastest one.
    std::uint32_t index = 0;
    while (index < streams_.size() && streams_[index] != stream) ++index;
    if (index == streams_.size()) {
        streams_.push_back(stream);
        pools_.resize(pools_.size() + 2);
        pools_[2 * index].small = true;
    }
    return 2 * index + (size <= kSmallLimit ? 0 : 1);
}

std::optional<CachingAllocator::Block> CachingAllocator::allocateWithin(Bytes size, std::uint32_t poolIndex, Bytes limit) {
    Pool& pool = pools_[poolIndex];
    if (auto position = pool.free.bestFit(size)) {
        if (expandable_) position = preferUnexpandable(pool, *position);
        return takeFree(pool, *position, size);
    }
    const auto node = expandable_ ? expandSegment(size, poolIndex, limit) : newSegment(size, poolIndex, limit);
    if (!node) return std::nullopt;
    return finish(*node, size);
}

CachingAllocator::Block CachingAllocator::takeFree(Pool& pool, FreeBlocks::Position position, Bytes size) {
    const std::uint32_t node = pool.free.at(position).node;
    pool.free.erase(position);
    return finish(node, size);
}

/// Makes `node`, which is in no list, the live block of `size` bytes and frees the rest of it if that is worth a block.
CachingAllocator::Block CachingAllocator::finish(std::uint32_t node, Bytes size) {
    const Bytes rest = nodes_[node].size - size;
    const std::uint32_t poolIndex = nodes_[node].pool;
    const bool split = pools_[poolIndex].small || expandable_ ? rest >= kMinBlock : rest > kSmallLimit;
    if (split) {
        const std::uint32_t remainder = newNode(nodes_[node].address + size, rest, poolIndex, State::Free);
        nodes_[node].size = size;
        insertAfter(node, remainder);
        // Its next neighbour cannot be free: it would have been merged with the block when either was freed.
        pools_[poolIndex].free.insert({rest, nodes_[remainder].address, remainder});
    }
    nodes_[node].state = State::Live;
    allocated_ += nodes_[node].size;
    peakAllocated_ = std::max(peakAllocated_, allocated_);
    return node;
}

std::optional<std::uint32_t> CachingAllocator::newSegment(Bytes size, std::uint32_t pool, Bytes limit) {
    const Bytes segment = segmentSize(size);
    if (segment > limit - reserved_) return std::nullopt;
    const std::uint32_t node = newNode(nextAddress_, segment, pool, State::Free);
    nextAddress_ += segment;
    ++segments_;
    addReserved(segment);
    return node;
}

// ---- expandable segments -----------------------------------------------------------------------------------------------

/// Best fit counts the free block before unmapped space as large as it may grow, so that it is taken last.
FreeBlocks::Position CachingAllocator::preferUnexpandable(const Pool& pool, FreeBlocks::Position position) const {
    const auto growth = [&](FreeBlocks::Position p) {
        const std::uint32_t next = nodes_[pool.free.at(p).node].next;
        return next != kNoBlock && nodes_[next].state == State::Unmapped ? nodes_[next].size : 0;
    };
    if (growth(position) == 0) return position;  // all that follow are larger still
    const auto expandableSize = [&](FreeBlocks::Position p) { return pool.free.at(p).size + growth(p); };
    auto next = pool.free.after(position);
    while (next && expandableSize(*next) < expandableSize(position)) {
        position = *next;
        next = pool.free.after(position);
    }
    return position;
}

/// Maps pages until a run of free memory holds `size` bytes; the run's node is returned and is in no list.
std::optional<std::uint32_t> CachingAllocator::expandSegment(Bytes size, std::uint32_t pool, Bytes limit) {
    if (size > limit) return std::nullopt;  // before address space is taken for what can never be mapped
    std::uint32_t node = unmappedWithRoom(size, pool);
    if (nodes_[node].state == State::Unmapped) {
        const auto mapped = map(node, std::min(nodes_[node].size, size), limit);
        if (!mapped) return std::nullopt;
        node = *mapped;
    }
    while (nodes_[node].size < size) {
        const std::uint32_t next = nodes_[node].next;
        const auto mapped = map(next, std::min(nodes_[next].size, size - nodes_[node].size), limit);
        if (!mapped) return std::nullopt;
        node = *mapped;
    }
    pools_[pool].free.erase(nodes_[node].size, nodes_[node].address);
    return node;
}

/// The first run of free and unmapped nodes with room for `size`, from its free node if it begins with one.
std::uint32_t CachingAllocator::unmappedWithRoom(Bytes size, std::uint32_t pool) {
    for (const std::uint32_t unmapped : pools_[pool].unmapped) {
        const std::uint32_t before = nodes_[unmapped].previous;
        const std::uint32_t first = before != kNoBlock && nodes_[before].state == State::Free ? before : unmapped;
        Bytes room = 0;
        for (std::uint32_t i = first; i != kNoBlock && nodes_[i].state != State::Live && room < size; i = nodes_[i].next) room += nodes_[i].size;
        if (room >= size) return first;
    }
    // Address space costs nothing; PyTorch takes 9/8 of the device's memory for each segment.
    const Bytes page = pageSize(pools_[pool].small);
    const Bytes space = roundUp(std::max(size, std::min(capacity_ + capacity_ / 8, 2 * kLargestRequest)), page);
    const std::uint32_t node = newNode(roundUp(nextAddress_, page), space, pool, State::Unmapped);
    nextAddress_ = nodes_[node].address + space;
    ++segments_;
    setUnmapped(node);
    return node;
}

/// Maps the first `size` bytes of an unmapped node, in whole pages; returns the free node that now holds them.
std::optional<std::uint32_t> CachingAllocator::map(std::uint32_t node, Bytes size, Bytes limit) {
    const std::uint32_t poolIndex = nodes_[node].pool;
    const Bytes mapped = roundUp(size, pageSize(pools_[poolIndex].small));
    if (mapped > limit - reserved_) return std::nullopt;
    CHECK(nodes_[node].state == State::Unmapped && mapped <= nodes_[node].size);
    std::erase(pools_[poolIndex].unmapped, node);
    nodes_[node].state = State::Free;  // before the rest looks for unmapped neighbours
    if (mapped < nodes_[node].size) {
        const std::uint32_t rest = newNode(nodes_[node].address + mapped, nodes_[node].size - mapped, poolIndex, State::Unmapped);
        nodes_[node].size = mapped;
        insertAfter(node, rest);
        setUnmapped(rest);
    }
    addReserved(mapped);
    setFree(node);
    return node;
}

/// Unmaps the whole pages of a free node; returns their bytes.
Bytes CachingAllocator::unmap(std::uint32_t node) {
    const std::uint32_t poolIndex = nodes_[node].pool;
    const Bytes page = pageSize(pools_[poolIndex].small);
    const Bytes begin = nodes_[node].address, end = begin + nodes_[node].size;
    const Bytes firstPage = roundUp(begin, page), lastPage = end / page * page;
    if (firstPage >= lastPage) return 0;
    FreeBlocks& free = pools_[poolIndex].free;
    free.erase(nodes_[node].size, begin);
    if (firstPage > begin) {
        const std::uint32_t before = newNode(begin, firstPage - begin, poolIndex, State::Free);
        if (nodes_[node].previous != kNoBlock) insertAfter(nodes_[node].previous, before);
        nodes_[before].next = node;
        nodes_[node].previous = before;
        free.insert({firstPage - begin, begin, before});
    }
    if (lastPage < end) {
        const std::uint32_t behind = newNode(lastPage, end - lastPage, poolIndex, State::Free);
        insertAfter(node, behind);
        free.insert({end - lastPage, lastPage, behind});
    }
    nodes_[node].address = firstPage;
    nodes_[node].size = lastPage - firstPage;
    reserved_ -= lastPage - firstPage;
    setUnmapped(node);
    return lastPage - firstPage;
}

// ---- the cache as a whole ----------------------------------------------------------------------------------------------

Bytes CachingAllocator::releaseCached() {
    Bytes released = 0;
    for (Pool& pool : pools_) {
        for (const FreeBlocks::Entry& entry : pool.free.entries()) {
            if (expandable_) {
                released += unmap(entry.node);
            } else if (nodes_[entry.node].previous == kNoBlock && nodes_[entry.node].next == kNoBlock) {
                pool.free.erase(entry.size, entry.address);
                dropNode(entry.node);
                reserved_ -= entry.size;
                released += entry.size;
                --segments_;
            }
        }
    }
    return released;
}

void CachingAllocator::reset() {
    allocated_ = reserved_ = peakAllocated_ = peakReserved_ = nextAddress_ = 0;
    segments_ = retries_ = 0;
    nodes_.clear();
    unusedNodes_ = kNoBlock;
    // Pools stay in the order in which streams were first seen; no answer depends on that order.
    for (Pool& pool : pools_) {
        pool.free.clear();
        pool.unmapped.clear();
    }
}

// ---- nodes -------------------------------------------------------------------------------------------------------------

std::uint32_t CachingAllocator::newNode(Bytes address, Bytes size, std::uint32_t pool, State state) {
    std::uint32_t node = unusedNodes_;
    if (node != kNoBlock) {
        unusedNodes_ = nodes_[node].next;
    } else {
        node = static_cast<std::uint32_t>(nodes_.size());
        nodes_.emplace_back();
    }
    nodes_[node] = {address, size, kNoBlock, kNoBlock, pool, state};
    return node;
}

void CachingAllocator::dropNode(std::uint32_t node) {
    nodes_[node].state = State::Unused;
    nodes_[node].next = unusedNodes_;
    unusedNodes_ = node;
}

void CachingAllocator::insertAfter(std::uint32_t node, std::uint32_t inserted) {
    const std::uint32_t next = nodes_[node].next;
    nodes_[inserted].previous = node;
    nodes_[inserted].next = next;
    nodes_[node].next = inserted;
    if (next != kNoBlock) nodes_[next].previous = inserted;
}

/// Joins `node` with neighbours in its state, taking them out of their lists. `node` itself is in no list.
void CachingAllocator::mergeWithNeighbours(std::uint32_t node) {
    const State state = nodes_[node].state;
    const std::uint32_t previous = nodes_[node].previous, next = nodes_[node].next;
    if (previous != kNoBlock && nodes_[previous].state == state) absorb(node, previous);
    if (next != kNoBlock && nodes_[next].state == state) absorb(node, next);
}

void CachingAllocator::absorb(std::uint32_t node, std::uint32_t neighbour) {
    Node& kept = nodes_[node];
    const Node& gone = nodes_[neighbour];
    if (gone.state == State::Free) pools_[gone.pool].free.erase(gone.size, gone.address);
    else std::erase(pools_[gone.pool].unmapped, neighbour);
    if (kept.previous == neighbour) {
        kept.address = gone.address;
        kept.previous = gone.previous;
        if (kept.previous != kNoBlock) nodes_[kept.previous].next = node;
    } else {
        kept.next = gone.next;
        if (kept.next != kNoBlock) nodes_[kept.next].previous = node;
    }
    kept.size += gone.size;
    dropNode(neighbour);
}

void CachingAllocator::setFree(std::uint32_t node) {
    nodes_[node].state = State::Free;
    mergeWithNeighbours(node);
    pools_[nodes_[node].pool].free.insert({nodes_[node].size, nodes_[node].address, node});
}

void CachingAllocator::setUnmapped(std::uint32_t node) {
    nodes_[node].state = State::Unmapped;
    mergeWithNeighbours(node);
    std::vector<std::uint32_t>& unmapped = pools_[nodes_[node].pool].unmapped;
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return nodes_[a].address < nodes_[b].address; };
    unmapped.insert(std::upper_bound(unmapped.begin(), unmapped.end(), node, before), node);
}

void CachingAllocator::addReserved(Bytes bytes) {
    reserved_ += bytes;
    peakReserved_ = std::max(peakReserved_, reserved_);
}

}  // namespace ringside
