// How DeepSpeed's stages 1 and 2 share out parameters: one flat group in registration order, padded so that it can be cut into
// equal pieces, of which each rank owns one (deepspeed/runtime/zero/stage_1_and_2.py). Pure arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringside {

struct OwnedRun {
    std::int64_t owner = 0, elements = 0;
};

class FlatPartition {
public:
    /// `sizes`: elements of each parameter, in registration order. REQUIRES: ranks ≥ 1.
    FlatPartition(std::span<const std::int64_t> sizes, std::int64_t ranks);

    std::int64_t ranks() const { return ranks_; }
    /// Elements of the flat group: a multiple of 2 · ranks (DeepSpeed aligns to four bytes of a 16-bit type per rank).
    std::int64_t padded() const { return padded_; }
    /// Elements that one rank owns.
    std::int64_t share() const { return padded_ / ranks_; }
    /// The slices of a bucket that go to one owner each, in bucket order; neighbours of the same owner are one slice.
    std::vector<OwnedRun> ownersOf(std::span<const std::uint32_t> parameters) const;

private:
    std::int64_t ranks_, padded_;
    std::vector<std::int64_t> offsets_;  // of each parameter, and the end
};

}  // namespace ringside
