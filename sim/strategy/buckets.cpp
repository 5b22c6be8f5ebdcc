#include "sim/strategy/buckets.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/check.h"

namespace ringside {

std::vector<GradientBucket> fillDdpBuckets(std::span<const GradientSize> gradients, std::span<const Bytes> limits) {
    CHECK(!limits.empty());
    struct Open {
        GradientBucket bucket;
        Bytes bytes = 0;
        std::size_t limit = 0;  // index into limits
    };
    std::map<std::pair<DType, int>, Open> open;
    std::vector<GradientBucket> closed;
    for (std::uint32_t g = 0; g < gradients.size(); ++g) {
        const GradientSize& gradient = gradients[g];
        if (gradient.sparse) {
            closed.push_back({g});
            continue;
        }
        Open& current = open[{gradient.dtype, gradient.group}];
        current.bucket.push_back(g);
        current.bytes += gradient.bytes();
        if (current.bytes >= limits[current.limit]) {
            closed.push_back(std::move(current.bucket));
            current.bucket.clear();
            current.bytes = 0;
            current.limit = std::min(current.limit + 1, limits.size() - 1);
        }
    }
    for (auto& [kind, rest] : open)
        if (!rest.bucket.empty()) closed.push_back(std::move(rest.bucket));
    std::stable_sort(closed.begin(), closed.end(), [](const GradientBucket& a, const GradientBucket& b) {
        return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
    });
    return closed;
}

std::vector<Bytes> ddpBucketLimits(std::optional<double> bucketMb) {
    if (bucketMb) return {static_cast<Bytes>(std::llround(*bucketMb * static_cast<double>(kMiB)))};
    return {1 * kMiB, 25 * kMiB};
}

std::vector<GradientBucket> fillPicotronBuckets(std::span<const GradientSize> gradients, Bytes limit) {
    std::vector<GradientBucket> buckets;
    Bytes bytes = 0;
    for (std::uint32_t g = 0; g < gradients.size(); ++g) {
        if (buckets.empty() || bytes + gradients[g].bytes() > limit) {
            buckets.emplace_back();
            bytes = 0;
        }
        buckets.back().push_back(g);
        bytes += gradients[g].bytes();
    }
    return buckets;
}

}  // namespace ringside
