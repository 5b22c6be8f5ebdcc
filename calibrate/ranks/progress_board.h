// ProgressBoard: memory that a parent shares with its ranks, in which each says what it does. It outlives a rank that is killed, so
// the parent can tell what it did last.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/result.h"

namespace ringside {

struct RankProgress {
    std::uint64_t count = 0;  ///< how often the rank has reported
    std::string task;         ///< the last it began; cut to 127 bytes
    std::int64_t step = -1;   ///< −1: none
};

class ProgressBoard {
public:
    static Result<ProgressBoard> create(int ranks);
    ProgressBoard(ProgressBoard&& other) noexcept;
    ProgressBoard& operator=(ProgressBoard&&) = delete;
    ~ProgressBoard();

    /// By the rank itself, one thread at a time. Costs no system call.
    void report(int rank, std::string_view task, std::int64_t step);
    RankProgress read(int rank) const;

    /// Why the rank gave up, with the time since boot; for the parent to tell cause from consequence.
    void reportFailure(int rank, const Error& error);
    struct Failure {
        Error error;
        std::int64_t atNs = 0;
    };
    bool failed(int rank) const;
    Failure failureOf(int rank) const;

private:
    struct Slot;
    explicit ProgressBoard(Slot* slots, int ranks) : slots_(slots), ranks_(ranks) {}
    Slot* slots_;
    int ranks_;
};

}  // namespace ringside
