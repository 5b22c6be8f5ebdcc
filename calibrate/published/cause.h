// Cause: what the predicted time of a run is made of, so that errors can be grouped by what they must come from.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/prediction.h"

namespace ringside {

enum class Cause : std::uint8_t { Matmul, Convolution, Attention, MemoryBound, Communication, Host, Optimizer, Bubble };
inline constexpr std::size_t kCauses = 8;
std::string_view nameOf(Cause cause);  ///< "matmul", "convolution", "attention", "memory-bound", "communication", "host", "optimizer", "bubble"

/// Shares of the step by cause, in the order of Cause; they sum to 1. The critical path's kernels, exposed collectives, host time and
/// optimizer; of a pipeline, what the last rank idles is its bubble.
using CauseShares = std::array<double, kCauses>;
CauseShares causesOf(const Prediction& prediction, bool pipeline);

/// The largest share.
Cause dominant(const CauseShares& shares);

}  // namespace ringside
