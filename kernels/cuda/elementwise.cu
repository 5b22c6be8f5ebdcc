// One thread per element: arithmetic, activations, dropout, masks and optimizers.
#include "kernels/cuda/device_code.h"
#include "kernels/cuda/launch.h"

namespace ringside::cuda {

namespace {

template <class T>
cudaError_t arithmetic(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t n = call.dims[0];
    const T *a = static_cast<const T*>(call.in[0]), *b = static_cast<const T*>(call.in[1]);
    T* y = static_cast<T*>(call.out[0]);
    const float scalar = static_cast<float>(call.scalars[0]);
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::Add: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(a[i]) + toFloat(b[i])); });
        case KernelOp::Multiply: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(a[i]) * toFloat(b[i])); });
        case KernelOp::Axpy: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(y[i]) + scalar * toFloat(a[i])); });
        case KernelOp::Scale: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(scalar * toFloat(a[i])); });
        case KernelOp::Lerp:
            return each(n, stream, [=] __device__(std::int64_t i) { const float old = toFloat(y[i]); y[i] = fromFloat<T>(old + scalar * (toFloat(a[i]) - old)); });
        case KernelOp::MultiplyAccumulate:
            return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(y[i]) + scalar * toFloat(a[i]) * toFloat(b[i])); });
        case KernelOp::SquareRoot: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(sqrtf(toFloat(a[i]))); });
        case KernelOp::AddScalar: return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(a[i]) + scalar); });
        case KernelOp::DivideAccumulate:
            return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(y[i]) + scalar * toFloat(a[i]) / toFloat(b[i])); });
        default: return cudaErrorNotSupported;
    }
}

template <class T>
cudaError_t activations(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t n = call.dims[0], kind = call.dims[1];
    const T *a = static_cast<const T*>(call.in[0]), *saved = static_cast<const T*>(call.in[1]);
    T* y = static_cast<T*>(call.out[0]);
    if (static_cast<KernelOp>(call.op) == KernelOp::Activation)
        return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(math::activation(kind, toFloat(a[i]))); });
    return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(a[i]) * math::activationDerivative(kind, toFloat(saved[i]))); });
}

template <class T>
cudaError_t dropout(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t n = call.dims[0];
    const T* x = static_cast<const T*>(call.in[0]);
    T* y = static_cast<T*>(call.out[0]);
    const double p = call.scalars[0];
    const float scale = p < 1.0 ? static_cast<float>(1.0 / (1.0 - p)) : 0.0f;
    if (static_cast<KernelOp>(call.op) == KernelOp::DropoutGradient) {
        const bool* mask = static_cast<const bool*>(call.in[1]);
        return each(n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(mask[i] ? scale * toFloat(x[i]) : 0.0f); });
    }
    bool* mask = static_cast<bool*>(call.out[1]);
    const std::uint64_t key = math::dropoutKey(call.dims[1]);
    return each(n, stream, [=] __device__(std::int64_t i) {
        const bool keep = math::dropoutKeeps(key, static_cast<std::uint64_t>(i), p);
        mask[i] = keep;
        y[i] = fromFloat<T>(keep ? scale * toFloat(x[i]) : 0.0f);
    });
}

/// A row, a channel or a mask decides what is added.
template <class T>
cudaError_t broadcasts(const RingsideKernel& call, cudaStream_t stream) {
    const auto& d = call.dims;
    const T *x = static_cast<const T*>(call.in[0]), *table = static_cast<const T*>(call.in[1]);
    T* y = static_cast<T*>(call.out[0]);
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::AddBias: {
            const std::int64_t channels = d[1], inner = d[2];
            return each(d[0] * d[1] * d[2], stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(x[i]) + toFloat(table[i / inner % channels])); });
        }
        case KernelOp::AddRows: {
            const std::int64_t period = d[1] * d[2];
            return each(d[0] * period, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(toFloat(x[i]) + toFloat(table[i % period])); });
        }
        case KernelOp::Mask: {
            const std::int64_t queries = d[1], keys = d[2];
            return each(d[0] * queries * keys, stream, [=] __device__(std::int64_t i) { y[i] = i % keys > i / keys % queries ? fromFloat<T>(-INFINITY) : x[i]; });
        }
        case KernelOp::NllLossGradient: {
            const std::int64_t* labels = static_cast<const std::int64_t*>(call.in[0]);
            const std::int64_t n = d[1];
            const float atLabel = static_cast<float>(-call.scalars[0] / static_cast<double>(d[0]));
            return each(d[0] * n, stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<T>(i % n == labels[i / n] ? atLabel : 0.0f); });
        }
        default: return cudaErrorNotSupported;
    }
}

