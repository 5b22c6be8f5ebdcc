// Layer, RMS and batch norm, and their gradients.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

template <class Body>
void overRows(KernelThread& thread, const KernelCall& call, const Body& body) {
    thread.team.parallelFor(call.dims[0], rowGrain(call.dims[1]), [&](const TeamShare& s) { body(s.begin, s.end - s.begin); });
}

template <class Body>
void overColumns(KernelThread& thread, const KernelCall& call, const Body& body) {
    thread.team.parallelFor(call.dims[1], std::max<std::int64_t>(rowGrain(call.dims[0]), 64), [&](const TeamShare& s) { body(s.begin, s.end); });
}

}  // namespace

Result<void> layerNorm(KernelThread& thread, const KernelCall& call) {
    const std::int64_t n = call.dims[1];
    overRows(thread, call, [&](std::int64_t r, std::int64_t rows) {
        thread.loops.layerNorm(input<float>(call, 0) + r * n, input<float>(call, 1), input<float>(call, 2), output<float>(call, 0) + r * n, output<float>(call, 1) + 2 * r, rows, n,
                               scalar(call, 0));
    });
    return {};
}

Result<void> layerNormInputGradient(KernelThread& thread, const KernelCall& call) {
    const std::int64_t n = call.dims[1];
    overRows(thread, call, [&](std::int64_t r, std::int64_t rows) {
        thread.loops.layerNormInputGradient(input<float>(call, 0) + r * n, input<float>(call, 1) + r * n, input<float>(call, 2), input<float>(call, 3) + 2 * r,
                                            output<float>(call, 0) + r * n, rows, n);
    });
    return {};
}

Result<void> layerNormWeightGradient(KernelThread& thread, const KernelCall& call) {
    if (call.out[0] == nullptr) return badCall(call, "operand dweight is missing");
    overColumns(thread, call, [&](std::int64_t first, std::int64_t last) {
        thread.loops.layerNormWeightGradient(input<float>(call, 0), input<float>(call, 1), input<float>(call, 2), output<float>(call, 0), output<float>(call, 1), call.dims[0],
                                             call.dims[1], first, last, scalar(call, 0));
    });
    return {};
}

Result<void> rmsNorm(KernelThread& thread, const KernelCall& call) {
    const std::int64_t n = call.dims[1];
    overRows(thread, call, [&](std::int64_t r, std::int64_t rows) {
        thread.loops.rmsNorm(input<float>(call, 0) + r * n, input<float>(call, 1), output<float>(call, 0) + r * n, output<float>(call, 1) + r, rows, n, scalar(call, 0));
    });
    return {};
}

Result<void> rmsNormInputGradient(KernelThread& thread, const KernelCall& call) {
    const std::int64_t n = call.dims[1];
    overRows(thread, call, [&](std::int64_t r, std::int64_t rows) {
        thread.loops.rmsNormInputGradient(input<float>(call, 0) + r * n, input<float>(call, 1) + r * n, input<float>(call, 2), input<float>(call, 3) + r,
                                          output<float>(call, 0) + r * n, rows, n);
    });
    return {};
}

Result<void> rmsNormWeightGradient(KernelThread& thread, const KernelCall& call) {
    if (call.out[0] == nullptr) return badCall(call, "operand dweight is missing");
    overColumns(thread, call, [&](std::int64_t first, std::int64_t last) {
        thread.loops.rmsNormWeightGradient(input<float>(call, 0), input<float>(call, 1), input<float>(call, 2), output<float>(call, 0), call.dims[0], call.dims[1], first, last,
                                           scalar(call, 0));
    });
    return {};
}

Result<void> batchNorm(KernelThread& thread, const KernelCall& call) {
    const std::int64_t n = call.dims[0], channels = call.dims[1], inner = call.dims[2];
    if (n * inner == 0) return {};
    const float *x = input<float>(call, 0), *weight = input<float>(call, 1), *bias = input<float>(call, 2);
    float *y = output<float>(call, 0), *statistics = output<float>(call, 1), *runningMean = output<float>(call, 2), *runningVariance = output<float>(call, 3);
    const auto count = static_cast<double>(n * inner);
    const double epsilon = call.scalars[0], momentum = call.scalars[1];
    thread.team.parallelFor(channels, rowGrain(n * inner), [&](const TeamShare& s) {
        for (std::int64_t c = s.begin; c < s.end; ++c) {
            const auto at = [&](std::int64_t sample) { return (sample * channels + c) * inner; };
            double sum = 0, squares = 0;
            for (std::int64_t i = 0; i < n; ++i) sum += thread.loops.sum(x + at(i), inner);
            const auto mean = static_cast<float>(sum / count);
            for (std::int64_t i = 0; i < n; ++i) squares += thread.loops.squaredDistance(x + at(i), inner, mean);
            const auto inverse = static_cast<float>(1.0 / std::sqrt(squares / count + epsilon));
            statistics[2 * c] = mean;
            statistics[2 * c + 1] = inverse;
            for (std::int64_t i = 0; i < n; ++i) thread.loops.normalize(x + at(i), y + at(i), inner, mean, inverse * weight[c], bias[c]);
            // As torch keeps them: the running variance is the unbiased one.
            if (runningMean != nullptr) runningMean[c] = static_cast<float>((1 - momentum) * static_cast<double>(runningMean[c]) + momentum * static_cast<double>(mean));
            if (runningVariance != nullptr)
                runningVariance[c] = static_cast<float>((1 - momentum) * static_cast<double>(runningVariance[c]) + momentum * squares / std::max(count - 1, 1.0));
        }
    });
    return {};
}

Result<void> batchNormGradient(KernelThread& thread, const KernelCall& call) {
    const std::int64_t n = call.dims[0], channels = call.dims[1], inner = call.dims[2];
    if (channels == 0) return {};
    const float *dy = input<float>(call, 0), *x = input<float>(call, 1), *weight = input<float>(call, 2), *statistics = input<float>(call, 3);
    float *dx = output<float>(call, 0), *dweight = output<float>(call, 1), *dbias = output<float>(call, 2);
    if (dweight == nullptr || dbias == nullptr) return badCall(call, "operand dweight or dbias is missing");
    if (n * inner == 0) {
        std::fill(dweight, dweight + channels, 0.0F);
        std::fill(dbias, dbias + channels, 0.0F);
        return {};
    }
    const auto count = static_cast<double>(n * inner);
    thread.team.parallelFor(channels, rowGrain(n * inner), [&](const TeamShare& s) {
        for (std::int64_t c = s.begin; c < s.end; ++c) {
            const auto at = [&](std::int64_t sample) { return (sample * channels + c) * inner; };
            const float mean = statistics[2 * c], inverse = statistics[2 * c + 1];
            double sum = 0, dot = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                sum += thread.loops.sum(dy + at(i), inner);
                dot += thread.loops.centeredDot(dy + at(i), x + at(i), inner, mean);
            }
            dot *= static_cast<double>(inverse);
            dweight[c] = static_cast<float>(dot);
            dbias[c] = static_cast<float>(sum);
            const auto slope = static_cast<float>(dot / count * static_cast<double>(inverse));
            for (std::int64_t i = 0; i < n; ++i)
                thread.loops.batchNormGradient(dy + at(i), x + at(i), dx + at(i), inner, mean, weight[c] * inverse, static_cast<float>(sum / count), slope);
        }
    });
    return {};
}

}  // namespace ringside::cpu
