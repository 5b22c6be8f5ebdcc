// Measurements as JSON: the "kernels" and "collectives" of a profile file (docs/reference/profile.schema.json).
#pragma once

#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/cost/measurements.h"

namespace ringside {

/// Times must be above 0 and finite, sizes whole, spreads at least 0; unknown keys are refused. Errors name file and place.
Result<KernelPoints> kernelPointsFromJson(const JsonCursor& cursor);
Result<std::vector<CollectiveCurve>> collectiveCurvesFromJson(const JsonCursor& cursor);
Result<std::vector<ReferenceStep>> referenceStepsFromJson(const JsonCursor& cursor);
/// The inverses.
Json toJson(const KernelPoints& kernels);
Json toJson(const std::vector<CollectiveCurve>& curves);
Json toJson(const std::vector<ReferenceStep>& steps);

}  // namespace ringside
