#include "sim/player/memory_tracker.h"

#include <algorithm>
#include <numeric>

#include "model/memory/allocator.h"

namespace ringside {
namespace {

/// The largest buffer alive after the uses up to and including `peakTask`, persistent ones aside.
BufferId largestAlive(const RankProgram& program, TaskId peakTask) {
    std::vector<bool> live(program.buffers.size());
    BufferId largest = 0;
    Bytes most = -1;
    for (TaskId t = 0; t <= peakTask && t < program.tasks.size(); ++t)
        for (const BufferUse& use : program.usesOf(program.tasks[t])) {
            if (use.kind == UseKind::Allocate) live[use.buffer] = true;
            if (use.kind == UseKind::Free && t < peakTask) live[use.buffer] = false;
        }
    for (BufferId b = 0; b < live.size(); ++b)
        if (live[b] && program.buffers[b].bytes > most) {
            most = program.buffers[b].bytes;
            largest = b;
        }
    return largest;
}

/// The most that is reserved while tensors are cut into shards one by one.
Bytes reservedUntilSharedOut(const SetupTensors& setup, bool expandableSegments) {
    CachingAllocator allocator(expandableSegments, CachingAllocator::kUnlimited);
    std::vector<CachingAllocator::Block> whole;
    for (const Bytes bytes : setup.tensors) whole.push_back(allocator.allocate(bytes, kComputeStream));
    for (std::size_t i = 0; i < whole.size(); ++i) {
        allocator.allocate((setup.tensors[i] + setup.shards - 1) / setup.shards, kComputeStream);
        allocator.free(whole[i]);
    }
    return allocator.peakReserved();
}

}  // namespace

MemoryReport trackMemory(const RankProgram& program, const MemoryOptions& options, const std::vector<TaskTimes>* times) {
    MemoryReport report;
    report.outside = options.contextBytes + options.ncclBytes;
    report.capacity = options.capacityBytes;
    const Bytes room = options.capacityBytes > 0 ? std::max<Bytes>(0, options.capacityBytes - report.outside) : CachingAllocator::kUnlimited;
    CachingAllocator allocator(options.expandableSegments, room);
    std::vector<CachingAllocator::Block> blocks(program.buffers.size(), CachingAllocator::kNoBlock);
    std::vector<std::size_t> lifeOf(options.timeline ? program.buffers.size() : 0);

    CategoryBytes live{};
    live[static_cast<std::size_t>(MemoryCategory::Context)] = options.contextBytes;
    live[static_cast<std::size_t>(MemoryCategory::Nccl)] = options.ncclBytes;
    Bytes peak = -1, hostLive = 0;
    struct Deferred {
        Time until;
        MemoryCategory category;
        CachingAllocator::Block block;  // the buffer may be allocated anew in the meantime
        std::size_t life;
    };
    std::vector<Deferred> deferred;
    const auto giveBack = [&](MemoryCategory category, CachingAllocator::Block block, std::size_t life, TaskId t) {
        live[static_cast<std::size_t>(category)] -= allocator.sizeOf(block);
        allocator.free(block);
        if (options.timeline) report.lives[life].until = t;
    };
    bool beforeStep = true;
    const auto allocate = [&](BufferId b, TaskId t) {
        const Buffer& buffer = program.buffers[b];
        if (buffer.onHost) {
            hostLive += buffer.bytes;
            report.hostBytes = std::max(report.hostBytes, hostLive);
            return;
        }
        const auto block = report.outOfMemory ? std::nullopt : allocator.tryAllocate(buffer.bytes, buffer.stream);
        if (block) {
            blocks[b] = *block;
        } else {
            // Out of memory: remember where, and go on above the capacity to learn how much would be needed.
            if (!report.outOfMemory) {
                report.outOfMemory = true;
                report.failedTask = t;
                report.failedBuffer = b;
            }
            blocks[b] = allocator.allocate(buffer.bytes, buffer.stream);
        }
        live[static_cast<std::size_t>(buffer.category)] += allocator.sizeOf(blocks[b]);
        if (options.timeline) {
            lifeOf[b] = report.lives.size();
            report.lives.push_back({b, allocator.sizeOf(blocks[b]), beforeStep ? kNoTask : t, kNoTask});
        }
        if (allocator.allocated() > peak) {
            peak = allocator.allocated();
            report.atPeak = live;
            report.peakTask = t;
        }
    };

    std::vector<bool> declared(program.buffers.size());
    const auto declare = [&](bool parametersOnly) {
        for (BufferId b = 0; b < program.buffers.size(); ++b) {
            if (!program.buffers[b].persistent || declared[b] || (parametersOnly && program.buffers[b].category != MemoryCategory::Parameters)) continue;
            declared[b] = true;
            allocate(b, 0);
        }
    };
    const SetupTensors setup = options.setup ? program.setup : SetupTensors{};
    const Bytes reservedInSetup = setup.cacheEmptied ? reservedUntilSharedOut(setup, options.expandableSegments) : 0;
    std::vector<CachingAllocator::Block> original;
    const Bytes whole = std::accumulate(setup.tensors.begin(), setup.tensors.end(), Bytes{0});
    if (!setup.cacheEmptied && 2 * whole <= room)  // the copy is made on the device where both fit, else on the host
        for (const Bytes bytes : setup.tensors) original.push_back(allocator.allocate(bytes, kComputeStream));
    if (!original.empty()) {
        declare(true);
        for (const CachingAllocator::Block block : original) allocator.free(block);
        allocator.forgetPeakAllocated();
        peak = allocator.allocated();
    }
    declare(false);
    beforeStep = false;
    report.failedBeforeStep = report.outOfMemory;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        bool changed = false;
        for (const BufferUse& use : program.usesOf(program.tasks[t])) {
            const Buffer& buffer = program.buffers[use.buffer];
            if (use.kind == UseKind::Allocate) {
                if (!deferred.empty())
                    std::erase_if(deferred, [&](const Deferred& waiting) {
                        if (waiting.until > (*times)[t].issued) return false;
                        giveBack(waiting.category, waiting.block, waiting.life, t);
                        return true;
                    });
                allocate(use.buffer, t);
                changed = true;
            } else if (use.kind == UseKind::Free) {
                if (buffer.onHost) hostLive -= buffer.bytes;
                else if (buffer.deferredFree && times) deferred.push_back({(*times)[t].end, buffer.category, blocks[use.buffer], options.timeline ? lifeOf[use.buffer] : 0});
                else giveBack(buffer.category, blocks[use.buffer], options.timeline ? lifeOf[use.buffer] : 0, t);
                changed = true;
            }
        }
        if (options.timeline && changed) report.samples.push_back({t, live, allocator.reserved()});
    }
    report.peakAllocated = allocator.peakAllocated();
    report.peakReserved = std::max(allocator.peakReserved(), reservedInSetup);
    if (options.nameLargest) report.largestAtPeak = largestAlive(program, report.peakTask);
    return report;
}

}  // namespace ringside