template <class T>
cudaError_t optimizers(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t n = call.dims[0];
    const T* gradient = static_cast<const T*>(call.in[0]);
    T *p = static_cast<T*>(call.out[0]), *first = static_cast<T*>(call.out[1]), *second = static_cast<T*>(call.out[2]);
    const auto& s = call.scalars;
    if (static_cast<KernelOp>(call.op) == KernelOp::AdamFused) {
        const math::AdamStep step = math::adamStep(call.dims[1], s[0], s[1], s[2], s[3], s[4]);
        return each(n, stream, [=] __device__(std::int64_t i) {
            float parameter = toFloat(p[i]), m = toFloat(first[i]), v = toFloat(second[i]);
            math::adamUpdate(step, toFloat(gradient[i]), parameter, m, v);
            p[i] = fromFloat<T>(parameter), first[i] = fromFloat<T>(m), second[i] = fromFloat<T>(v);
        });
    }
    const float lr = static_cast<float>(s[0]), momentum = static_cast<float>(s[1]);
    if (first == nullptr) return each(n, stream, [=] __device__(std::int64_t i) { p[i] = fromFloat<T>(toFloat(p[i]) - lr * toFloat(gradient[i])); });
    const bool isFirst = call.dims[1] <= 1;
    return each(n, stream, [=] __device__(std::int64_t i) {
        const float buffer = math::momentumOf(isFirst ? 0.0f : toFloat(first[i]), toFloat(gradient[i]), momentum, isFirst);
        first[i] = fromFloat<T>(buffer);
        p[i] = fromFloat<T>(toFloat(p[i]) - lr * buffer);
    });
}

template <class T>
cudaError_t elementwise(const RingsideKernel& call, cudaStream_t stream) {
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::Activation: case KernelOp::ActivationGradient: return activations<T>(call, stream);
        case KernelOp::Dropout: case KernelOp::DropoutGradient: return dropout<T>(call, stream);
        case KernelOp::AddBias: case KernelOp::AddRows: case KernelOp::Mask: case KernelOp::NllLossGradient: return broadcasts<T>(call, stream);
        case KernelOp::AdamFused: case KernelOp::SgdFused: return optimizers<T>(call, stream);
        default: return arithmetic<T>(call, stream);
    }
}

template <class T>
cudaError_t fillWith(const RingsideKernel& call, cudaStream_t stream, T value) {
    T* y = static_cast<T*>(call.out[0]);
    return each(call.dims[0], stream, [=] __device__(std::int64_t i) { y[i] = value; });
}

template <class To, class From>
cudaError_t castFrom(const RingsideKernel& call, cudaStream_t stream) {
    const From* x = static_cast<const From*>(call.in[0]);
    To* y = static_cast<To*>(call.out[0]);
    return each(call.dims[0], stream, [=] __device__(std::int64_t i) { y[i] = fromFloat<To>(toFloat(x[i])); });
}
template <class To>
cudaError_t castTo(const RingsideKernel& call, cudaStream_t stream) {
    switch (static_cast<DType>(call.dims[1])) {
        case DType::Fp64: return castFrom<To, double>(call, stream);
        case DType::Fp32: case DType::Tf32: return castFrom<To, float>(call, stream);
        case DType::Fp16: return castFrom<To, __half>(call, stream);
        case DType::Bf16: return castFrom<To, __nv_bfloat16>(call, stream);
        default: return cudaErrorNotSupported;
    }
}

}  // namespace

cudaError_t launchElementwise(const RingsideKernel& kernel, cudaStream_t stream) { RINGSIDE_BY_TYPE(kernel.dtype, elementwise, kernel, stream) }

cudaError_t launchFill(const RingsideKernel& kernel, cudaStream_t stream) {
    const double value = kernel.scalars[0];
    switch (static_cast<DType>(kernel.dtype)) {
        case DType::Fp64: return fillWith<double>(kernel, stream, value);
        case DType::Fp32: case DType::Tf32: return fillWith<float>(kernel, stream, static_cast<float>(value));
        case DType::Fp16: return fillWith<__half>(kernel, stream, __float2half(static_cast<float>(value)));
        case DType::Bf16: return fillWith<__nv_bfloat16>(kernel, stream, __float2bfloat16(static_cast<float>(value)));
        case DType::Int64: return fillWith<std::int64_t>(kernel, stream, static_cast<std::int64_t>(value));
        case DType::Int32: return fillWith<std::int32_t>(kernel, stream, static_cast<std::int32_t>(value));
        case DType::Int8: return fillWith<std::int8_t>(kernel, stream, static_cast<std::int8_t>(value));
        case DType::Bool: return fillWith<bool>(kernel, stream, value != 0);
        default: return cudaErrorNotSupported;
    }
}

cudaError_t launchCast(const RingsideKernel& kernel, cudaStream_t stream) {
    if (static_cast<DType>(kernel.dtype) == DType::Fp64) return castTo<double>(kernel, stream);
    RINGSIDE_BY_TYPE(kernel.dtype, castTo, kernel, stream)
}

}  // namespace ringside::cuda
