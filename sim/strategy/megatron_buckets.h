// Megatron's buckets: how parameters lie in the contiguous gradient buffer (Megatron-LM core/distributed/param_and_grad_buffer.py).
// A pure function of sizes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringside {

struct MegatronFilling {
    std::int64_t capElements = 0;     ///< a bucket is closed once it has this many; 0: one bucket for everything
    bool distributedOptimizer = true; ///< parameters start at multiples of 64 elements, buckets end where shards are equal
    std::int64_t shardRanks = 1;
    bool padForBusBandwidth = false;  ///< buckets end at multiples of 2^16 too
};

struct MegatronBucket {
    std::vector<std::uint32_t> parameters;  ///< indices into the sizes, in filling order
    std::vector<std::int64_t> offsets;      ///< likewise: where each begins in the bucket
    std::int64_t elements = 0;              ///< with padding
};

/// Parameters are taken in reverse registration order; a bucket is closed after the parameter that brings it to the cap.
std::vector<MegatronBucket> fillMegatronBuckets(std::span<const std::int64_t> registered, const MegatronFilling& filling);

/// Megatron's default cap: max(40 million, 1 million per data-parallel rank) elements.
std::int64_t megatronBucketElements(std::int64_t dataParallelRanks);

}  // namespace ringside
