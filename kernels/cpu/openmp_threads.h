// How many threads oneDNN uses for calls from this thread, where it is built with OpenMP (Debian's is).
#pragma once

namespace ringside {

/// Nothing happens where no OpenMP runtime is loaded.
void setOpenMpThreads(int threads);

/// Calls from this thread use one thread while it lives; then `threads` again.
class OneOpenMpThread {
public:
    explicit OneOpenMpThread(int threads) : threads_(threads) {
        if (threads_ > 1) setOpenMpThreads(1);
    }
    ~OneOpenMpThread() {
        if (threads_ > 1) setOpenMpThreads(threads_);
    }
    OneOpenMpThread(const OneOpenMpThread&) = delete;
    OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

private:
    const int threads_;
};

}  // namespace ringside
