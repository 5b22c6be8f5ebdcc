// What the .cu files share: element types as fp32, one thread per element, and sums over a block of threads. For nvcc only.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/cuda/kernel_math.h"
#include "kernels/kernel_call.h"

namespace ringside::cuda {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 1 << 20;

__device__ inline float toFloat(float x) { return x; }
__device__ inline float toFloat(double x) { return static_cast<float>(x); }
__device__ inline float toFloat(__half x) { return __half2float(x); }
__device__ inline float toFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
__device__ inline T fromFloat(float x);
template <>
__device__ inline float fromFloat<float>(float x) { return x; }
template <>
__device__ inline double fromFloat<double>(float x) { return x; }
template <>
__device__ inline __half fromFloat<__half>(float x) { return __float2half(x); }
template <>
__device__ inline __nv_bfloat16 fromFloat<__nv_bfloat16>(float x) { return __float2bfloat16(x); }

/// f(i) for each i below n.
template <class F>
__global__ void eachElement(std::int64_t n, F f) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}
template <class F>
cudaError_t each(std::int64_t n, cudaStream_t stream, F f) {
    if (n <= 0) return cudaSuccess;
    const std::int64_t blocks = (n + kThreads - 1) / kThreads;
    eachElement<<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads, 0, stream>>>(n, f);
    return cudaGetLastError();
}

/// f(row) by a whole block of threads, for each row.
template <class F>
__global__ void eachBlock(std::int64_t rows, F f) {
    for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) f(row);
}
template <class F>
cudaError_t eachRow(std::int64_t rows, cudaStream_t stream, F f) {
    if (rows <= 0) return cudaSuccess;
    eachBlock<<<static_cast<unsigned>(rows < kMostBlocks ? rows : kMostBlocks), kThreads, 0, stream>>>(rows, f);
    return cudaGetLastError();
}

__device__ inline float shuffled(float x, int lanes) { return __shfl_xor_sync(0xffffffffU, x, lanes); }
__device__ inline float2 shuffled(float2 x, int lanes) { return {shuffled(x.x, lanes), shuffled(x.y, lanes)}; }
__device__ inline math::Moments shuffled(math::Moments x, int lanes) {
    return {shuffled(x.count, lanes), shuffled(x.mean, lanes), shuffled(x.squares, lanes)};
}
__device__ inline math::LogSum shuffled(math::LogSum x, int lanes) { return {shuffled(x.largest, lanes), shuffled(x.sum, lanes)}; }

__device__ inline float joined(float a, float b) { return a + b; }
__device__ inline float2 joined(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline math::Moments joined(math::Moments a, math::Moments b) { return math::join(a, b); }
__device__ inline math::LogSum joined(math::LogSum a, math::LogSum b) { return math::join(a, b); }

/// Joins every thread's value, in the same order each time; all threads of the block call it and all get the result.
template <class V>
__device__ V joinedOverBlock(V value) {
    __shared__ alignas(16) unsigned char memory[kThreads / 32 * sizeof(V)];
    V* const parts = reinterpret_cast<V*>(memory);
    for (int lanes = 16; lanes > 0; lanes /= 2) value = joined(value, shuffled(value, lanes));
    __syncthreads();  // the memory may still be read from the call before
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < kThreads / 32; ++i) value = joined(value, parts[i]);
    return value;
}

/// Runs `function<T>(args…)` with the element type.
#define RINGSIDE_BY_TYPE(dtype, function, ...)                                      \
    switch (static_cast<DType>(dtype)) {                                            \
        case DType::Fp32: case DType::Tf32: return function<float>(__VA_ARGS__);    \
        case DType::Fp16: return function<__half>(__VA_ARGS__);                     \
        case DType::Bf16: return function<__nv_bfloat16>(__VA_ARGS__);              \
        default: return cudaErrorNotSupported;                                      \
    }

}  // namespace ringside::cuda
