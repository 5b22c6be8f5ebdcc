// Ring reduce-scatter over Gloo's point-to-point buffers: Gloo's own collectives have none.
//
// With n ranks, a chunk for each: in step s of n−1, rank r sends its partial sum of chunk r−1−s to r+1 and adds what comes from r−1 to
// its own part of chunk r−2−s; after the last step it holds the whole sum of chunk r. Each rank sends (n−1)/n of the input.
// Chunks are cut into segments, of which two are under way while a third is added. docs/models/gloo.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <gloo/context.h>

#include "calibrate/comm/element_sum.h"

namespace ringside {

struct RingReduceScatterOptions {
    std::shared_ptr<gloo::Context> context;
    const void* input = nullptr;   ///< size × elements; left as it is, except where `output` lies in it
    void* output = nullptr;        ///< elements; may be this rank's part of `input`
    std::size_t elements = 0, elementBytes = 0;
    SumFunction sum = nullptr;
    std::uint64_t slot = 0;  ///< that no other operation under way in the context uses
    std::chrono::milliseconds timeout{30'000};
    std::size_t segmentBytes = 1 << 20;  ///< at most
};

/// Throws what Gloo throws. REQUIRES: elements > 0, at least two ranks.
void ringReduceScatter(const RingReduceScatterOptions& options);

}  // namespace ringside
