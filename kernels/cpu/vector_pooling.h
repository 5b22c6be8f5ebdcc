// The loop of max pooling (vector_loops.h). Static: each instruction set compiles its own.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace ringside {
namespace {

/// Column `offset` of the windows first … last; the common strides are constants, so that loads become shuffles instead of gathers.
template <int kStride>
inline void maxPoolColumn(const float* row, std::int32_t rowAt, i64 offset, i64 stride, float* y, std::int32_t* at, i64 first, i64 last) {
    const i64 step = kStride > 0 ? kStride : stride;
#pragma omp simd
    for (i64 j = first; j < last; ++j) {
        const float value = row[j * step + offset];
        const bool larger = (value > y[j]) | (value != value);  // NaN wins, as in torch
        y[j] = larger ? value : y[j];
        at[j] = larger ? rowAt + static_cast<std::int32_t>(j * step + offset) : at[j];
    }
}

void maxPoolRowLoop(const float* plane, i64 top, i64 bottom, i64 w, i64 kernel, i64 stride, i64 padding, float* y, std::int32_t* at, i64 columns) {
    for (i64 j = 0; j < columns; ++j) {
        y[j] = -__builtin_inff();
        at[j] = -1;
    }
    for (i64 a = top; a < bottom; ++a) {
        for (i64 b = 0; b < kernel; ++b) {
            // Windows whose column j·stride + offset lies inside the plane.
            const i64 offset = b - padding;
            const i64 first = offset < 0 ? (-offset + stride - 1) / stride : 0;
            const i64 past = w - offset <= 0 ? 0 : (w - offset - 1) / stride + 1;
            const i64 last = past < columns ? past : columns;
            const float* row = plane + a * w;
            const auto rowAt = static_cast<std::int32_t>(a * w);
            if (stride == 1) maxPoolColumn<1>(row, rowAt, offset, stride, y, at, first, last);
            else if (stride == 2) maxPoolColumn<2>(row, rowAt, offset, stride, y, at, first, last);
            else maxPoolColumn<0>(row, rowAt, offset, stride, y, at, first, last);
        }
    }
}

}  // namespace
}  // namespace ringside
