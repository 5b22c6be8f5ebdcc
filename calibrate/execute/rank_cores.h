// Which cores a rank stays on: ranks of a machine must not wander over each other's.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace ringside {

/// Those that the calling thread may run on, rising: the machine's, or what a launcher or a container leaves of them.
std::vector<int> allowedCores();

/// The first of `threads` neighbouring cores for the `place`-th of `ranks` ranks among the allowed ones. Nothing where these are too few
/// for all ranks (then they share them, or a launcher has given each rank its own), or where the rank's are no neighbours.
/// REQUIRES: allowed rises, 0 ≤ place, threads ≥ 1.
std::optional<int> firstCoreOf(std::span<const int> allowed, int place, int ranks, int threads);

/// Keeps the calling thread, and all that it starts from here on, on `threads` cores from `first`. False where the host forbids it.
bool stayOnCores(int first, int threads);

}  // namespace ringside
