// A block of threads per row: norms, softmax, and the part of attention between its products.
#include "kernels/cuda/device_code.h"
#include "kernels/cuda/launch.h"

namespace ringside::cuda {

namespace {

template <class T>
cudaError_t norms(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t rows = call.dims[0], n = call.dims[1];
    const float count = static_cast<float>(n), epsilon = static_cast<float>(call.scalars[0]);
    const T *in0 = static_cast<const T*>(call.in[0]), *in1 = static_cast<const T*>(call.in[1]), *in2 = static_cast<const T*>(call.in[2]);
    T* y = static_cast<T*>(call.out[0]);
    float* made = static_cast<float*>(call.out[1]);
    const float* statistics = static_cast<const float*>(call.in[3]);
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::LayerNorm:  // x, weight, [bias]
            return eachRow(rows, stream, [=] __device__(std::int64_t row) {
                math::Moments moments;
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) math::addTo(moments, toFloat(in0[row * n + i]));
                moments = joinedOverBlock(moments);
                const float mean = moments.mean, inverse = math::inverseDeviation(moments, epsilon);
                if (threadIdx.x == 0) made[2 * row] = mean, made[2 * row + 1] = inverse;
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads)
                    y[row * n + i] = fromFloat<T>((toFloat(in0[row * n + i]) - mean) * inverse * toFloat(in1[i]) + (in2 != nullptr ? toFloat(in2[i]) : 0.0f));
            });
        case KernelOp::LayerNormInputGradient:  // dy, x, weight, statistics
            return eachRow(rows, stream, [=] __device__(std::int64_t row) {
                const float mean = statistics[2 * row], inverse = statistics[2 * row + 1];
                float2 sums{0, 0};
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) {
                    const float g = toFloat(in0[row * n + i]) * toFloat(in2[i]);
                    sums.x += g, sums.y += g * (toFloat(in1[row * n + i]) - mean) * inverse;
                }
                sums = joinedOverBlock(sums);
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) {
                    const float g = toFloat(in0[row * n + i]) * toFloat(in2[i]);
                    y[row * n + i] = fromFloat<T>(math::normInputGradient(g, (toFloat(in1[row * n + i]) - mean) * inverse, inverse, sums.x / count, sums.y / count));
                }
            });
        case KernelOp::RmsNorm:  // x, weight
            return eachRow(rows, stream, [=] __device__(std::int64_t row) {
                float squares = 0;
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) squares += toFloat(in0[row * n + i]) * toFloat(in0[row * n + i]);
                const float inverse = 1.0f / sqrtf(joinedOverBlock(squares) / count + epsilon);
                if (threadIdx.x == 0) made[row] = inverse;
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) y[row * n + i] = fromFloat<T>(toFloat(in0[row * n + i]) * inverse * toFloat(in1[i]));
            });
        case KernelOp::RmsNormInputGradient:  // dy, x, weight, statistics
            return eachRow(rows, stream, [=] __device__(std::int64_t row) {
                const float inverse = statistics[row];
                float sum = 0;
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) sum += toFloat(in0[row * n + i]) * toFloat(in2[i]) * toFloat(in1[row * n + i]) * inverse;
                sum = joinedOverBlock(sum);
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads)
                    y[row * n + i] = fromFloat<T>(math::rmsNormInputGradient(toFloat(in0[row * n + i]) * toFloat(in2[i]), toFloat(in1[row * n + i]) * inverse, inverse, sum / count));
            });
        default: return cudaErrorNotSupported;
    }
}

template <class T>
cudaError_t softmaxes(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t rows = call.dims[0], n = call.dims[1];
    const T *in0 = static_cast<const T*>(call.in[0]), *in1 = static_cast<const T*>(call.in[1]);
    T* y = static_cast<T*>(call.out[0]);
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::Softmax:
        case KernelOp::LogSoftmax: {
            const bool log = static_cast<KernelOp>(call.op) == KernelOp::LogSoftmax;
            return eachRow(rows, stream, [=] __device__(std::int64_t row) {
                math::LogSum total;
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) math::addTo(total, toFloat(in0[row * n + i]));
                const float logSum = math::logOf(joinedOverBlock(total));
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) {
                    const float value = toFloat(in0[row * n + i]) - logSum;
                    y[row * n + i] = fromFloat<T>(log ? value : expf(value));
                }
            });
        }
        case KernelOp::SoftmaxGradient:
            return eachRow(rows, stream, [=] __device__(std::int64_t row) {
                float sum = 0;
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) sum += toFloat(in0[row * n + i]) * toFloat(in1[row * n + i]);
                sum = joinedOverBlock(sum);
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads)
                    y[row * n + i] = fromFloat<T>(math::softmaxGradient(toFloat(in0[row * n + i]), toFloat(in1[row * n + i]), sum));
            });
        case KernelOp::LogSoftmaxGradient:
            return eachRow(rows, stream, [=] __device__(std::int64_t row) {
                float sum = 0;
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads) sum += toFloat(in0[row * n + i]);
                sum = joinedOverBlock(sum);
                for (std::int64_t i = threadIdx.x; i < n; i += kThreads)
                    y[row * n + i] = fromFloat<T>(math::logSoftmaxGradient(toFloat(in0[row * n + i]), toFloat(in1[row * n + i]), sum));
            });
        default: return norms<T>(call, stream);
    }
}

