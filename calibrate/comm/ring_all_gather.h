// Ring all-gather over Gloo's point-to-point buffers, in which no rank waits for what it does not need.
//
// With n ranks, rank r sends its own block to r+1, and then each block that has come from r−1. Gloo's own sends a block in two halves and
// takes turns: ranks that come a moment apart then take 1.5 times as long, or do not (docs/models/gloo.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <gloo/context.h>

namespace ringside {

struct RingAllGatherOptions {
    std::shared_ptr<gloo::Context> context;
    void* output = nullptr;      ///< size × blockBytes; this rank's own block is there already
    std::size_t blockBytes = 0;
    std::uint64_t slot = 0;      ///< that no other operation under way in the context uses
    std::chrono::milliseconds timeout{30'000};
};

/// Throws what Gloo throws. REQUIRES: blockBytes > 0, at least two ranks.
void ringAllGather(const RingAllGatherOptions& options);

}  // namespace ringside
