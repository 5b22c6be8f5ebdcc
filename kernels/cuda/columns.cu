// Sums over rows and channels, batch norm, and sums of a whole tensor. Every sum is made in the same order each time.
#include "kernels/cuda/device_code.h"
#include "kernels/cuda/launch.h"

namespace ringside::cuda {

namespace {

constexpr int kColumns = 32, kLanes = kThreads / kColumns;

/// store(column, Σ value(row, column)): 32 columns per block of threads, whose 8 lanes share the rows.
template <class Value, class Store>
__global__ void sumColumns(std::int64_t rows, std::int64_t columns, Value value, Store store) {
    __shared__ float2 parts[kLanes][kColumns];
    const int x = static_cast<int>(threadIdx.x) % kColumns, lane = static_cast<int>(threadIdx.x) / kColumns;
    for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * kColumns; base < columns; base += static_cast<std::int64_t>(gridDim.x) * kColumns) {
        const std::int64_t column = base + x;
        float2 sum{0, 0};
        if (column < columns)
            for (std::int64_t row = lane; row < rows; row += kLanes) sum = joined(sum, value(row, column));
        parts[lane][x] = sum;
        __syncthreads();
        if (lane == 0 && column < columns) {
            for (int i = 1; i < kLanes; ++i) sum = joined(sum, parts[i][x]);
            store(column, sum);
        }
        __syncthreads();
    }
}
template <class Value, class Store>
cudaError_t columnSums(std::int64_t rows, std::int64_t columns, cudaStream_t stream, Value value, Store store) {
    if (columns <= 0) return cudaSuccess;
    const std::int64_t blocks = (columns + kColumns - 1) / kColumns;
    sumColumns<<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads, 0, stream>>>(rows, columns, value, store);
    return cudaGetLastError();
}

template <class T>
__device__ void accumulate(T* y, std::int64_t at, float sum, float beta) {
    y[at] = fromFloat<T>(beta == 0.0f ? sum : sum + beta * toFloat(y[at]));  // without beta, what was there may be NaN
}

template <class T>
cudaError_t sums(const RingsideKernel& call, cudaStream_t stream) {
    const auto& d = call.dims;
    const T *in0 = static_cast<const T*>(call.in[0]), *in1 = static_cast<const T*>(call.in[1]);
    T *y = static_cast<T*>(call.out[0]), *second = static_cast<T*>(call.out[1]);
    const float* statistics = static_cast<const float*>(call.in[2]);
    const float beta = static_cast<KernelOp>(call.op) == KernelOp::SumOverSamples ? 0.0f : static_cast<float>(call.scalars[0]);
    const auto store = [=] __device__(std::int64_t column, float2 sum) {
        accumulate(y, column, sum.x, beta);
        if (second != nullptr) accumulate(second, column, sum.y, beta);
    };
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::ColumnSum:
        case KernelOp::SumOverSamples: {
            const std::int64_t n = static_cast<KernelOp>(call.op) == KernelOp::ColumnSum ? d[1] : d[1] * d[2];
            return columnSums(d[0], n, stream, [=] __device__(std::int64_t row, std::int64_t i) { return float2{toFloat(in0[row * n + i]), 0}; },
                              [=] __device__(std::int64_t column, float2 sum) { accumulate(y, column, sum.x, beta); });
        }
        case KernelOp::LayerNormWeightGradient: {
            const std::int64_t n = d[1];
            return columnSums(d[0], n, stream, [=] __device__(std::int64_t row, std::int64_t i) {
                const float dy = toFloat(in0[row * n + i]);
                return float2{dy * (toFloat(in1[row * n + i]) - statistics[2 * row]) * statistics[2 * row + 1], dy};
            }, store);
        }
        case KernelOp::RmsNormWeightGradient: {
            const std::int64_t n = d[1];
            return columnSums(d[0], n, stream,
                              [=] __device__(std::int64_t row, std::int64_t i) { return float2{toFloat(in0[row * n + i]) * toFloat(in1[row * n + i]) * statistics[row], 0}; },
                              [=] __device__(std::int64_t column, float2 sum) { accumulate(y, column, sum.x, beta); });
        }
        default: return cudaErrorNotSupported;
    }
}

