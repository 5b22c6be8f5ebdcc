// PowerSGD (torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook): a bucket's matrices travel as two thin factors,
// M ≈ P·Qᵀ. Per bucket three all-reduces, each waiting for the one before: what is not compressed, P, and (after P is made
// orthogonal) Q. What the approximation leaves out is added to the next step's gradients. docs/models/ddp.md.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/strategy/step_writer.h"

namespace ringside {

class PowerSgd {
public:
    /// `callbacks`: the stream that runs what follows each all-reduce.
    PowerSgd(std::int64_t rank, StreamId communication, StreamId callbacks) : rank_(rank), communication_(communication), callbacks_(callbacks) {}

    /// In bucket order. A matrix n × m is compressed where that at least halves it: 2·(n + m)·rank < n·m.
    void declareBucket(StepWriter& step, const std::vector<std::uint32_t>& parameters);
    /// The bucket is complete with task `ready` and is reduced over `axis`; returns the task after which its average is back in `bucket`.
    TaskId reduceBucket(StepWriter& step, std::size_t b, BufferId bucket, TaskId ready, std::uint32_t axis);

private:
    struct Factors {
        std::int64_t compressed = 0, rest = 0;  // elements
        std::int64_t p = 0, q = 0;              // elements of the factors
        BufferId pFactors = kNoBuffer, qFactors = kNoBuffer, uncompressed = kNoBuffer;
        BufferId error = kNoBuffer, copy = kNoBuffer;
    };

    std::int64_t rank_;
    StreamId communication_, callbacks_;
    std::vector<Factors> buckets_;
};

}  // namespace ringside
