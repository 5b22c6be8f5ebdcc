// Progress: how far a long command is, on standard error, out of the way of its answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace ringside {

/// On a terminal a bar that is redrawn a few times a second and wiped at the end; elsewhere a plain line every ten seconds,
/// so that a log stays readable and a short command says nothing.
class Progress {
public:
    /// `done` of `total` are there from an earlier run and do not count for the speed.
    Progress(std::string what, std::size_t done, std::size_t total, bool quiet);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update(std::size_t done);
    /// For work of parts that differ: the share done so far, and what is being done.
    void updateShare(double share, const std::string& doing);

private:
    bool isDue();
    void say(const std::string& line);
    using Clock = std::chrono::steady_clock;
    std::string what_;
    std::size_t first_, total_;
    bool quiet_, terminal_, drawn_ = false;
    Clock::time_point began_ = Clock::now(), said_ = began_;
};

}  // namespace ringside
