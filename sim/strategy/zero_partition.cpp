#include "sim/strategy/zero_partition.h"

#include <algorithm>

namespace ringside {

FlatPartition::FlatPartition(std::span<const std::int64_t> sizes, std::int64_t ranks) : ranks_(ranks) {
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) {
        offsets_.push_back(end);
        end += size;
    }
    offsets_.push_back(end);
    const std::int64_t multiple = 2 * ranks;
    padded_ = (end + multiple - 1) / multiple * multiple;
}

std::vector<OwnedRun> FlatPartition::ownersOf(std::span<const std::uint32_t> parameters) const {
    std::vector<OwnedRun> runs;
    for (const std::uint32_t p : parameters)
        for (std::int64_t at = offsets_[p]; at < offsets_[p + 1];) {
            const std::int64_t owner = at / share(), end = std::min(offsets_[p + 1], (owner + 1) * share());
            if (!runs.empty() && runs.back().owner == owner) runs.back().elements += end - at;
            else runs.push_back({owner, end - at});
            at = end;
        }
    return runs;
}

}  // namespace ringside
