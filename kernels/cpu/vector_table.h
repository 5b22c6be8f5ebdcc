// The table of loops, for the instruction set that the including file is compiled for.
#pragma once

#include "kernels/cpu/vector_activations.h"
#include "kernels/cpu/vector_elementwise.h"
#include "kernels/cpu/vector_loops.h"
#include "kernels/cpu/vector_norms.h"
#include "kernels/cpu/vector_pooling.h"
#include "kernels/cpu/vector_rows.h"

namespace ringside {
namespace {

constexpr VectorLoops makeVectorLoops(const char* instructions) {
    return {
        .instructions = instructions,
        .add = addLoop,
        .multiply = multiplyLoop,
        .axpy = axpyLoop,
        .scale = scaleLoop,
        .addScalar = addScalarLoop,
        .lerp = lerpLoop,
        .multiplyAccumulate = multiplyAccumulateLoop,
        .divideAccumulate = divideAccumulateLoop,
        .squareRoot = squareRootLoop,
        .adam = adamLoop,
        .sgd = sgdLoop,
        .sgdMomentum = sgdMomentumLoop,
        .dropout = dropoutLoop,
        .dropoutGradient = dropoutGradientLoop,
        .fromBf16 = fromBf16Loop,
        .toBf16 = toBf16Loop,
        .sumOfSquares = sumOfSquaresLoop,
        .squaredError = squaredErrorLoop,
        .sum = sumLoop,
        .activation = {reluLoop, geluLoop, geluTanhLoop, siluLoop, tanhLoop},
        .activationGradient = {reluGradientLoop, geluGradientLoop, geluTanhGradientLoop, siluGradientLoop, tanhGradientLoop},
        .softmax = softmaxLoop,
        .softmaxGradient = softmaxGradientLoop,
        .logSoftmax = logSoftmaxLoop,
        .logSoftmaxGradient = logSoftmaxGradientLoop,
        .attentionRow = attentionRowLoop,
        .attentionRowGradient = attentionRowGradientLoop,
        .dot = dotLoop,
        .layerNorm = layerNormLoop,
        .layerNormInputGradient = layerNormInputGradientLoop,
        .rmsNorm = rmsNormLoop,
        .rmsNormInputGradient = rmsNormInputGradientLoop,
        .columnSum = columnSumLoop,
        .layerNormWeightGradient = layerNormWeightGradientLoop,
        .rmsNormWeightGradient = rmsNormWeightGradientLoop,
        .squaredDistance = squaredDistanceLoop,
        .normalize = normalizeLoop,
        .centeredDot = centeredDotLoop,
        .batchNormGradient = batchNormGradientLoop,
        .maxPoolRow = maxPoolRowLoop,
        .rotate = rotateLoop,
    };
}

}  // namespace
}  // namespace ringside
