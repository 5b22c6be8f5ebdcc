// What parameter servers do with each key, as the Schedule describes it.
#pragma once

#include "sim/strategy/parameter_keys.h"

namespace ringside {

/// Adds a key to the schedule's servers: adding up pushes of `gradientBytes`, then the optimizer over the key's parameters.
/// On a host the optimizer runs fused, one pass over everything.
void addServerKey(StepWriter& step, const ParameterKey& key, Bytes gradientBytes);
/// Adds a key that is applied by adding the push to it (elastic averaging's centre).
void addServerSum(StepWriter& step, Bytes bytes);

}  // namespace ringside
