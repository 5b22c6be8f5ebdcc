#include "calibrate/execute/tensor_store.h"

#include <algorithm>
#include <utility>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr Bytes kGuard = Bytes{1} << 21;  // addresses of the model start at 0; blocks never touch the end

/// Uses before it are of interest to beginTask.
std::size_t endOfAllocations(std::span<const BufferUse> uses) {
    std::size_t end = uses.size();
    while (end > 0 && uses[end - 1].kind != UseKind::Allocate) --end;
    return end;
}

bool freesUnused(std::span<const BufferUse> uses, std::size_t i) {
    return uses[i].kind == UseKind::Free && std::none_of(uses.begin(), uses.end(), [&](const BufferUse& use) { return use.buffer == uses[i].buffer && use.kind != UseKind::Free; });
}

template <class Allocate, class Free>
void changeBefore(std::span<const BufferUse> uses, const Allocate& allocate, const Free& free) {
    for (std::size_t i = 0, end = endOfAllocations(uses); i < end; ++i) {
        if (uses[i].kind == UseKind::Allocate) allocate(uses[i].buffer);
        else if (freesUnused(uses, i)) free(uses[i].buffer);
    }
}

template <class Free>
void changeAfter(std::span<const BufferUse> uses, const Free& free) {
    const std::size_t done = endOfAllocations(uses);
    for (std::size_t i = 0; i < uses.size(); ++i)
        if (uses[i].kind == UseKind::Free && !(i < done && freesUnused(uses, i))) free(uses[i].buffer);
}

/// Per buffer: it comes into being with a task that is not in every step.
std::vector<bool> periodicBuffers(const RankProgram& program) {
    std::vector<bool> out(program.buffers.size());
    for (const Task& task : program.tasks)
        if (task.periodic)
            for (const BufferUse& use : program.usesOf(task))
                if (use.kind == UseKind::Allocate) out[use.buffer] = true;
    return out;
}

/// The highest address that a step needs, memory with a deferred return held until its end.
Bytes arenaBytes(const RankProgram& program) {
    CachingAllocator allocator;
    std::vector<CachingAllocator::Block> blocks(program.buffers.size(), CachingAllocator::kNoBlock), deferred;
    const std::vector<bool> periodic = periodicBuffers(program);
    Bytes highest = 0;
    const auto take = [&](BufferId b) {
        if (program.buffers[b].onHost) return;
        blocks[b] = allocator.allocate(program.buffers[b].bytes, program.buffers[b].stream);
        highest = std::max(highest, allocator.addressOf(blocks[b]) + allocator.sizeOf(blocks[b]));
    };
    const auto giveBack = [&](BufferId b) {
        if (program.buffers[b].onHost) return;
        if (program.buffers[b].deferredFree) deferred.push_back(blocks[b]);
        else allocator.free(blocks[b]);
    };
    for (BufferId b = 0; b < program.buffers.size(); ++b)
        if (program.buffers[b].persistent) take(b);
    for (int step = 0; step < 4; ++step) {  // later ones find the cache of the first; every other one leaves out what is periodic
        for (const Task& task : program.tasks) {
            if (task.periodic && step % 2 == 0) {
                for (const BufferUse& use : program.usesOf(task))
                    if (use.kind == UseKind::Free && !periodic[use.buffer]) giveBack(use.buffer);
                continue;
            }
            changeBefore(program.usesOf(task), take, giveBack);
            changeAfter(program.usesOf(task), giveBack);
        }
        for (const CachingAllocator::Block block : deferred) allocator.free(block);
        deferred.clear();
    }
    return highest + kGuard;
}

}  // namespace

TensorStore::TensorStore(ComputeDevice& device, const RankProgram& program)
    : device_(device), program_(program), blocks_(program.buffers.size(), CachingAllocator::kNoBlock),
      defers_(std::any_of(program.buffers.begin(), program.buffers.end(), [](const Buffer& buffer) { return buffer.deferredFree; })) {
    if (defers_) countedBlocks_ = blocks_;
}

