// Tables of rows looked up by token, and rotary position embeddings.
#include <cstring>

#include <fmt/format.h>

#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

Result<void> checkTokens(const KernelCall& call, const std::int64_t* tokens) {
    for (std::int64_t i = 0; i < call.dims[0]; ++i)
        if (tokens[i] < 0 || tokens[i] >= call.dims[2]) return badCall(call, fmt::format("token {} is {}; the table has {} rows", i, tokens[i], call.dims[2]));
    return {};
}

}  // namespace

Result<void> embedding(KernelThread& thread, const KernelCall& call) {
    const std::int64_t features = call.dims[1];
    const auto* tokens = input<std::int64_t>(call, 0);
    const float* table = input<float>(call, 1);
    float* y = output<float>(call, 0);
    if (call.dims[0] == 0 || features == 0) return {};
    TRY_VOID(checkTokens(call, tokens));
    thread.team.parallelFor(call.dims[0], rowGrain(features), [&](const TeamShare& s) {
        for (std::int64_t i = s.begin; i < s.end; ++i) std::memcpy(y + i * features, table + tokens[i] * features, static_cast<std::size_t>(features) * sizeof(float));
    });
    return {};
}

Result<void> embeddingGradient(KernelThread& thread, const KernelCall& call) {
    const std::int64_t features = call.dims[1];
    const auto* tokens = input<std::int64_t>(call, 0);
    const float* dy = input<float>(call, 1);
    float* table = output<float>(call, 0);
    if (call.dims[0] == 0 || features == 0) return {};
    TRY_VOID(checkTokens(call, tokens));
    // Threads share columns, not tokens: two tokens may be the same row.
    thread.team.parallelFor(features, 256, [&](const TeamShare& s) {
        for (std::int64_t i = 0; i < call.dims[0]; ++i) {
            float* row = table + tokens[i] * features + s.begin;
            thread.loops.add(row, dy + i * features + s.begin, row, s.end - s.begin);
        }
    });
    return {};
}

Result<void> rotary(KernelThread& thread, const KernelCall& call) {
    const std::int64_t b = call.dims[0], length = call.dims[1], heads = call.dims[2], d = call.dims[3], xStride = call.dims[4], yStride = call.dims[5];
    if (d % 2 != 0) return badCall(call, fmt::format("d is {}; expected an even number, as halves are rotated", d));
    if (xStride < heads * d || yStride < heads * d) return badCall(call, fmt::format("strides are {} and {}; expected at least heads·d, {}", xStride, yStride, heads * d));
    if (!(call.scalars[0] > 0)) return badCall(call, fmt::format("base is {}; expected more than 0", call.scalars[0]));
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    const auto table = thread.shared.rotaryTables.get(length, d, call.scalars[0]);
    const float sign = call.dims[6] != 0 ? -1.0F : 1.0F;
    thread.team.parallelFor(b * length, rowGrain(heads * d), [&](const TeamShare& s) {
        for (std::int64_t token = s.begin; token < s.end; ++token) {
            const float* row = table->data() + token % length * d;
            for (std::int64_t h = 0; h < heads; ++h) thread.loops.rotate(x + token * xStride + h * d, y + token * yStride + h * d, d, row, row + d / 2, sign);
        }
    });
    return {};
}

}  // namespace ringside::cpu
