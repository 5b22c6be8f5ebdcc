#include "sim/strategy/greedy_partition.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace ringside {

std::vector<OwnedTensors> greedyPartition(std::span<const std::int64_t> sizes, std::int64_t ranks) {
    std::vector<std::uint32_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return sizes[a] > sizes[b]; });
    // A rank without any tensor is lighter than all others, so no more ranks than tensors ever own one.
    const auto owners = std::min(static_cast<std::size_t>(ranks), sizes.size());
    std::vector<OwnedTensors> owned(owners);
    using Load = std::pair<std::int64_t, std::size_t>;  // elements, rank: the lowest rank among equals
    std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
    for (std::size_t r = 0; r < owners; ++r) lightest.emplace(0, r);
    for (const std::uint32_t t : order) {
        const std::size_t rank = lightest.top().second;
        lightest.pop();
        owned[rank].tensors.push_back(t);
        owned[rank].elements += sizes[t];
        lightest.emplace(owned[rank].elements, rank);
    }
    return owned;
}

}  // namespace ringside
