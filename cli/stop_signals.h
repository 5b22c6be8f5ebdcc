// StopSignals: Ctrl-C and a polite kill as a question that a long command asks, instead of a sudden end.
#pragma once

#include <csignal>

namespace ringside {

/// While it lives, SIGINT and SIGTERM wait. Make it before the first thread, which inherits that. A signal that came is
/// taken back at the end, so that the program ends by its own exit code.
class StopSignals {
public:
    StopSignals();
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// Whether one has come. Any thread may ask; costs a system call.
    bool came() const;

private:
    sigset_t signals_, before_;
};

constexpr int kInterrupted = 130;  ///< the exit code of a command that was asked to stop, as of a shell's Ctrl-C

}  // namespace ringside
