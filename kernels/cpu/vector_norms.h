// Loops of the norms and sums down columns (vector_loops.h). Static: each instruction set compiles its own.
#pragma once

#include "kernels/cpu/vector_rows.h"

namespace ringside {
namespace {

void layerNormLoop(const float* x, const float* weight, const float* bias, float* y, float* statistics, i64 rows, i64 n, float epsilon) {
    for (i64 r = 0; r < rows; ++r, x += n, y += n) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (i64 i = 0; i < n; ++i) sum += x[i];
        const float mean = sum / static_cast<float>(n);
        float squares = 0;
#pragma omp simd reduction(+ : squares)
        for (i64 i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
        const float inverse = 1.0F / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon);
        statistics[2 * r] = mean;
        statistics[2 * r + 1] = inverse;
        if (bias != nullptr) {
#pragma omp simd
            for (i64 i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
        } else {
#pragma omp simd
            for (i64 i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * weight[i];
        }
    }
}

void layerNormInputGradientLoop(const float* dy, const float* x, const float* weight, const float* statistics, float* dx, i64 rows, i64 n) {
    for (i64 r = 0; r < rows; ++r, dy += n, x += n, dx += n) {
        const float mean = statistics[2 * r], inverse = statistics[2 * r + 1];
        float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
        for (i64 i = 0; i < n; ++i) {
            const float g = dy[i] * weight[i];
            sum += g;
            dot += g * ((x[i] - mean) * inverse);
        }
        sum /= static_cast<float>(n);
        dot /= static_cast<float>(n);
#pragma omp simd
        for (i64 i = 0; i < n; ++i) dx[i] = inverse * (dy[i] * weight[i] - sum - (x[i] - mean) * inverse * dot);
    }
}

void rmsNormLoop(const float* x, const float* weight, float* y, float* statistics, i64 rows, i64 n, float epsilon) {
    for (i64 r = 0; r < rows; ++r, x += n, y += n) {
        const float inverse = 1.0F / __builtin_sqrtf(dotProduct(x, x, n) / static_cast<float>(n) + epsilon);
        statistics[r] = inverse;
#pragma omp simd
        for (i64 i = 0; i < n; ++i) y[i] = x[i] * inverse * weight[i];
    }
}

void rmsNormInputGradientLoop(const float* dy, const float* x, const float* weight, const float* statistics, float* dx, i64 rows, i64 n) {
    for (i64 r = 0; r < rows; ++r, dy += n, x += n, dx += n) {
        const float inverse = statistics[r];
        float dot = 0;
#pragma omp simd reduction(+ : dot)
        for (i64 i = 0; i < n; ++i) dot += dy[i] * weight[i] * x[i];
        const float slope = dot / static_cast<float>(n) * inverse * inverse;
#pragma omp simd
        for (i64 i = 0; i < n; ++i) dx[i] = inverse * (dy[i] * weight[i] - x[i] * slope);
    }
}

// Sums down columns, in tiles that stay in the first cache, and in blocks of rows, so that rounding does not grow with the rows.
constexpr i64 kColumnTile = 256;
constexpr i64 kRowBlock = 32;

/// `add(row, column, sums)` adds what one element gives to `kSums` sums; the totals go to outputs[0…kSums) (null: nowhere).
template <int kSums, class Add>
inline void sumColumns(float* const (&outputs)[kSums], i64 rows, i64 first, i64 last, float beta, Add add) {
    for (i64 tile = first; tile < last; tile += kColumnTile) {
        const i64 width = last - tile < kColumnTile ? last - tile : kColumnTile;
        float total[kSums][kColumnTile] = {};
        for (i64 block = 0; block < rows; block += kRowBlock) {
            const i64 end = block + kRowBlock < rows ? block + kRowBlock : rows;
            float part[kSums][kColumnTile] = {};
            for (i64 r = block; r < end; ++r) add(r, tile, width, part);
            for (int k = 0; k < kSums; ++k)
#pragma omp simd
                for (i64 i = 0; i < width; ++i) total[k][i] += part[k][i];
        }
        for (int k = 0; k < kSums; ++k) {
            if (outputs[k] == nullptr) continue;
            float* y = outputs[k] + tile;
            // Not 0·y: what stands there may be anything.
            for (i64 i = 0; i < width; ++i) y[i] = beta == 0.0F ? total[k][i] : total[k][i] + beta * y[i];
        }
    }
}

void columnSumLoop(const float* x, float* y, i64 rows, i64 n, i64 first, i64 last, float beta) {
    float* const outputs[1] = {y};
    sumColumns<1>(outputs, rows, first, last, beta, [x, n](i64 r, i64 tile, i64 width, float (&part)[1][kColumnTile]) {
        const float* row = x + r * n + tile;
#pragma omp simd
        for (i64 i = 0; i < width; ++i) part[0][i] += row[i];
    });
}

void layerNormWeightGradientLoop(const float* dy, const float* x, const float* statistics, float* dweight, float* dbias, i64 rows, i64 n, i64 first, i64 last, float beta) {
    float* const outputs[2] = {dweight, dbias};
    sumColumns<2>(outputs, rows, first, last, beta, [=](i64 r, i64 tile, i64 width, float (&part)[2][kColumnTile]) {
        const float mean = statistics[2 * r], inverse = statistics[2 * r + 1];
        const float *dyRow = dy + r * n + tile, *xRow = x + r * n + tile;
#pragma omp simd
        for (i64 i = 0; i < width; ++i) {
            part[0][i] += dyRow[i] * ((xRow[i] - mean) * inverse);
            part[1][i] += dyRow[i];
        }
    });
}

void rmsNormWeightGradientLoop(const float* dy, const float* x, const float* statistics, float* dweight, i64 rows, i64 n, i64 first, i64 last, float beta) {
    float* const outputs[1] = {dweight};
    sumColumns<1>(outputs, rows, first, last, beta, [=](i64 r, i64 tile, i64 width, float (&part)[1][kColumnTile]) {
        const float inverse = statistics[r];
        const float *dyRow = dy + r * n + tile, *xRow = x + r * n + tile;
#pragma omp simd
        for (i64 i = 0; i < width; ++i) part[0][i] += dyRow[i] * (xRow[i] * inverse);
    });
}

void normalizeLoop(const float* x, float* y, i64 n, float mean, float factor, float offset) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor + offset;
}

void batchNormGradientLoop(const float* dy, const float* x, float* dx, i64 n, float mean, float factor, float dyMean, float slope) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] = factor * (dy[i] - dyMean - (x[i] - mean) * slope);
}

}  // namespace
}  // namespace ringside