/// How many keys a query of the block sees.
__device__ std::int64_t keysSeen(const AttentionBlock& block, std::int64_t query) { return block.causal ? block.first + query + 1 : block.keys; }

template <class T>
cudaError_t attentionWeights(cudaStream_t stream, const float* scores, T* weights, float* logSums, AttentionBlock block) {
    return eachRow(block.heads * block.rows, stream, [=] __device__(std::int64_t row) {
        const std::int64_t head = row / block.rows, query = row % block.rows, seen = keysSeen(block, query);
        math::LogSum total;
        for (std::int64_t i = threadIdx.x; i < seen; i += kThreads) math::addTo(total, scores[row * block.keys + i]);
        const float logSum = math::logOf(joinedOverBlock(total));
        if (threadIdx.x == 0) logSums[head * block.queries + block.first + query] = logSum;
        for (std::int64_t i = threadIdx.x; i < block.keys; i += kThreads)
            weights[row * block.keys + i] = fromFloat<T>(i < seen ? expf(scores[row * block.keys + i] - logSum) : 0.0f);
    });
}

template <class T>
cudaError_t attentionScoreGradient(cudaStream_t stream, const float* scores, const float* gradient, const float* logSums, T* weights, T* scoreGradient,
                                   float scale, AttentionBlock block) {
    return eachRow(block.heads * block.rows, stream, [=] __device__(std::int64_t row) {
        const std::int64_t head = row / block.rows, query = row % block.rows, seen = keysSeen(block, query), at = row * block.keys;
        const float logSum = logSums[head * block.queries + block.first + query];
        float sum = 0;
        for (std::int64_t i = threadIdx.x; i < seen; i += kThreads) sum += expf(scores[at + i] - logSum) * gradient[at + i];
        sum = joinedOverBlock(sum);
        for (std::int64_t i = threadIdx.x; i < block.keys; i += kThreads) {
            const float weight = i < seen ? expf(scores[at + i] - logSum) : 0.0f;
            weights[at + i] = fromFloat<T>(weight);
            scoreGradient[at + i] = fromFloat<T>(i < seen ? scale * math::softmaxGradient(gradient[at + i], weight, sum) : 0.0f);
        }
    });
}

}  // namespace

cudaError_t launchRows(const RingsideKernel& kernel, cudaStream_t stream) { RINGSIDE_BY_TYPE(kernel.dtype, softmaxes, kernel, stream) }

namespace {
template <class T>
cudaError_t weightsAs(cudaStream_t stream, const float* scores, void* weights, float* logSums, const AttentionBlock& block) {
    return attentionWeights<T>(stream, scores, static_cast<T*>(weights), logSums, block);
}
template <class T>
cudaError_t gradientAs(cudaStream_t stream, const float* scores, const float* gradient, const float* logSums, void* weights, void* scoreGradient, float scale,
                       const AttentionBlock& block) {
    return attentionScoreGradient<T>(stream, scores, gradient, logSums, static_cast<T*>(weights), static_cast<T*>(scoreGradient), scale, block);
}
template <class T>
cudaError_t storeAs(cudaStream_t stream, const float* from, void* to, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    T* target = static_cast<T*>(to);
    return each(rows * columns, stream, [=] __device__(std::int64_t i) { target[i / columns * stride + i % columns] = fromFloat<T>(from[i]); });
}
}  // namespace

cudaError_t launchAttentionWeights(cudaStream_t stream, DType dtype, const float* scores, void* weights, float* logSums, const AttentionBlock& block) {
    RINGSIDE_BY_TYPE(dtype, weightsAs, stream, scores, weights, logSums, block)
}
cudaError_t launchAttentionScoreGradient(cudaStream_t stream, DType dtype, const float* scores, const float* gradient, const float* logSums, void* weights,
                                         void* scoreGradient, float scale, const AttentionBlock& block) {
    RINGSIDE_BY_TYPE(dtype, gradientAs, stream, scores, gradient, logSums, weights, scoreGradient, scale, block)
}
cudaError_t launchStoreRows(cudaStream_t stream, DType dtype, const float* from, void* to, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    RINGSIDE_BY_TYPE(dtype, storeAs, stream, from, to, rows, columns, stride)
}

}  // namespace ringside::cuda
