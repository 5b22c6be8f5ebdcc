// onThreads: runs parallel work on a given number of threads.
#pragma once

#include <functional>

namespace ringside {

/// Runs `work` in a oneTBB arena of `threads` threads (0: all cores this process may use); returns when it has. More threads
/// than cores are allowed, which oneTBB would otherwise cut down.
void onThreads(int threads, const std::function<void()>& work);

}  // namespace ringside