Result<std::unique_ptr<TensorStore>> TensorStore::create(ComputeDevice& device, const RankProgram& program, const ScratchSizes& scratch) {
    std::unique_ptr<TensorStore> store(new TensorStore(device, program));
    Bytes total = store->arenaBytes_ = arenaBytes(program);
    store->hostMemory_.resize(program.buffers.size());
    store->periodic_ = periodicBuffers(program);
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

    // Buckets that a step writes before it reads them need no zeros; some are as large as the model ten times over.
    std::vector<bool> written(program.buffers.size()), seen(program.buffers.size());
    for (const BufferUse& use : program.uses) {
        if (!seen[use.buffer]) written[use.buffer] = use.kind == UseKind::Write && program.buffers[use.buffer].category == MemoryCategory::Buckets;
        seen[use.buffer] = true;
    }
    for (const Buffer& buffer : program.buffers)  // of two that take turns, one holds what the step before wrote
        if (buffer.turn >= 0) written[static_cast<std::size_t>(buffer.turn)] = false;
    TRY(const StreamIndex stream, device.createStream("set-up"));
    device.issue(stream, [&device, &program, &written, arena = store.get()](const StreamContext& context) -> Result<void> {
        for (BufferId b = 0; b < program.buffers.size(); ++b) {
            const Buffer& buffer = program.buffers[b];
            if (!buffer.persistent || buffer.bytes == 0 || written[b]) continue;
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
    if (buffer.onHost) {
        hostMemory_[b] = std::make_unique<std::byte[]>(static_cast<std::size_t>(buffer.bytes));
        return;
    }
    blocks_[b] = allocator_.allocate(buffer.bytes, buffer.stream);
    CHECK(allocator_.addressOf(blocks_[b]) + allocator_.sizeOf(blocks_[b]) <= arenaBytes_);
    if (defers_) countedBlocks_[b] = counted_.allocate(buffer.bytes, buffer.stream);
    live_[static_cast<std::size_t>(buffer.category)] += countedBytes(b);
    if (counting().allocated() > peak_) {
        peak_ = counting().allocated();
        atPeak_ = live_;
        peakTask_ = task;
    }
}

void TensorStore::free(BufferId b) {
    const Buffer& buffer = program_.buffers[b];
    if (buffer.onHost) {
        hostMemory_[b].reset();
        return;
    }
    live_[static_cast<std::size_t>(buffer.category)] -= countedBytes(b);
    if (defers_) counted_.free(countedBlocks_[b]);
    // Whoever still reads it on another stream reads it to the end; only then is the place given to others.
    const CachingAllocator::Block block = std::exchange(blocks_[b], CachingAllocator::kNoBlock);
    if (buffer.deferredFree) deferred_.push_back(block);
    else allocator_.free(block);
}

void TensorStore::note(TaskId task) {
    if (samples_.empty() || samples_.back().task != task) samples_.push_back({task, {}, 0});
    samples_.back().bytes = live_;
    samples_.back().reserved = counting().reserved();
}

void TensorStore::beginTask(TaskId task) {
    changeBefore(program_.usesOf(program_.tasks[task]), [&](BufferId b) { allocate(b, task); note(task); }, [&](BufferId b) { free(b); note(task); });
}

void TensorStore::endTask(TaskId task) {
    changeAfter(program_.usesOf(program_.tasks[task]), [&](BufferId b) { free(b); note(task); });
}

void TensorStore::passOver(const Task& task, TaskId id) {
    for (const BufferUse& use : program_.usesOf(task))
        if (use.kind == UseKind::Free && !periodic_[use.buffer]) {
            free(use.buffer);
            note(id);
        }
}

void TensorStore::endStep() {
    for (const CachingAllocator::Block block : deferred_) allocator_.free(block);
    deferred_.clear();
    for (BufferId b = 0; b < program_.buffers.size(); ++b)
        if (program_.buffers[b].turn >= 0) std::swap(blocks_[b], blocks_[static_cast<std::size_t>(program_.buffers[b].turn)]);
}

void* TensorStore::at(const Operand& operand) const {
    if (operand.kind == Operand::Kind::None) return nullptr;
    if (operand.kind == Operand::Kind::Scratch) return scratch_[operand.index] + operand.offset;
    if (program_.buffers[operand.index].onHost) return hostMemory_[operand.index].get() + operand.offset;
    return arena_ + allocator_.addressOf(blocks_[operand.index]) + operand.offset;
}

}  // namespace ringside
