#include "cli/stop_signals.h"

#include <pthread.h>

namespace ringside {

StopSignals::StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

StopSignals::~StopSignals() {
    while (came()) {
        int taken = 0;
        if (sigwait(&signals_, &taken) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool StopSignals::came() const {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

}  // namespace ringside
