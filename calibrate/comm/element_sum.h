// Sums of elements as collectives need them. 16-bit floats are added in fp32 and rounded to nearest even after each addition, as
// NCCL does.
#pragma once

#include <cstddef>

#include "model/base/dtype.h"

namespace ringside {

/// Whether sums of this type exist (not of fp8 and bool).
bool canSum(DType dtype);

/// out[i] = a[i] + b[i]; `out` may be `a` or `b`. REQUIRES: canSum(dtype).
using SumFunction = void (*)(void* out, const void* a, const void* b, std::size_t elements);
SumFunction sumFunctionOf(DType dtype);

/// data[i] = data[i] / divisor; integers are cut towards 0. REQUIRES: canSum(dtype).
void divideBy(int divisor, void* data, std::size_t elements, DType dtype);

}  // namespace ringside