/// A block of threads per channel of x[rows, channels, inner].
template <class T>
cudaError_t channels(const RingsideKernel& call, cudaStream_t stream) {
    const std::int64_t rows = call.dims[0], c = call.dims[1], inner = call.dims[2], count = rows * inner;
    const auto place = [=] __device__(std::int64_t channel, std::int64_t i) { return (i / inner * c + channel) * inner + i % inner; };
    const T *in0 = static_cast<const T*>(call.in[0]), *in1 = static_cast<const T*>(call.in[1]), *in2 = static_cast<const T*>(call.in[2]);
    T* y = static_cast<T*>(call.out[0]);
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::ChannelSum: {
            const float beta = static_cast<float>(call.scalars[0]);
            return eachRow(c, stream, [=] __device__(std::int64_t channel) {
                float sum = 0;
                for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += toFloat(in0[place(channel, i)]);
                sum = joinedOverBlock(sum);
                if (threadIdx.x == 0) accumulate(y, channel, sum, beta);
            });
        }
        case KernelOp::BatchNorm: {  // x, weight, bias
            float* statistics = static_cast<float*>(call.out[1]);
            T *runningMean = static_cast<T*>(call.out[2]), *runningVariance = static_cast<T*>(call.out[3]);
            const float epsilon = static_cast<float>(call.scalars[0]), momentum = static_cast<float>(call.scalars[1]);
            return eachRow(c, stream, [=] __device__(std::int64_t channel) {
                math::Moments moments;
                for (std::int64_t i = threadIdx.x; i < count; i += kThreads) math::addTo(moments, toFloat(in0[place(channel, i)]));
                moments = joinedOverBlock(moments);
                const float mean = moments.mean, inverse = math::inverseDeviation(moments, epsilon);
                if (threadIdx.x == 0) {
                    statistics[2 * channel] = mean, statistics[2 * channel + 1] = inverse;
                    if (runningMean != nullptr) runningMean[channel] = fromFloat<T>(math::runningMean(toFloat(runningMean[channel]), mean, momentum));
                    if (runningVariance != nullptr)
                        runningVariance[channel] = fromFloat<T>(math::runningVariance(toFloat(runningVariance[channel]), moments, momentum));
                }
                const float weight = toFloat(in1[channel]) * inverse, bias = toFloat(in2[channel]);
                for (std::int64_t i = threadIdx.x; i < count; i += kThreads) y[place(channel, i)] = fromFloat<T>((toFloat(in0[place(channel, i)]) - mean) * weight + bias);
            });
        }
        case KernelOp::BatchNormGradient: {  // dy, x, weight, statistics
            const float* statistics = static_cast<const float*>(call.in[3]);
            T *dweight = static_cast<T*>(call.out[1]), *dbias = static_cast<T*>(call.out[2]);
            const float elements = static_cast<float>(count);
            return eachRow(c, stream, [=] __device__(std::int64_t channel) {
                const float mean = statistics[2 * channel], inverse = statistics[2 * channel + 1], weight = toFloat(in2[channel]);
                float2 sum{0, 0};
                for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
                    const float dy = toFloat(in0[place(channel, i)]);
                    sum.x += dy, sum.y += dy * (toFloat(in1[place(channel, i)]) - mean) * inverse;
                }
                sum = joinedOverBlock(sum);
                if (threadIdx.x == 0) dweight[channel] = fromFloat<T>(sum.y), dbias[channel] = fromFloat<T>(sum.x);
                for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
                    const std::int64_t at = place(channel, i);
                    y[at] = fromFloat<T>(math::normInputGradient(weight * toFloat(in0[at]), (toFloat(in1[at]) - mean) * inverse, inverse, weight * sum.x / elements, weight * sum.y / elements));
                }
            });
        }
        default: return sums<T>(call, stream);
    }
}

/// partial[block] = its share of Σ value(i); then one block sums the parts and stores.
template <class Value, class Store>
cudaError_t total(std::int64_t n, cudaStream_t stream, float* partial, Value value, Store store) {
    const std::int64_t parts = n <= 0 ? 0 : (n + kThreads - 1) / kThreads < kPartials ? (n + kThreads - 1) / kThreads : kPartials;
    const cudaError_t first = eachRow(parts, stream, [=] __device__(std::int64_t part) {
        float sum = 0;
        for (std::int64_t i = part * kThreads + threadIdx.x; i < n; i += parts * kThreads) sum += value(i);
        sum = joinedOverBlock(sum);
        if (threadIdx.x == 0) partial[part] = sum;
    });
    if (first != cudaSuccess) return first;
    return eachRow(1, stream, [=] __device__(std::int64_t) {
        float sum = 0;
        for (std::int64_t i = threadIdx.x; i < parts; i += kThreads) sum += partial[i];
        sum = joinedOverBlock(sum);
        if (threadIdx.x == 0) store(sum);
    });
}

template <class T>
cudaError_t totals(const RingsideKernel& call, cudaStream_t stream, float* partial) {
    const T *x = static_cast<const T*>(call.in[0]), *target = static_cast<const T*>(call.in[1]);
    float* y = static_cast<float*>(call.out[0]);
    const std::int64_t rows = call.dims[0], n = call.dims[1];
    switch (static_cast<KernelOp>(call.op)) {
        case KernelOp::NllLoss: {
            const std::int64_t* labels = static_cast<const std::int64_t*>(call.in[1]);
            return total(rows, stream, partial, [=] __device__(std::int64_t row) {
                const std::int64_t label = labels[row];
                return label >= 0 && label < n ? -toFloat(x[row * n + label]) : NAN;  // a label that is none shows in the loss
            }, [=] __device__(float sum) { *y = rows > 0 ? sum / static_cast<float>(rows) : 0.0f; });
        }
        case KernelOp::SquaredError:
            return total(rows, stream, partial, [=] __device__(std::int64_t i) { const float e = toFloat(x[i]) - toFloat(target[i]); return e * e; },
                         [=] __device__(float sum) { *y = sum; });
        case KernelOp::SumOfSquares:
            return total(rows, stream, partial, [=] __device__(std::int64_t i) { return toFloat(x[i]) * toFloat(x[i]); }, [=] __device__(float sum) { *y += sum; });
        default: return cudaErrorNotSupported;
    }
}

}  // namespace

cudaError_t launchColumns(const RingsideKernel& kernel, cudaStream_t stream) { RINGSIDE_BY_TYPE(kernel.dtype, channels, kernel, stream) }

cudaError_t launchTotal(const RingsideKernel& kernel, cudaStream_t stream, float* partial) { RINGSIDE_BY_TYPE(kernel.dtype, totals, kernel, stream, partial) }

}  // namespace ringside::cuda
