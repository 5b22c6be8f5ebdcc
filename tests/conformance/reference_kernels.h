// The reference's view of a call, shared by its two files: arithmetic (reference_kernels.cpp) and shapes (reference_shapes.cpp).
#pragma once

#include "tests/conformance/call.h"

namespace ringside::conformance {

struct Reference {
    Call& call;

    const Tensor& in(std::size_t i) const { return call.in.at(i); }
    Tensor& out(std::size_t i) const { return call.out.at(i); }
    bool has(std::size_t i) const { return i < call.in.size() && call.in[i].present(); }
    std::int64_t d(std::size_t i) const { return call.dims.at(i); }
    double s(std::size_t i) const { return call.scalars.at(i); }
};

/// Ops that move, look up, attend or pool. False: not one of them.
bool runShapedReference(Reference& r);

}  // namespace ringside::conformance
