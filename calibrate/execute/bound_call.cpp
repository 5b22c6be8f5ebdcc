#include "calibrate/execute/bound_call.h"

#include <cmath>

namespace ringside {

void fillStepScalars(BoundCall& bound, std::int64_t step) {
    const double t = static_cast<double>(step + 1);
    std::array<double, 6>& s = bound.call.scalars;
    switch (bound.stepScalar) {
        case StepScalar::None: break;
        case StepScalar::AdamDenominator: s[0] = 1 / std::sqrt(1 - std::pow(s[1], t)); break;
        case StepScalar::AdamStep: s[0] = -s[1] / (1 - std::pow(s[2], t)); break;
        case StepScalar::StepNumber: bound.call.dims[1] = step + 1; break;
    }
}

}  // namespace ringside
