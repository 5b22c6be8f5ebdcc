// What the module keeps of a device (library handles, plans, scratch memory per stream), and how results of the libraries become
// errors. Inside the module errors are Result, as everywhere; module.cpp turns them into codes at the border.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "kernels/cuda/module_abi.h"
#include "kernels/kernel_call.h"
#include "model/base/result.h"

namespace ringside::cuda {

/// "cudaMalloc: out of memory (cudaErrorMemoryAllocation, 2)".
Result<void> succeeded(cudaError_t status, const char* call);
Result<void> succeeded(cublasStatus_t status, const char* call);
Result<void> succeeded(cudnnStatus_t status, const char* call);

/// Checks the result of a library call and returns its error from the enclosing function, naming the function called.
#define RINGSIDE_CALL(function, ...) TRY_VOID(::ringside::cuda::succeeded(function(__VA_ARGS__), #function))

/// Plans are made once per shape, then used again; each library's file defines its own.
class MatmulPlans;
class ConvolutionPlans;

/// Memory that kernels of one stream may use while they run; grows, and is not counted as the user's.
struct Scratch {
    void* memory = nullptr;
    std::size_t bytes = 0;
};

}  // namespace ringside::cuda

struct RingsideCudaDevice {
    int ordinal = 0;
    cublasLtHandle_t blas = nullptr;
    cudnnHandle_t dnn = nullptr;
    std::mutex mutex;  ///< held by run(): guards everything below and the handles' state
    std::shared_ptr<ringside::cuda::MatmulPlans> matmulPlans;
    std::shared_ptr<ringside::cuda::ConvolutionPlans> convolutionPlans;
    std::map<cudaStream_t, ringside::cuda::Scratch> scratch;
};

namespace ringside::cuda {

/// At least this many bytes of the stream's scratch memory, aligned to 256.
Result<void*> scratchFor(RingsideCudaDevice& device, cudaStream_t stream, std::size_t bytes);

/// Checks and enqueues one kernel.
Result<void> runKernel(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel);

/// Bad input where types or dims are not what the op takes. REQUIRES: checkOperands() (kernels/kernel_signature.h) has passed.
Result<void> checkKernel(const RingsideKernel& kernel);

inline KernelOp opOf(const RingsideKernel& kernel) { return static_cast<KernelOp>(kernel.op); }
inline DType typeOf(const RingsideKernel& kernel) { return static_cast<DType>(kernel.dtype); }

}  // namespace ringside::cuda
