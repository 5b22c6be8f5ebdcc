// DDP with gradients that are one step old: the all-reduce of the step before has all of this step's forward and backward to
// hide behind, and its result is applied at the end. Twice the buckets; in step 1 there is nothing to apply yet.
#pragma once

#include "sim/strategy/step_writer.h"

namespace ringside {

Result<void> writeAsyncGradients(StepWriter& step);

}  // namespace ringside
