// Sends each op to the library or the .cu file that does it.
#include <fmt/format.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/convolution.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/module_state.h"

namespace ringside::cuda {

namespace {

Result<void> enqueue(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel);

/// Plain copies and zeros are the driver's.
Result<void> moveBytes(const RingsideKernel& kernel, cudaStream_t stream) {
    const auto& d = kernel.dims;
    const auto size = static_cast<std::size_t>(sizeOf(typeOf(kernel)));
    const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size; };
    if (opOf(kernel) == KernelOp::Fill) {
        RINGSIDE_CALL(cudaMemsetAsync, kernel.out[0], 0, bytes(d[0]), stream);
    } else if (opOf(kernel) == KernelOp::Copy) {
        RINGSIDE_CALL(cudaMemcpyAsync, kernel.out[0], kernel.in[0], bytes(d[0]), cudaMemcpyDeviceToDevice, stream);
    } else {
        // With one row the pitches say nothing, but CUDA still wants them at least as wide as the row.
        const std::int64_t from = d[0] == 1 ? d[1] : d[2], to = d[0] == 1 ? d[1] : d[3];
        RINGSIDE_CALL(cudaMemcpy2DAsync, kernel.out[0], bytes(to), kernel.in[0], bytes(from), bytes(d[1]), static_cast<std::size_t>(d[0]),
                      cudaMemcpyDeviceToDevice, stream);
    }
    return {};
}

Result<void> launched(const RingsideKernel& kernel, cudaError_t status) {
    if (status == cudaErrorNotSupported) return badInput(kernel.name, fmt::format("is not done in {}", nameOf(typeOf(kernel))));
    return succeeded(status, kernel.name);
}

/// A sum of no products: C = bias + beta·C.
Result<void> matmulOfNothing(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel) {
    const std::int64_t rows = kernel.dims[0] * kernel.dims[1], n = kernel.dims[2];
    RingsideKernel step{};
    step.op = static_cast<std::uint32_t>(KernelOp::Scale), step.dtype = kernel.dtype, step.name = kernel.name;
    step.in[0] = step.out[0] = kernel.out[0];
    step.dims[0] = rows * n;
    step.scalars[0] = kernel.scalars[1];
    if (kernel.scalars[1] == 0) step.op = static_cast<std::uint32_t>(KernelOp::Fill);
    TRY_VOID(enqueue(device, stream, step));
    if (kernel.in[2] == nullptr) return {};
    step.op = static_cast<std::uint32_t>(KernelOp::AddBias);
    step.in[1] = kernel.in[2];
    step.dims[0] = rows, step.dims[1] = n, step.dims[2] = 1;
    return enqueue(device, stream, step);
}

Result<void> enqueue(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel) {
    const auto& d = kernel.dims;
    switch (opOf(kernel)) {
        case KernelOp::Matmul:
            return d[3] == 0 ? matmulOfNothing(device, stream, kernel) : runMatmul(device, stream, kernel);
        case KernelOp::Convolution: case KernelOp::ConvolutionInputGradient: case KernelOp::ConvolutionWeightGradient:
            return d[0] == 0 ? Result<void>() : runConvolution(device, stream, kernel);
        case KernelOp::Attention: case KernelOp::AttentionGradient:
            return d[0] == 0 || d[1] == 0 ? Result<void>() : runAttention(device, stream, kernel);
        case KernelOp::Copy:
            return d[0] == 0 ? Result<void>() : moveBytes(kernel, stream);
        case KernelOp::CopyStrided:
            return d[0] == 0 || d[1] == 0 ? Result<void>() : moveBytes(kernel, stream);
        case KernelOp::Fill:
            if (d[0] == 0) return {};
            return kernel.scalars[0] == 0 ? moveBytes(kernel, stream) : launched(kernel, launchFill(kernel, stream));
        case KernelOp::Cast: return launched(kernel, launchCast(kernel, stream));
        case KernelOp::LayerNorm: case KernelOp::LayerNormInputGradient: case KernelOp::RmsNorm: case KernelOp::RmsNormInputGradient:
        case KernelOp::Softmax: case KernelOp::SoftmaxGradient: case KernelOp::LogSoftmax: case KernelOp::LogSoftmaxGradient:
            return launched(kernel, launchRows(kernel, stream));
        case KernelOp::ColumnSum: case KernelOp::ChannelSum: case KernelOp::LayerNormWeightGradient: case KernelOp::RmsNormWeightGradient:
        case KernelOp::BatchNormGradient: case KernelOp::SumOverSamples:
            return launched(kernel, launchColumns(kernel, stream));
        case KernelOp::BatchNorm:  // nothing has no mean
            return d[0] == 0 || d[2] == 0 ? Result<void>() : launched(kernel, launchColumns(kernel, stream));
        case KernelOp::NllLoss: case KernelOp::SquaredError: case KernelOp::SumOfSquares: {
            TRY(void* partial, scratchFor(device, stream, kPartials * sizeof(float)));
            return launched(kernel, launchTotal(kernel, stream, static_cast<float*>(partial)));
        }
        case KernelOp::Transpose: case KernelOp::RepeatHeads: case KernelOp::SumRepeatedHeads: case KernelOp::Embedding:
        case KernelOp::EmbeddingGradient: case KernelOp::Rotary:
            return launched(kernel, launchLayout(kernel, stream));
        case KernelOp::MaxPool: case KernelOp::MaxPoolGradient: case KernelOp::AveragePool: case KernelOp::AveragePoolGradient:
            return launched(kernel, launchPooling(kernel, stream));
        default: return launched(kernel, launchElementwise(kernel, stream));
    }
}

}  // namespace

Result<void> runKernel(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel) {
    TRY_VOID(checkKernel(kernel));
    const std::lock_guard lock(device.mutex);
    return enqueue(device, stream, kernel);
}

}  // namespace ringside::cuda
