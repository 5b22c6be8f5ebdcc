// The calls that every device must answer as the reference does: per op, several shapes, optional operands left out, beta 0 and 1.
#pragma once

#include <vector>

#include "tests/conformance/call.h"

namespace ringside::conformance {

struct Case {
    Call call;
    double tolerance = 2e-6;  ///< of expectSame
};

/// At least one for every op; dropout (whose choice is the device's own) and `Count` have none.
std::vector<Case> casesOf(KernelOp op);

// Of cases_of_layers.cpp and cases_of_elements.cpp: those that the op belongs to, else none.
std::vector<Case> layerCases(KernelOp op);
std::vector<Case> elementCases(KernelOp op);

}  // namespace ringside::conformance
