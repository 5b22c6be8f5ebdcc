#include "calibrate/execute/awake_cores.h"

#include <sched.h>

namespace ringside {
namespace {

/// Of the calling thread: the core and the least of all priorities. One that cannot be had would take time from real work.
bool settle(int core) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(static_cast<unsigned>(core), &own);
    const sched_param none{};
    return sched_setaffinity(0, sizeof own, &own) == 0 && sched_setscheduler(0, SCHED_IDLE, &none) == 0;
}

}  // namespace

AwakeCores::AwakeCores(int first, int count) {
    for (int core = first; core < first + count; ++core)
        threads_.emplace_back([this, core] {
            if (!settle(core)) return;
            while (!done_.load(std::memory_order_relaxed)) sched_yield();  // a system call, so that whoever woke up meanwhile gets the core
        });
}

AwakeCores::~AwakeCores() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
}

}  // namespace ringside
