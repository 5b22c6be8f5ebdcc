// Fills, copies, casts, transposes: bytes that move, of any type.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

template <class T>
void fillWith(KernelThread& thread, const KernelCall& call, T value) {
    T* y = output<T>(call, 0);
    thread.team.parallelFor(call.dims[0], kParallelGrain, [&](const TeamShare& s) { std::fill(y + s.begin, y + s.end, value); });
}

/// Rows of bytes from one place to another; equal strides that are the row's length become one copy.
void copyRows(KernelThread& thread, const char* x, char* y, std::int64_t rows, std::int64_t rowBytes, std::int64_t xStride, std::int64_t yStride) {
    thread.team.parallelFor(rows, std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(rowBytes, 1)), [&](const TeamShare& s) {
        if (rowBytes == xStride && rowBytes == yStride) {
            std::memcpy(y + s.begin * rowBytes, x + s.begin * rowBytes, static_cast<std::size_t>((s.end - s.begin) * rowBytes));
            return;
        }
        for (std::int64_t r = s.begin; r < s.end; ++r) std::memcpy(y + r * yStride, x + r * xStride, static_cast<std::size_t>(rowBytes));
    });
}

/// In square tiles, so that neither side walks through memory with a large stride for long.
template <class T>
void transposeTiles(const T* x, T* y, std::int64_t m, std::int64_t n) {
    constexpr std::int64_t kTile = 32;
    for (std::int64_t i0 = 0; i0 < m; i0 += kTile)
        for (std::int64_t j0 = 0; j0 < n; j0 += kTile)
            for (std::int64_t j = j0; j < std::min(n, j0 + kTile); ++j)
                for (std::int64_t i = i0; i < std::min(m, i0 + kTile); ++i) y[j * m + i] = x[i * n + j];
}

template <class From, class To>
void convert(KernelThread& thread, const KernelCall& call) {
    const From* x = input<From>(call, 0);
    To* y = output<To>(call, 0);
    thread.team.parallelFor(call.dims[0], kParallelGrain, [&](const TeamShare& s) {
        for (std::int64_t i = s.begin; i < s.end; ++i) y[i] = static_cast<To>(x[i]);
    });
}

}  // namespace

Result<void> fill(KernelThread& thread, const KernelCall& call) {
    const double value = call.scalars[0];
    switch (call.dtype) {
        case DType::Fp64: fillWith(thread, call, value); return {};
        case DType::Fp32: case DType::Tf32: fillWith(thread, call, static_cast<float>(value)); return {};
        case DType::Int64: fillWith(thread, call, static_cast<std::int64_t>(value)); return {};
        case DType::Int32: fillWith(thread, call, static_cast<std::int32_t>(value)); return {};
        case DType::Int8: fillWith(thread, call, static_cast<std::int8_t>(value)); return {};
        case DType::Bool: fillWith(thread, call, static_cast<std::uint8_t>(value != 0)); return {};
        case DType::Bf16: {
            const auto single = static_cast<float>(value);
            std::uint16_t bits = 0;
            thread.loops.toBf16(&single, &bits, 1);
            fillWith(thread, call, bits);
            return {};
        }
        default: break;
    }
    return badCall(call, fmt::format("the CPU has no kernel for {}", nameOf(call.dtype)));
}

Result<void> copy(KernelThread& thread, const KernelCall& call) {
    const std::int64_t size = sizeOf(call.dtype);
    copyRows(thread, input<char>(call, 0), output<char>(call, 0), call.dims[0], size, size, size);
    return {};
}

Result<void> cast(KernelThread& thread, const KernelCall& call) {
    if (call.dims[1] < 0 || call.dims[1] > static_cast<std::int64_t>(DType::Bool)) return badCall(call, fmt::format("from is {}, which is no element type", call.dims[1]));
    const auto from = static_cast<DType>(call.dims[1]);
    if (from == call.dtype) return copy(thread, call);
    if (from == DType::Fp32 && call.dtype == DType::Bf16) {
        thread.team.parallelFor(call.dims[0], kParallelGrain, [&](const TeamShare& s) { thread.loops.toBf16(input<float>(call, 0) + s.begin, output<std::uint16_t>(call, 0) + s.begin, s.end - s.begin); });
    } else if (from == DType::Bf16 && call.dtype == DType::Fp32) {
        thread.team.parallelFor(call.dims[0], kParallelGrain, [&](const TeamShare& s) { thread.loops.fromBf16(input<std::uint16_t>(call, 0) + s.begin, output<float>(call, 0) + s.begin, s.end - s.begin); });
    } else if (from == DType::Fp32 && call.dtype == DType::Fp64) {
        convert<float, double>(thread, call);
    } else if (from == DType::Fp64 && call.dtype == DType::Fp32) {
        convert<double, float>(thread, call);
    } else {
        return badCall(call, fmt::format("the CPU has no kernel from {} to {}; expected fp32 on one side and bf16 or fp64 on the other", nameOf(from), nameOf(call.dtype)));
    }
    return {};
}

