#include "calibrate/execute/rank_cores.h"

#include <algorithm>

#include <sched.h>

namespace ringside {

std::vector<int> allowedCores() {
    cpu_set_t set;
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &set)) cores.push_back(core);
    return cores;
}

std::optional<int> firstCoreOf(std::span<const int> allowed, int place, int ranks, int threads) {
    const auto at = static_cast<std::size_t>(place) * static_cast<std::size_t>(threads), last = at + static_cast<std::size_t>(threads) - 1;
    if (static_cast<std::size_t>(std::max(ranks, place + 1)) * static_cast<std::size_t>(threads) > allowed.size()) return std::nullopt;
    if (allowed[last] - allowed[at] != threads - 1) return std::nullopt;
    return allowed[at];
}

bool stayOnCores(int first, int threads) {
    cpu_set_t own;
    CPU_ZERO(&own);
    for (int core = first; core < first + threads; ++core) CPU_SET(static_cast<unsigned>(core), &own);
    return sched_setaffinity(0, sizeof own, &own) == 0;
}

}  // namespace ringside
