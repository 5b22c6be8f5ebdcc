#include "sim/strategy/bucket_plan.h"

#include "sim/strategy/buckets.h"

namespace ringside {

std::vector<PlannedBucket> readyOrderBuckets(StepWriter& step, std::optional<double> bucketMb) {
    const std::vector<std::uint32_t> order = step.readyOrder();
    std::vector<GradientSize> sizes;
    for (const std::uint32_t p : order) sizes.push_back({step.parameters()[p].elements, step.gradientDtype(), false});
    std::vector<PlannedBucket> buckets;
    for (const GradientBucket& filled : fillDdpBuckets(sizes, ddpBucketLimits(bucketMb))) {
        PlannedBucket& bucket = buckets.emplace_back();
        for (const std::uint32_t i : filled) {
            bucket.parameters.push_back(order[i]);
            bucket.elements += sizes[i].elements;
        }
    }
    return buckets;
}

}  // namespace ringside
