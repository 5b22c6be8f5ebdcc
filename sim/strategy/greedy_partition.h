// Greedy partition: whole tensors are dealt out to ranks, the largest first, each to the rank that has least so far
// (torch/distributed/optim/zero_redundancy_optimizer.py, _partition_parameters).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringside {

struct OwnedTensors {
    std::vector<std::uint32_t> tensors;  ///< indices into the sizes, in the order they were dealt out
    std::int64_t elements = 0;
};

/// What each rank owns; ranks beyond the result own nothing. Tensors are never split, so one that dominates makes its owner
/// the heaviest. O(tensors · log(tensors)). REQUIRES: ranks ≥ 1.
std::vector<OwnedTensors> greedyPartition(std::span<const std::int64_t> sizes, std::int64_t ranks);

}  // namespace ringside
