// Max pooling and adaptive average pooling over planes of [n·c, h, w].
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

struct MaxWindow {
    explicit MaxWindow(const KernelCall& call)
        : planes(call.dims[0] * call.dims[1]), h(call.dims[2]), w(call.dims[3]), kernel(call.dims[4]), stride(call.dims[5]), padding(call.dims[6]),
          oh((h + 2 * padding - kernel) / stride + 1), ow((w + 2 * padding - kernel) / stride + 1) {}
    std::int64_t planes, h, w, kernel, stride, padding, oh, ow;
};

Result<void> checkWindow(const KernelCall& call, const MaxWindow& p) {
    if (p.kernel > p.h + 2 * p.padding || p.kernel > p.w + 2 * p.padding)
        return badCall(call, fmt::format("kernel is {}; the padded input is {}×{}", p.kernel, p.h + 2 * p.padding, p.w + 2 * p.padding));
    if (p.h * p.w > std::numeric_limits<std::int32_t>::max()) return badCall(call, fmt::format("a plane has {}×{} elements; expected at most 2^31", p.h, p.w));
    // A window that lies in the padding alone has no maximum.
    if (2 * p.padding > p.kernel) return badCall(call, fmt::format("padding is {}; expected at most half of the kernel, {}", p.padding, p.kernel));
    return {};
}

/// Where window i of o begins and ends among `size` elements, as torch's adaptive pooling cuts them.
std::int64_t windowBegin(std::int64_t i, std::int64_t size, std::int64_t o) { return i * size / o; }
std::int64_t windowEnd(std::int64_t i, std::int64_t size, std::int64_t o) { return ((i + 1) * size + o - 1) / o; }

}  // namespace

Result<void> maxPool(KernelThread& thread, const KernelCall& call) {
    const MaxWindow p(call);
    TRY_VOID(checkWindow(call, p));
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    auto* indices = output<std::int64_t>(call, 1);
    thread.team.parallelFor(p.planes, rowGrain(p.h * p.w), [&](const TeamShare& s) {
        auto* at = thread.scratch(s.member).get<std::int32_t>(0, p.ow);
        for (std::int64_t plane = s.begin; plane < s.end; ++plane) {
            const float* in = x + plane * p.h * p.w;
            for (std::int64_t i = 0; i < p.oh; ++i) {
                const std::int64_t top = std::max<std::int64_t>(0, i * p.stride - p.padding), bottom = std::min(p.h, i * p.stride - p.padding + p.kernel);
                const std::int64_t first = (plane * p.oh + i) * p.ow;
                thread.loops.maxPoolRow(in, top, bottom, p.w, p.kernel, p.stride, p.padding, y + first, at, p.ow);
                for (std::int64_t j = 0; j < p.ow; ++j) indices[first + j] = at[j] >= 0 ? at[j] : top * p.w + std::max<std::int64_t>(0, j * p.stride - p.padding);
            }
        }
    });
    return {};
}

Result<void> maxPoolGradient(KernelThread& thread, const KernelCall& call) {
    const MaxWindow p(call);
    TRY_VOID(checkWindow(call, p));
    const float* dy = input<float>(call, 0);
    const auto* indices = input<std::int64_t>(call, 1);
    float* dx = output<float>(call, 0);
    const std::int64_t inSize = p.h * p.w, outSize = p.oh * p.ow;
    thread.team.parallelFor(p.planes, rowGrain(inSize), [&](const TeamShare& s) {
        std::fill(dx + s.begin * inSize, dx + s.end * inSize, 0.0F);
        for (std::int64_t plane = s.begin; plane < s.end; ++plane)
            for (std::int64_t i = 0; i < outSize; ++i) dx[plane * inSize + indices[plane * outSize + i]] += dy[plane * outSize + i];
    });
    return {};
}

Result<void> averagePool(KernelThread& thread, const KernelCall& call) {
    const std::int64_t planes = call.dims[0] * call.dims[1], h = call.dims[2], w = call.dims[3], o = call.dims[4];
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    thread.team.parallelFor(planes, rowGrain(h * w), [&](const TeamShare& s) {
        for (std::int64_t plane = s.begin; plane < s.end; ++plane)
            for (std::int64_t i = 0; i < o; ++i)
                for (std::int64_t j = 0; j < o; ++j) {
                    const std::int64_t top = windowBegin(i, h, o), bottom = windowEnd(i, h, o), left = windowBegin(j, w, o), right = windowEnd(j, w, o);
                    double sum = 0;
                    for (std::int64_t a = top; a < bottom; ++a) sum += thread.loops.sum(x + (plane * h + a) * w + left, right - left);
                    y[(plane * o + i) * o + j] = static_cast<float>(sum / static_cast<double>((bottom - top) * (right - left)));
                }
    });
    return {};
}

Result<void> averagePoolGradient(KernelThread& thread, const KernelCall& call) {
    const std::int64_t planes = call.dims[0] * call.dims[1], h = call.dims[2], w = call.dims[3], o = call.dims[4];
    const float* dy = input<float>(call, 0);
    float* dx = output<float>(call, 0);
    thread.team.parallelFor(planes, rowGrain(h * w), [&](const TeamShare& s) {
        std::fill(dx + s.begin * h * w, dx + s.end * h * w, 0.0F);
        for (std::int64_t plane = s.begin; plane < s.end; ++plane)
            for (std::int64_t i = 0; i < o; ++i)
                for (std::int64_t j = 0; j < o; ++j) {
                    const std::int64_t top = windowBegin(i, h, o), bottom = windowEnd(i, h, o), left = windowBegin(j, w, o), right = windowEnd(j, w, o);
                    const float part = dy[(plane * o + i) * o + j] / static_cast<float>((bottom - top) * (right - left));
                    for (std::int64_t a = top; a < bottom; ++a) {
                        float* row = dx + (plane * h + a) * w + left;
                        thread.loops.addScalar(row, row, right - left, part);
                    }
                }
    });
    return {};
}

}  // namespace ringside::cpu
