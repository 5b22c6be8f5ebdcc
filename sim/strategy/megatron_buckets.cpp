#include "sim/strategy/megatron_buckets.h"

#include <algorithm>
#include <numeric>

namespace ringside {
namespace {

constexpr std::int64_t kParameterAlignment = 64, kBucketAlignment = 128, kBusBandwidthAlignment = 1 << 16;

std::int64_t padded(std::int64_t elements, std::int64_t multiple) { return (elements + multiple - 1) / multiple * multiple; }

}  // namespace

std::vector<MegatronBucket> fillMegatronBuckets(std::span<const std::int64_t> registered, const MegatronFilling& filling) {
    std::int64_t end = 1;
    if (filling.distributedOptimizer) {
        end = std::lcm(filling.shardRanks, kBucketAlignment);
        if (filling.padForBusBandwidth) end = std::lcm(end, kBusBandwidthAlignment);
    }
    const std::int64_t start = filling.distributedOptimizer ? kParameterAlignment : 1;
    std::vector<MegatronBucket> buckets;
    MegatronBucket open;
    const auto close = [&] {
        open.elements = padded(open.elements, end);
        buckets.push_back(std::move(open));
        open = {};
    };
    for (std::size_t p = registered.size(); p-- > 0;) {
        open.offsets.push_back(padded(open.elements, start));
        open.elements = open.offsets.back() + registered[p];
        open.parameters.push_back(static_cast<std::uint32_t>(p));
        if (filling.capElements > 0 && open.elements >= filling.capElements) close();
    }
    if (!open.parameters.empty()) close();
    return buckets;
}

std::int64_t megatronBucketElements(std::int64_t dataParallelRanks) { return std::max<std::int64_t>(40'000'000, 1'000'000 * dataParallelRanks); }

}  // namespace ringside
