// Optimizer steps: the elementwise passes of torch.optim, one by one, and fused.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

template <class Body>
Result<void> overElements(KernelThread& thread, const KernelCall& call, const Body& body) {
    thread.team.parallelFor(call.dims[0], kParallelGrain, [&](const TeamShare& s) { body(s.begin, s.end - s.begin); });
    return {};
}

}  // namespace

Result<void> lerp(KernelThread& thread, const KernelCall& call) {
    return overElements(thread, call, [&](std::int64_t i, std::int64_t n) { thread.loops.lerp(input<float>(call, 0) + i, output<float>(call, 0) + i, n, scalar(call, 0)); });
}

Result<void> multiplyAccumulate(KernelThread& thread, const KernelCall& call) {
    return overElements(thread, call, [&](std::int64_t i, std::int64_t n) {
        thread.loops.multiplyAccumulate(input<float>(call, 0) + i, input<float>(call, 1) + i, output<float>(call, 0) + i, n, scalar(call, 0));
    });
}

Result<void> squareRoot(KernelThread& thread, const KernelCall& call) {
    return overElements(thread, call, [&](std::int64_t i, std::int64_t n) { thread.loops.squareRoot(input<float>(call, 0) + i, output<float>(call, 0) + i, n); });
}

Result<void> addScalar(KernelThread& thread, const KernelCall& call) {
    return overElements(thread, call, [&](std::int64_t i, std::int64_t n) { thread.loops.addScalar(input<float>(call, 0) + i, output<float>(call, 0) + i, n, scalar(call, 0)); });
}

Result<void> divideAccumulate(KernelThread& thread, const KernelCall& call) {
    return overElements(thread, call, [&](std::int64_t i, std::int64_t n) {
        thread.loops.divideAccumulate(input<float>(call, 0) + i, input<float>(call, 1) + i, output<float>(call, 0) + i, n, scalar(call, 0));
    });
}

Result<void> adamFused(KernelThread& thread, const KernelCall& call) {
    const auto steps = static_cast<double>(call.dims[1]);
    const AdamStep step{.lr = scalar(call, 0),
                        .beta2 = scalar(call, 2),
                        .epsilon = scalar(call, 3),
                        .decay = scalar(call, 4),
                        .momentumRate = static_cast<float>(1.0 - call.scalars[1]),
                        .varianceRate = static_cast<float>(1.0 - call.scalars[2]),
                        .momentumCorrection = static_cast<float>(1.0 / (1.0 - std::pow(call.scalars[1], steps))),
                        .varianceCorrection = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(call.scalars[2], steps)))};
    return overElements(thread, call, [&](std::int64_t i, std::int64_t n) {
        thread.loops.adam(input<float>(call, 0) + i, output<float>(call, 0) + i, output<float>(call, 1) + i, output<float>(call, 2) + i, n, step);
    });
}

Result<void> sgdFused(KernelThread& thread, const KernelCall& call) {
    const float lr = scalar(call, 0), momentum = scalar(call, 1);
    return overElements(thread, call, [&](std::int64_t i, std::int64_t n) {
        const float* gradient = input<float>(call, 0) + i;
        float *p = output<float>(call, 0) + i, *buffer = output<float>(call, 1);
        if (buffer == nullptr) return thread.loops.sgd(gradient, p, n, lr);
        // The first step has no velocity yet: what stands in the buffer does not count.
        if (call.dims[1] == 1) std::fill(buffer + i, buffer + i + n, 0.0F);
        thread.loops.sgdMomentum(gradient, p, buffer + i, n, lr, momentum);
    });
}

}  // namespace ringside::cpu
