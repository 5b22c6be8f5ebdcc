#include "calibrate/execute/tensor_store.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr Bytes kGuard = Bytes{1} << 21;  // addresses of the model start at 0; blocks never touch the end

/// The highest address that a step needs, memory with a deferred return held until its end.
Bytes arenaBytes(const RankProgram& program) {
    CachingAllocator allocator;
    std::vector<CachingAllocator::Block> blocks(program.buffers.size(), CachingAllocator::kNoBlock), deferred;
    Bytes highest = 0;
    const auto take = [&](BufferId b) {
        blocks[b] = allocator.allocate(program.buffers[b].bytes, program.buffers[b].stream);
        highest = std::max(highest, allocator.addressOf(blocks[b]) + allocator.sizeOf(blocks[b]));
    };
    for (BufferId b = 0; b < program.buffers.size(); ++b)
        if (program.buffers[b].persistent) take(b);
    for (int step = 0; step < 2; ++step) {  // the second finds the first one's cache
        for (const Task& task : program.tasks)
            for (const BufferUse& use : program.usesOf(task)) {
                if (use.kind == UseKind::Allocate) take(use.buffer);
                if (use.kind != UseKind::Free) continue;
                if (program.buffers[use.buffer].deferredFree) deferred.push_back(blocks[use.buffer]);
                else allocator.free(blocks[use.buffer]);
            }
        for (const CachingAllocator::Block block : deferred) allocator.free(block);
        deferred.clear();
    }
    return highest + kGuard;
}

}  // namespace

Result<std::unique_ptr<TensorStore>> TensorStore::create(ComputeDevice& device, const RankProgram& program, const ScratchSizes& scratch) {
    std::unique_ptr<TensorStore> store(new TensorStore(device, program));
    Bytes total = arenaBytes(program);
    std::array<Bytes, std::tuple_size_v<ScratchSizes>> offsets{};
    for (std::size_t i = 0; i < scratch.size(); ++i) {
        offsets[i] = total;
        total += (scratch[i] + 511) / 512 * 512;
    }
    TRY(void* arena, device.allocate(total));
    store->arena_ = static_cast<std::byte*>(arena);
    for (std::size_t i = 0; i < scratch.size(); ++i) store->scratch_[i] = store->arena_ + offsets[i];
    for (BufferId b = 0; b < program.buffers.size(); ++b)
        if (program.buffers[b].persistent) store->allocate(b, 0);

    TRY(const StreamIndex stream, device.createStream("set-up"));
    device.issue(stream, [&device, &program, arena = store.get()](const StreamContext& context) -> Result<void> {
        for (BufferId b = 0; b < program.buffers.size(); ++b) {
            const Buffer& buffer = program.buffers[b];
            if (!buffer.persistent || buffer.bytes == 0) continue;
            KernelCall fill;
            fill.op = KernelOp::Fill;
            fill.out[0] = arena->at(b);
            fill.dims[0] = buffer.bytes / 4;
            TRY_VOID(device.run(context, fill));
        }
        return {};
    });
    TRY_VOID(device.synchronize());
    return store;
}

TensorStore::~TensorStore() {
    if (arena_) device_.free(arena_);
}

void TensorStore::allocate(BufferId b, TaskId task) {
    const Buffer& buffer = program_.buffers[b];
    blocks_[b] = allocator_.allocate(buffer.bytes, buffer.stream);
    live_[static_cast<std::size_t>(buffer.category)] += allocator_.sizeOf(blocks_[b]);
    if (allocator_.allocated() > peak_) {
        peak_ = allocator_.allocated();
        atPeak_ = live_;
        peakTask_ = task;
    }
}

void TensorStore::apply(const BufferUse& use, TaskId task) {
    if (use.kind == UseKind::Allocate) {
        allocate(use.buffer, task);
    } else if (use.kind == UseKind::Free) {
        const Buffer& buffer = program_.buffers[use.buffer];
        // Whoever still reads it on another stream reads it to the end; only then is the place given to others.
        if (buffer.deferredFree) {
            deferred_.emplace_back(buffer.category, blocks_[use.buffer]);
        } else {
            live_[static_cast<std::size_t>(buffer.category)] -= allocator_.sizeOf(blocks_[use.buffer]);
            allocator_.free(blocks_[use.buffer]);
        }
    } else {
        return;
    }
    if (samples_.empty() || samples_.back().task != task) samples_.push_back({task, {}, 0});
    samples_.back().bytes = live_;
    samples_.back().reserved = allocator_.reserved();
}

void TensorStore::endStep() {
    for (const auto& [category, block] : deferred_) {
        live_[static_cast<std::size_t>(category)] -= allocator_.sizeOf(block);
        allocator_.free(block);
    }
    deferred_.clear();
}

void* TensorStore::at(const Operand& operand) const {
    if (operand.kind == Operand::Kind::None) return nullptr;
    if (operand.kind == Operand::Kind::Scratch) return scratch_[operand.index] + operand.offset;
    return arena_ + allocator_.addressOf(blocks_[operand.index]) + operand.offset;
}

}  // namespace ringside
