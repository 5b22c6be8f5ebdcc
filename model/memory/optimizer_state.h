// Optimizer state: bytes that the optimizer keeps between steps, and what it needs for a moment during one.
//
// docs/models/optimizer.md has the table and its sources. State exists only after the first step.
#pragma once

#include <cstdint>
#include <span>

#include "model/base/units.h"
#include "model/training/training_config.h"
#include "model/workload/workload.h"

namespace ringside {

/// Bytes kept for one parameter tensor, the fp32 master copy included where precision.masterWeights. Moments have the type
/// of the parameter the optimizer updates (fp32, or bf16 for pure bf16).
Bytes optimizerStateBytes(const Optimizer& optimizer, const Precision& precision, const Shape& parameter);

/// The same for a flat piece of a parameter (a ZeRO or FSDP shard). Adafactor cannot factor a flat piece and keeps it whole.
Bytes flatOptimizerStateBytes(const Optimizer& optimizer, const Precision& precision, std::int64_t elements);

/// Peak of the temporary tensors of one step over tensors of these element counts: foreach Adam holds one list as large as
/// the parameters, the for-loop two of the largest tensor, fused and plain SGD none.
Bytes foreachTransientBytes(const Optimizer& optimizer, const Precision& precision, std::span<const std::int64_t> parameterElements);

}  // namespace ringside
