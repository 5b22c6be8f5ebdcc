// Softmax, its logarithm, and what is minimised.
#include <algorithm>

#include <fmt/format.h>

#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

template <class Body>
Result<void> overRows(KernelThread& thread, const KernelCall& call, const Body& body) {
    if (call.dims[1] > 0) thread.team.parallelFor(call.dims[0], rowGrain(call.dims[1]), [&](const TeamShare& s) { body(s.begin * call.dims[1], s.end - s.begin); });
    return {};
}

Result<void> checkLabels(const KernelCall& call, const std::int64_t* labels) {
    for (std::int64_t r = 0; r < call.dims[0]; ++r)
        if (labels[r] < 0 || labels[r] >= call.dims[1]) return badCall(call, fmt::format("label {} is {}; there are {} classes", r, labels[r], call.dims[1]));
    return {};
}

}  // namespace

Result<void> softmax(KernelThread& thread, const KernelCall& call) {
    return overRows(thread, call, [&](std::int64_t i, std::int64_t rows) { thread.loops.softmax(input<float>(call, 0) + i, output<float>(call, 0) + i, rows, call.dims[1]); });
}

Result<void> softmaxGradient(KernelThread& thread, const KernelCall& call) {
    return overRows(thread, call, [&](std::int64_t i, std::int64_t rows) {
        thread.loops.softmaxGradient(input<float>(call, 0) + i, input<float>(call, 1) + i, output<float>(call, 0) + i, rows, call.dims[1]);
    });
}

Result<void> logSoftmax(KernelThread& thread, const KernelCall& call) {
    return overRows(thread, call, [&](std::int64_t i, std::int64_t rows) { thread.loops.logSoftmax(input<float>(call, 0) + i, output<float>(call, 0) + i, rows, call.dims[1]); });
}

Result<void> logSoftmaxGradient(KernelThread& thread, const KernelCall& call) {
    return overRows(thread, call, [&](std::int64_t i, std::int64_t rows) {
        thread.loops.logSoftmaxGradient(input<float>(call, 0) + i, input<float>(call, 1) + i, output<float>(call, 0) + i, rows, call.dims[1]);
    });
}

Result<void> nllLoss(KernelThread&, const KernelCall& call) {
    const std::int64_t rows = call.dims[0], n = call.dims[1];
    const float* logp = input<float>(call, 0);
    const auto* labels = input<std::int64_t>(call, 1);
    float* loss = output<float>(call, 0);
    if (loss == nullptr) return badCall(call, "operand loss is missing");
    TRY_VOID(checkLabels(call, labels));
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) sum -= static_cast<double>(logp[r * n + labels[r]]);
    *loss = rows > 0 ? static_cast<float>(sum / static_cast<double>(rows)) : 0.0F;
    return {};
}

Result<void> nllLossGradient(KernelThread& thread, const KernelCall& call) {
    const std::int64_t rows = call.dims[0], n = call.dims[1];
    const auto* labels = input<std::int64_t>(call, 0);
    float* dlogp = output<float>(call, 0);
    TRY_VOID(checkLabels(call, labels));
    const auto value = rows > 0 ? static_cast<float>(-call.scalars[0] / static_cast<double>(rows)) : 0.0F;
    thread.team.parallelFor(rows, rowGrain(n), [&](const TeamShare& s) {
        std::fill(dlogp + s.begin * n, dlogp + s.end * n, 0.0F);
        for (std::int64_t r = s.begin; r < s.end; ++r) dlogp[r * n + labels[r]] = value;
    });
    return {};
}

Result<void> squaredError(KernelThread& thread, const KernelCall& call) {
    float* loss = output<float>(call, 0);
    if (loss == nullptr) return badCall(call, "operand loss is missing");
    *loss = static_cast<float>(thread.loops.squaredError(input<float>(call, 0), input<float>(call, 1), call.dims[0]));
    return {};
}

Result<void> sumOfSquares(KernelThread& thread, const KernelCall& call) {
    if (call.dims[0] == 0) return {};
    float* sum = output<float>(call, 0);
    *sum = static_cast<float>(static_cast<double>(*sum) + thread.loops.sumOfSquares(input<float>(call, 0), call.dims[0]));
    return {};
}

}  // namespace ringside::cpu
