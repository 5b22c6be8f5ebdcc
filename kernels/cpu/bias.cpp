// Sums and additions by column and by channel.
#include <algorithm>

#include "kernels/cpu/bf16_staging.h"
#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

void sumColumns(KernelThread& thread, const float* x, float* y, std::int64_t rows, std::int64_t n, float beta) {
    thread.team.parallelFor(n, std::max<std::int64_t>(rowGrain(rows), 64), [&](const TeamShare& s) { thread.loops.columnSum(x, y, rows, n, s.begin, s.end, beta); });
}

void addToRows(KernelThread& thread, const float* x, const float* row, float* y, std::int64_t rows, std::int64_t n) {
    thread.team.parallelFor(rows, rowGrain(n), [&](const TeamShare& s) {
        for (std::int64_t r = s.begin; r < s.end; ++r) thread.loops.add(x + r * n, row, y + r * n, n);
    });
}

}  // namespace

Result<void> columnSum(KernelThread& thread, const KernelCall& call) {
    const std::int64_t rows = call.dims[0], n = call.dims[1];
    if (n == 0) return {};
    if (call.out[0] == nullptr) return badCall(call, "operand y is missing");
    if (call.dtype == DType::Fp32) {
        sumColumns(thread, input<float>(call, 0), output<float>(call, 0), rows, n, scalar(call, 0));
        return {};
    }
    const float* x = stagedInput(thread, 0, call.in[0], rows * n);
    float* y = thread.scratch().get<float>(1, n);
    if (scalar(call, 0) != 0.0F) stagedInput(thread, 1, call.out[0], n);
    sumColumns(thread, x, y, rows, n, scalar(call, 0));
    storeStaged(thread, y, call.out[0], n);
    return {};
}

Result<void> addBias(KernelThread& thread, const KernelCall& call) {
    const std::int64_t rows = call.dims[0], channels = call.dims[1], inner = call.dims[2];
    const float *x = input<float>(call, 0), *bias = input<float>(call, 1);
    float* y = output<float>(call, 0);
    if (inner == 1) {
        addToRows(thread, x, bias, y, rows, channels);
        return {};
    }
    thread.team.parallelFor(rows * channels, rowGrain(inner), [&](const TeamShare& s) {
        for (std::int64_t i = s.begin; i < s.end; ++i) thread.loops.addScalar(x + i * inner, y + i * inner, inner, bias[i % channels]);
    });
    return {};
}

Result<void> channelSum(KernelThread& thread, const KernelCall& call) {
    const std::int64_t rows = call.dims[0], channels = call.dims[1], inner = call.dims[2];
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    const float beta = scalar(call, 0);
    if (channels == 0) return {};
    if (y == nullptr) return badCall(call, "operand y is missing");
    if (inner == 1) {
        sumColumns(thread, x, y, rows, channels, beta);
        return {};
    }
    thread.team.parallelFor(channels, rowGrain(rows * inner), [&](const TeamShare& s) {
        for (std::int64_t c = s.begin; c < s.end; ++c) {
            double sum = 0;
            for (std::int64_t r = 0; r < rows; ++r) sum += thread.loops.sum(x + (r * channels + c) * inner, inner);
            y[c] = static_cast<float>(sum) + (beta == 0.0F ? 0.0F : beta * y[c]);
        }
    });
    return {};
}

Result<void> addRows(KernelThread& thread, const KernelCall& call) {
    addToRows(thread, input<float>(call, 0), input<float>(call, 1), output<float>(call, 0), call.dims[0], call.dims[1] * call.dims[2]);
    return {};
}

Result<void> sumOverSamples(KernelThread& thread, const KernelCall& call) {
    const std::int64_t n = call.dims[1] * call.dims[2];
    if (n == 0) return {};
    if (call.out[0] == nullptr) return badCall(call, "operand y is missing");
    sumColumns(thread, input<float>(call, 0), output<float>(call, 0), call.dims[0], n, 0.0F);
    return {};
}

}  // namespace ringside::cpu
