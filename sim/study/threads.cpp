#include "sim/study/threads.h"

#include <algorithm>

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

namespace ringside {
namespace {

#if defined(__SANITIZE_THREAD__)
// The distribution's libtbb is built without the thread sanitizer, which does not see how it hands work from thread to thread
// and calls all of it a race. What we run in it is checked on plain threads instead (tests/unit/sim/study/sweep_test.cpp).
constexpr bool kOneThread = true;
#else
constexpr bool kOneThread = false;
#endif

}  // namespace

void onThreads(int threads, const std::function<void()>& work) {
    const int cores = tbb::info::default_concurrency();
    const int wanted = kOneThread ? 1 : threads > 0 ? threads : cores;
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(std::max(wanted, cores)));
    tbb::task_arena arena(wanted);
    arena.execute([&] { work(); });
}

}  // namespace ringside
