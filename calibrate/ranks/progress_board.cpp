#include "calibrate/ranks/progress_board.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace ringside {

namespace {
template <std::size_t n>
void copyCut(char (&to)[n], std::string_view text) {
    const std::size_t length = std::min(n - 1, text.size());
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
}
}  // namespace

struct ProgressBoard::Slot {
    struct Note {
        char task[128];
        std::int64_t step;
    };
    // Written in turns, the count last: the note that the count points to is always whole, even when the writer is killed.
    Note notes[2];
    std::atomic<std::uint64_t> count;
    std::atomic<bool> failed;
    std::int32_t errorCode;
    std::int64_t failedAtNs;
    char place[256], message[3072];
};

Result<ProgressBoard> ProgressBoard::create(int ranks) {
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");
    void* memory = ::mmap(nullptr, sizeof(Slot) * static_cast<std::size_t>(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return failure(ErrorCode::RuntimeFailure, "", fmt::format("no shared memory for {} ranks: {}", ranks, std::strerror(errno)));
    auto* slots = static_cast<Slot*>(memory);
    for (int rank = 0; rank < ranks; ++rank) new (&slots[rank]) Slot();
    return ProgressBoard(slots, ranks);
}

ProgressBoard::ProgressBoard(ProgressBoard&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)), ranks_(other.ranks_) {}

ProgressBoard::~ProgressBoard() {
    if (slots_ != nullptr) ::munmap(slots_, sizeof(Slot) * static_cast<std::size_t>(ranks_));
}

void ProgressBoard::report(int rank, std::string_view task, std::int64_t step) {
    Slot& slot = slots_[rank];
    const std::uint64_t next = slot.count.load(std::memory_order_relaxed) + 1;
    Slot::Note& note = slot.notes[next & 1];
    copyCut(note.task, task);
    note.step = step;
    slot.count.store(next, std::memory_order_release);
}

RankProgress ProgressBoard::read(int rank) const {
    const Slot& slot = slots_[rank];
    const std::uint64_t count = slot.count.load(std::memory_order_acquire);
    if (count == 0) return {};
    const Slot::Note note = slot.notes[count & 1];
    return {count, std::string(note.task, ::strnlen(note.task, sizeof(note.task))), note.step};
}

void ProgressBoard::reportFailure(int rank, const Error& error) {
    Slot& slot = slots_[rank];
    slot.errorCode = static_cast<std::int32_t>(error.code);
    slot.failedAtNs = std::chrono::steady_clock::now().time_since_epoch().count();
    copyCut(slot.place, error.place);
    copyCut(slot.message, error.message);
    slot.failed.store(true, std::memory_order_release);
}

bool ProgressBoard::failed(int rank) const { return slots_[rank].failed.load(std::memory_order_acquire); }

ProgressBoard::Failure ProgressBoard::failureOf(int rank) const {
    const Slot& slot = slots_[rank];
    return {{static_cast<ErrorCode>(slot.errorCode), slot.message, slot.place}, slot.failedAtNs};
}

}  // namespace ringside
