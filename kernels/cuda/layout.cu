// Where elements go: transposes, heads, embeddings, rotary positions and pooling. Each thread makes one output, so that only the
// embedding's gradient adds atomically.
#include "kernels/cuda/device_code.h"
#include "kernels/cuda/launch.h"

namespace ringside::cuda {

namespace {

template <class T>
cudaError_t transpose(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t m = call.dims[1], n = call.dims[2], inner = call.dims[3];
    const T* x = static_cast<const T*>(call.in[0]);
    T* y = static_cast<T*>(call.out[0]);
    return each(call.dims[0] * m * n * inner, stream, [=] __device__(std::int64_t i) {  // i = ((b·n + column)·m + row)·inner + k
        const std::int64_t k = i % inner, row = i / inner % m, column = i / (inner * m) % n, b = i / (inner * m * n);
        y[i] = x[((b * m + row) * n + column) * inner + k];
    });
}

template <class T>
cudaError_t heads(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t b = call.dims[0], s = call.dims[1], kv = call.dims[2], all = call.dims[3], d = call.dims[4], stride = call.dims[5], group = all / kv;
    const T* from = static_cast<const T*>(call.in[0]);
    T* to = static_cast<T*>(call.out[0]);
    if (static_cast<KernelOp>(call.op) == KernelOp::RepeatHeads)
        return each(b * all * s * d, stream, [=] __device__(std::int64_t i) {  // i = ((sample·heads + head)·s + token)·d + k
            const std::int64_t k = i % d, token = i / d % s, head = i / (d * s) % all, sample = i / (d * s * all);
            to[i] = from[(sample * s + token) * stride + head / group * d + k];
        });
    return each(b * s * kv * d, stream, [=] __device__(std::int64_t i) {  // i = ((sample·s + token)·kv + head)·d + k
        const std::int64_t k = i % d, head = i / d % kv, token = i / (d * kv) % s, sample = i / (d * kv * s);
        float sum = 0;
        for (std::int64_t g = 0; g < group; ++g) sum += toFloat(from[((sample * all + head * group + g) * s + token) * d + k]);
        to[(sample * s + token) * stride + head * d + k] = fromFloat<T>(sum);
    });
}

template <class T>
cudaError_t embedding(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t count = call.dims[0], f = call.dims[1], rows = call.dims[2];
    const std::int64_t* tokens = static_cast<const std::int64_t*>(call.in[0]);
    const T* in = static_cast<const T*>(call.in[1]);
    T* out = static_cast<T*>(call.out[0]);
    if (static_cast<KernelOp>(call.op) == KernelOp::Embedding)
        return each(count * f, stream, [=] __device__(std::int64_t i) {
            const std::int64_t token = tokens[i / f];
            out[i] = token >= 0 && token < rows ? in[token * f + i % f] : fromFloat<T>(NAN);  // a token that is none shows in the output
        });
    return each(count * f, stream, [=] __device__(std::int64_t i) {
        const std::int64_t token = tokens[i / f];
        if (token >= 0 && token < rows) atomicAdd(&out[token * f + i % f], in[i]);
    });
}

template <class T>
cudaError_t rotary(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t s = call.dims[1], count = call.dims[2], d = call.dims[3], xStride = call.dims[4], yStride = call.dims[5], half = d / 2;
    const float sign = call.dims[6] != 0 ? -1.0f : 1.0f;
    const double base = call.scalars[0];
    const T* x = static_cast<const T*>(call.in[0]);
    T* y = static_cast<T*>(call.out[0]);
    // One thread per token and pair: the angle is dear, and the same for all heads.
    return each(call.dims[0] * s * half, stream, [=] __device__(std::int64_t i) {
        const std::int64_t pair = i % half, token = i / half;
        float sine = 0, cosine = 0;
        sincosf(math::rotaryAngle(token % s, pair, d, base), &sine, &cosine);
        sine *= sign;
        for (std::int64_t head = 0; head < count; ++head) {
            const std::int64_t at = token * xStride + head * d + pair, to = token * yStride + head * d + pair;
            const float a = toFloat(x[at]), b = toFloat(x[at + half]);
            y[to] = fromFloat<T>(a * cosine - b * sine);
            y[to + half] = fromFloat<T>(b * cosine + a * sine);
        }
    });
}

template <class T>
cudaError_t layouts(const RingsideKernel& call, cudaStream_t stream) {
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::RepeatHeads: case KernelOp::SumRepeatedHeads: return heads<T>(call, stream);
        case KernelOp::Embedding: case KernelOp::EmbeddingGradient: return embedding<T>(call, stream);
        case KernelOp::Rotary: return rotary<T>(call, stream);
        default: return cudaErrorNotSupported;
    }
}

template <class T>
cudaError_t maxPool(const RingsideKernel& call, cudaStream_t stream) {
    const auto& d = call.dims;
    const std::int64_t h = d[2], w = d[3], kernel = d[4], stride = d[5], padding = d[6], planes = d[0] * d[1];
    const std::int64_t oh = math::pooledSize(h, kernel, stride, padding), ow = math::pooledSize(w, kernel, stride, padding);
    const T* x = static_cast<const T*>(call.in[0]);
    T* y = static_cast<T*>(call.out[0]);
    if (static_cast<KernelOp>(call.op) == KernelOp::MaxPool) {
        std::int64_t* indices = static_cast<std::int64_t*>(call.out[1]);
        return each(planes * oh * ow, stream, [=] __device__(std::int64_t i) {
            const std::int64_t column = i % ow * stride - padding, row = i / ow % oh * stride - padding, plane = i / (oh * ow);
            float best = -INFINITY;
            std::int64_t where = -1;
            for (std::int64_t r = row < 0 ? 0 : row; r < row + kernel && r < h; ++r)
                for (std::int64_t q = column < 0 ? 0 : column; q < column + kernel && q < w; ++q) {
                    const float value = toFloat(x[(plane * h + r) * w + q]);
                    if (where < 0 || value > best || isnan(value)) best = value, where = r * w + q;
                }
            y[i] = fromFloat<T>(best);
            indices[i] = where;
        });
    }
    const std::int64_t* indices = static_cast<const std::int64_t*>(call.in[1]);
    return each(planes * h * w, stream, [=] __device__(std::int64_t i) {
        const std::int64_t here = i % (h * w), plane = i / (h * w), r = here / w + padding, q = here % w + padding;
        float sum = 0;
        for (std::int64_t a = r < kernel ? 0 : (r - kernel) / stride + 1; a <= r / stride && a < oh; ++a)
            for (std::int64_t b = q < kernel ? 0 : (q - kernel) / stride + 1; b <= q / stride && b < ow; ++b) {
                const std::int64_t at = (plane * oh + a) * ow + b;
                if (indices[at] == here) sum += toFloat(x[at]);
            }
        y[i] = fromFloat<T>(sum);
    });
}

template <class T>
cudaError_t averagePool(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t planes = call.dims[0] * call.dims[1], h = call.dims[2], w = call.dims[3], o = call.dims[4];
    const T* x = static_cast<const T*>(call.in[0]);
    T* y = static_cast<T*>(call.out[0]);
    if (static_cast<KernelOp>(call.op) == KernelOp::AveragePool)
        return each(planes * o * o, stream, [=] __device__(std::int64_t i) {
            const std::int64_t row = i / o % o, column = i % o, plane = i / (o * o);
            const std::int64_t r0 = math::adaptiveBegin(row, o, h), r1 = math::adaptiveEnd(row, o, h), q0 = math::adaptiveBegin(column, o, w), q1 = math::adaptiveEnd(column, o, w);
            float sum = 0;
            for (std::int64_t r = r0; r < r1; ++r)
                for (std::int64_t q = q0; q < q1; ++q) sum += toFloat(x[(plane * h + r) * w + q]);
            y[i] = fromFloat<T>(sum / static_cast<float>((r1 - r0) * (q1 - q0)));
        });
    // The windows that hold row r are those that r's own window over the outputs names.
    return each(planes * h * w, stream, [=] __device__(std::int64_t i) {
        const std::int64_t r = i / w % h, q = i % w, plane = i / (h * w);
        float sum = 0;
        for (std::int64_t a = math::adaptiveBegin(r, h, o); a < math::adaptiveEnd(r, h, o); ++a)
            for (std::int64_t b = math::adaptiveBegin(q, w, o); b < math::adaptiveEnd(q, w, o); ++b) {
                const std::int64_t count = (math::adaptiveEnd(a, o, h) - math::adaptiveBegin(a, o, h)) * (math::adaptiveEnd(b, o, w) - math::adaptiveBegin(b, o, w));
                sum += toFloat(x[(plane * o + a) * o + b]) / static_cast<float>(count);
            }
        y[i] = fromFloat<T>(sum);
    });
}

template <class T>
cudaError_t pooling(const RingsideKernel& call, cudaStream_t stream) {
    const KernelOp op = static_cast<KernelOp>(call.op);
    return op == KernelOp::MaxPool || op == KernelOp::MaxPoolGradient ? maxPool<T>(call, stream) : averagePool<T>(call, stream);
}

}  // namespace

cudaError_t launchLayout(const RingsideKernel& kernel, cudaStream_t stream) {
    if (static_cast<KernelOp>(kernel.op) == KernelOp::Transpose) switch (sizeOf(static_cast<DType>(kernel.dtype))) {
        case 1: return transpose<std::uint8_t>(kernel, stream);
        case 2: return transpose<std::uint16_t>(kernel, stream);
        case 4: return transpose<std::uint32_t>(kernel, stream);
        default: return transpose<std::uint64_t>(kernel, stream);
    }
    RINGSIDE_BY_TYPE(kernel.dtype, layouts, kernel, stream)
}

cudaError_t launchPooling(const RingsideKernel& kernel, cudaStream_t stream) { RINGSIDE_BY_TYPE(kernel.dtype, pooling, kernel, stream) }

}  // namespace ringside::cuda
