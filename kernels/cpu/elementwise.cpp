// Activations, additions, products, dropout: one pass over elements.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

constexpr std::int64_t kStage = 1024;  // elements of bf16 that are worked on as fp32 at a time: four arrays of it stay in the first cache

/// body(begin, count) over stretches of the elements.
template <class Body>
void overElements(KernelThread& thread, std::int64_t elements, const Body& body) {
    thread.team.parallelFor(elements, kParallelGrain, [&](const TeamShare& s) { body(s.begin, s.end - s.begin); });
}

/// y = f(inputs[0], inputs[1], y) for bf16: `body(a, b, y, count)` sees fp32.
template <class Body>
void overBf16(KernelThread& thread, const KernelCall& call, bool readsY, const Body& body) {
    const auto *a = input<std::uint16_t>(call, 0), *b = input<std::uint16_t>(call, 1);
    auto* y = output<std::uint16_t>(call, 0);
    overElements(thread, call.dims[0], [&](std::int64_t begin, std::int64_t count) {
        float aStage[kStage], bStage[kStage], yStage[kStage];
        for (std::int64_t first = begin; first < begin + count; first += kStage) {
            const std::int64_t n = std::min(kStage, begin + count - first);
            thread.loops.fromBf16(a + first, aStage, n);
            if (b != nullptr) thread.loops.fromBf16(b + first, bStage, n);
            if (readsY) thread.loops.fromBf16(y + first, yStage, n);
            body(aStage, bStage, yStage, n);
            thread.loops.toBf16(yStage, y + first, n);
        }
    });
}

Result<std::size_t> activationIndex(const KernelCall& call) {
    if (call.dims[1] < 0 || call.dims[1] > static_cast<std::int64_t>(ActivationKind::Tanh))
        return badCall(call, fmt::format("kind is {}; expected 0 (ReLU) to {} (tanh)", call.dims[1], static_cast<std::int64_t>(ActivationKind::Tanh)));
    return static_cast<std::size_t>(call.dims[1]);
}

Result<double> dropProbability(const KernelCall& call) {
    const double p = call.scalars[0];
    if (!(p >= 0.0 && p <= 1.0)) return badCall(call, fmt::format("p is {}; expected 0 to 1", p));
    return p;
}

}  // namespace

Result<void> activation(KernelThread& thread, const KernelCall& call) {
    TRY(const std::size_t kind, activationIndex(call));
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    overElements(thread, call.dims[0], [&](std::int64_t i, std::int64_t n) { thread.loops.activation[kind](x + i, y + i, n); });
    return {};
}

Result<void> activationGradient(KernelThread& thread, const KernelCall& call) {
    TRY(const std::size_t kind, activationIndex(call));
    const float *dy = input<float>(call, 0), *saved = input<float>(call, 1);
    float* dx = output<float>(call, 0);
    overElements(thread, call.dims[0], [&](std::int64_t i, std::int64_t n) { thread.loops.activationGradient[kind](dy + i, saved + i, dx + i, n); });
    return {};
}

Result<void> add(KernelThread& thread, const KernelCall& call) {
    if (call.dtype == DType::Bf16) {
        overBf16(thread, call, false, [&](const float* a, const float* b, float* y, std::int64_t n) { thread.loops.add(a, b, y, n); });
        return {};
    }
    const float *a = input<float>(call, 0), *b = input<float>(call, 1);
    float* y = output<float>(call, 0);
    overElements(thread, call.dims[0], [&](std::int64_t i, std::int64_t n) { thread.loops.add(a + i, b + i, y + i, n); });
    return {};
}

Result<void> multiply(KernelThread& thread, const KernelCall& call) {
    const float *a = input<float>(call, 0), *b = input<float>(call, 1);
    float* y = output<float>(call, 0);
    overElements(thread, call.dims[0], [&](std::int64_t i, std::int64_t n) { thread.loops.multiply(a + i, b + i, y + i, n); });
    return {};
}

Result<void> axpy(KernelThread& thread, const KernelCall& call) {
    const float alpha = scalar(call, 0);
    if (call.dtype == DType::Bf16) {
        overBf16(thread, call, true, [&](const float* x, const float*, float* y, std::int64_t n) { thread.loops.axpy(x, y, n, alpha); });
        return {};
    }
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    overElements(thread, call.dims[0], [&](std::int64_t i, std::int64_t n) { thread.loops.axpy(x + i, y + i, n, alpha); });
    return {};
}

Result<void> scale(KernelThread& thread, const KernelCall& call) {
    const float alpha = scalar(call, 0);
    if (call.dtype == DType::Bf16) {
        overBf16(thread, call, false, [&](const float* x, const float*, float* y, std::int64_t n) { thread.loops.scale(x, y, n, alpha); });
        return {};
    }
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    overElements(thread, call.dims[0], [&](std::int64_t i, std::int64_t n) { thread.loops.scale(x + i, y + i, n, alpha); });
    return {};
}

Result<void> dropout(KernelThread& thread, const KernelCall& call) {
    TRY(const double p, dropProbability(call));
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    auto* mask = output<std::uint8_t>(call, 1);
    if (p >= 1.0) {
        std::fill(y, y + call.dims[0], 0.0F);
        std::fill(mask, mask + call.dims[0], std::uint8_t{0});
        return {};
    }
    const auto threshold = static_cast<std::uint32_t>(p * 4294967296.0);
    const auto seed = static_cast<std::uint64_t>(call.dims[1]);
    const auto factor = static_cast<float>(1.0 / (1.0 - p));
    overElements(thread, call.dims[0], [&](std::int64_t i, std::int64_t n) { thread.loops.dropout(x + i, y + i, mask + i, n, i, seed, threshold, factor); });
    return {};
}

Result<void> dropoutGradient(KernelThread& thread, const KernelCall& call) {
    TRY(const double p, dropProbability(call));
    const float* dy = input<float>(call, 0);
    const auto* mask = input<std::uint8_t>(call, 1);
    float* dx = output<float>(call, 0);
    const auto factor = p < 1.0 ? static_cast<float>(1.0 / (1.0 - p)) : 0.0F;
    overElements(thread, call.dims[0], [&](std::int64_t i, std::int64_t n) { thread.loops.dropoutGradient(dy + i, mask + i, dx + i, n, factor); });
    return {};
}

}  // namespace ringside::cpu
