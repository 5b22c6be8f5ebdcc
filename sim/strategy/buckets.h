// Buckets: which gradients travel together. Pure functions of sizes and order; DDP and Picotron fill differently.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/base/dtype.h"
#include "model/base/units.h"

namespace ringside {

/// A gradient as the reducer sees it.
struct GradientSize {
    std::int64_t elements = 0;
    DType dtype = DType::Fp32;
    bool sparse = false;  ///< sparse gradients travel alone
    int group = 0;        ///< gradients of different groups of ranks do not mix

    Bytes bytes() const { return elements * sizeOf(dtype); }
};

/// Indices into the gradients, in filling order. All of one dtype and group.
using GradientBucket = std::vector<std::uint32_t>;

/// PyTorch's compute_bucket_assignment_by_size: gradients are taken in the given order, kept apart by dtype and group; a bucket is
/// closed AFTER the gradient that brings it to its limit, so buckets overshoot. `limits` applies bucket by bucket (per
/// dtype and group), the last one to all that follow. The result is ordered by each bucket's smallest index.
std::vector<GradientBucket> fillDdpBuckets(std::span<const GradientSize> gradients, std::span<const Bytes> limits);

/// DDP's limits: the cap as given, for every bucket; where it was left out, 25 MiB and a first bucket of 1 MiB.
std::vector<Bytes> ddpBucketLimits(std::optional<double> bucketMb);

/// Picotron: a bucket is closed BEFORE the gradient that would exceed the limit; only a single gradient can exceed it.
std::vector<GradientBucket> fillPicotronBuckets(std::span<const GradientSize> gradients, Bytes limit);

}  // namespace ringside
