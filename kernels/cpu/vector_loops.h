// VectorLoops: the inner loops of the CPU's own kernels, compiled once per instruction set and chosen at run time.
//
// Plain arithmetic over contiguous fp32 data, one thread, no checks. An output may be one of the inputs (the same elements, not
// shifted) unless a line says otherwise.
#pragma once

#include <cstdint>

namespace ringside {

struct AdamStep {
    float lr, beta2, epsilon, decay;               ///< decay: decoupled, as AdamW has it
    float momentumRate, varianceRate;              ///< 1 − beta1, 1 − beta2: not from fp32 betas, which would lose four digits
    float momentumCorrection, varianceCorrection;  ///< 1 / (1 − beta1^step), 1 / √(1 − beta2^step)
};

struct VectorLoops {
    using i64 = std::int64_t;
    const char* instructions;  ///< "AVX-512", "AVX2", "baseline"

    // Elementwise (vector_elementwise.h)
    void (*add)(const float* a, const float* b, float* y, i64 n);
    void (*multiply)(const float* a, const float* b, float* y, i64 n);
    void (*axpy)(const float* x, float* y, i64 n, float alpha);
    void (*scale)(const float* x, float* y, i64 n, float alpha);
    void (*addScalar)(const float* x, float* y, i64 n, float value);
    void (*lerp)(const float* x, float* y, i64 n, float weight);
    void (*multiplyAccumulate)(const float* a, const float* b, float* y, i64 n, float alpha);
    void (*divideAccumulate)(const float* a, const float* b, float* y, i64 n, float alpha);
    void (*squareRoot)(const float* x, float* y, i64 n);
    void (*adam)(const float* g, float* p, float* m, float* v, i64 n, const AdamStep& step);
    void (*sgd)(const float* g, float* p, i64 n, float lr);
    void (*sgdMomentum)(const float* g, float* p, float* buffer, i64 n, float lr, float momentum);
    /// Element i of the call is number first + i of the tensor; it is dropped when its hash is below `threshold`.
    void (*dropout)(const float* x, float* y, std::uint8_t* mask, i64 n, i64 first, std::uint64_t seed, std::uint32_t threshold, float scale);
    void (*dropoutGradient)(const float* dy, const std::uint8_t* mask, float* dx, i64 n, float scale);
    void (*fromBf16)(const std::uint16_t* x, float* y, i64 n);
    void (*toBf16)(const float* x, std::uint16_t* y, i64 n);
    double (*sumOfSquares)(const float* x, i64 n);
    double (*squaredError)(const float* x, const float* target, i64 n);
    double (*sum)(const float* x, i64 n);

    // Activations (vector_activations.h), in the order of ActivationKind
    void (*activation[5])(const float* x, float* y, i64 n);
    void (*activationGradient[5])(const float* dy, const float* saved, float* dx, i64 n);

    // Rows of n elements (vector_rows.h)
    void (*softmax)(const float* x, float* y, i64 rows, i64 n);
    void (*softmaxGradient)(const float* dy, const float* y, float* dx, i64 rows, i64 n);
    void (*logSoftmax)(const float* x, float* y, i64 rows, i64 n);
    void (*logSoftmaxGradient)(const float* dy, const float* y, float* dx, i64 rows, i64 n);
    /// x ← exp(scale·x − max) over the row, `keys` of them; returns the sum and sets `maximum` (of scale·x).
    float (*attentionRow)(float* x, i64 keys, float scale, float& maximum);
    /// p ← exp(scale·p − logSumExp), dp ← p·(dp − delta)·scale.
    void (*attentionRowGradient)(float* p, float* dp, i64 keys, float scale, float logSumExp, float delta);
    float (*dot)(const float* a, const float* b, i64 n);

    // Norms over rows (vector_norms.h)
    void (*layerNorm)(const float* x, const float* weight, const float* bias, float* y, float* statistics, i64 rows, i64 n, float epsilon);
    void (*layerNormInputGradient)(const float* dy, const float* x, const float* weight, const float* statistics, float* dx, i64 rows, i64 n);
    void (*rmsNorm)(const float* x, const float* weight, float* y, float* statistics, i64 rows, i64 n, float epsilon);
    void (*rmsNormInputGradient)(const float* dy, const float* x, const float* weight, const float* statistics, float* dx, i64 rows, i64 n);
    // Sums down columns [first, last) of a matrix with n of them, added to beta · what stands there. Outputs may be null.
    void (*columnSum)(const float* x, float* y, i64 rows, i64 n, i64 first, i64 last, float beta);
    void (*layerNormWeightGradient)(const float* dy, const float* x, const float* statistics, float* dweight, float* dbias, i64 rows, i64 n, i64 first, i64 last, float beta);
    void (*rmsNormWeightGradient)(const float* dy, const float* x, const float* statistics, float* dweight, i64 rows, i64 n, i64 first, i64 last, float beta);
    // One stretch of a channel (batch norm)
    double (*squaredDistance)(const float* x, i64 n, float mean);
    void (*normalize)(const float* x, float* y, i64 n, float mean, float factor, float offset);  ///< (x − mean)·factor + offset
    double (*centeredDot)(const float* dy, const float* x, i64 n, float mean);                   ///< Σ dy·(x − mean)
    void (*batchNormGradient)(const float* dy, const float* x, float* dx, i64 n, float mean, float factor, float dyMean, float slope);  ///< factor·(dy − dyMean − (x − mean)·slope)

    /// One row of windows of max pooling that takes in rows [top, bottom) of a plane w wide: largest values and where they stand in
    /// the plane (−1: nowhere, all are −∞).
    void (*maxPoolRow)(const float* plane, i64 top, i64 bottom, i64 w, i64 kernel, i64 stride, i64 padding, float* y, std::int32_t* at, i64 columns);

    /// Rotates the halves of d elements by the angles whose cosines and sines (d/2 each) are given; `sign` −1 turns back.
    void (*rotate)(const float* x, float* y, i64 d, const float* cosines, const float* sines, float sign);
};

/// The best for this processor.
const VectorLoops& vectorLoops();

// One per instruction set; null where the compiler cannot build it.
const VectorLoops* vectorLoopsBaseline();
const VectorLoops* vectorLoopsAvx2();
const VectorLoops* vectorLoopsAvx512();

}  // namespace ringside