Result<void> copyStrided(KernelThread& thread, const KernelCall& call) {
    const std::int64_t rows = call.dims[0], columns = call.dims[1], size = sizeOf(call.dtype);
    if (rows > 1 && (call.dims[2] < columns || call.dims[3] < columns))
        return badCall(call, fmt::format("strides are {} and {}; expected at least the {} columns", call.dims[2], call.dims[3], columns));
    copyRows(thread, input<char>(call, 0), output<char>(call, 0), rows, columns * size, call.dims[2] * size, call.dims[3] * size);
    return {};
}

Result<void> transpose(KernelThread& thread, const KernelCall& call) {
    const std::int64_t b = call.dims[0], m = call.dims[1], n = call.dims[2], bytes = call.dims[3] * sizeOf(call.dtype);
    if (m * n * bytes == 0) return {};
    const char* x = input<char>(call, 0);
    char* y = output<char>(call, 0);
    if (bytes <= 8 && (bytes & (bytes - 1)) == 0) {
        thread.team.parallelFor(b, 1, [&](const TeamShare& s) {
            for (std::int64_t i = s.begin; i < s.end; ++i) {
                const char* from = x + i * m * n * bytes;
                char* to = y + i * m * n * bytes;
                if (bytes == 1) transposeTiles(reinterpret_cast<const std::uint8_t*>(from), reinterpret_cast<std::uint8_t*>(to), m, n);
                else if (bytes == 2) transposeTiles(reinterpret_cast<const std::uint16_t*>(from), reinterpret_cast<std::uint16_t*>(to), m, n);
                else if (bytes == 4) transposeTiles(reinterpret_cast<const std::uint32_t*>(from), reinterpret_cast<std::uint32_t*>(to), m, n);
                else transposeTiles(reinterpret_cast<const std::uint64_t*>(from), reinterpret_cast<std::uint64_t*>(to), m, n);
            }
        });
        return {};
    }
    // Row (i, j, k) of the result comes from (i, k, j).
    thread.team.parallelFor(b * n, rowGrain(m * bytes / 4 + 1), [&](const TeamShare& s) {
        for (std::int64_t row = s.begin; row < s.end; ++row) {
            const std::int64_t i = row / n, j = row % n;
            for (std::int64_t k = 0; k < m; ++k) std::memcpy(y + (row * m + k) * bytes, x + ((i * m + k) * n + j) * bytes, static_cast<std::size_t>(bytes));
        }
    });
    return {};
}

namespace {

struct Heads {
    explicit Heads(const KernelCall& call)
        : b(call.dims[0]), s(call.dims[1]), kv(call.dims[2]), heads(call.dims[3]), d(call.dims[4]), stride(call.dims[5]) {}
    std::int64_t b, s, kv, heads, d, stride;
};

Result<void> checkHeads(const KernelCall& call, const Heads& h) {
    if (h.heads % h.kv != 0) return badCall(call, fmt::format("heads is {}; expected a multiple of kv, {}", h.heads, h.kv));
    if (h.stride < h.kv * h.d) return badCall(call, fmt::format("xStride is {}; expected at least kv·d, {}", h.stride, h.kv * h.d));
    return {};
}

}  // namespace

Result<void> repeatHeads(KernelThread& thread, const KernelCall& call) {
    const Heads h(call);
    TRY_VOID(checkHeads(call, h));
    const float* x = input<float>(call, 0);
    float* y = output<float>(call, 0);
    const std::int64_t group = h.heads / h.kv;
    thread.team.parallelFor(h.b * h.heads, rowGrain(h.s * h.d), [&](const TeamShare& share) {
        for (std::int64_t i = share.begin; i < share.end; ++i) {
            const float* from = x + i / h.heads * h.s * h.stride + i % h.heads / group * h.d;
            for (std::int64_t t = 0; t < h.s; ++t) std::memcpy(y + (i * h.s + t) * h.d, from + t * h.stride, static_cast<std::size_t>(h.d) * sizeof(float));
        }
    });
    return {};
}

Result<void> sumRepeatedHeads(KernelThread& thread, const KernelCall& call) {
    const Heads h(call);
    TRY_VOID(checkHeads(call, h));
    const float* y = input<float>(call, 0);
    float* x = output<float>(call, 0);
    const std::int64_t group = h.heads / h.kv;
    thread.team.parallelFor(h.b * h.kv, rowGrain(h.s * h.d), [&](const TeamShare& share) {
        for (std::int64_t i = share.begin; i < share.end; ++i) {
            const std::int64_t sample = i / h.kv, head = i % h.kv;
            for (std::int64_t t = 0; t < h.s; ++t) {
                float* to = x + (sample * h.s + t) * h.stride + head * h.d;
                const auto from = [&](std::int64_t member) { return y + ((sample * h.heads + head * group + member) * h.s + t) * h.d; };
                std::memcpy(to, from(0), static_cast<std::size_t>(h.d) * sizeof(float));
                for (std::int64_t member = 1; member < group; ++member) thread.loops.add(to, from(member), to, h.d);
            }
        }
    });
    return {};
}

}  // namespace ringside::cpu
