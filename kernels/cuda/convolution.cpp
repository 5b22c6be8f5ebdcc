#include "kernels/cuda/convolution.h"

#include <array>
#include <compare>
#include <limits>

#include <fmt/format.h>

#include "kernels/cuda/kernel_math.h"

namespace ringside::cuda {

namespace {

struct DescDeleter {
    void operator()(cudnnTensorDescriptor_t desc) const { cudnnDestroyTensorDescriptor(desc); }
    void operator()(cudnnFilterDescriptor_t desc) const { cudnnDestroyFilterDescriptor(desc); }
    void operator()(cudnnConvolutionDescriptor_t desc) const { cudnnDestroyConvolutionDescriptor(desc); }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, DescDeleter>;

constexpr std::size_t kWorkspaceLimit = std::size_t{512} << 20;

struct Plan {
    Owned<cudnnTensorDescriptor_t> x, y;
    Owned<cudnnFilterDescriptor_t> w;
    Owned<cudnnConvolutionDescriptor_t> convolution;
    int algo = 0;  ///< of the op's own enum
    std::size_t workspace = 0;
};

Result<cudnnDataType_t> elementType(DType type) {
    switch (type) {
        case DType::Fp32: case DType::Tf32: return CUDNN_DATA_FLOAT;
        case DType::Fp16: return CUDNN_DATA_HALF;
        case DType::Bf16: return CUDNN_DATA_BFLOAT16;
        default: return badInput("convolution", fmt::format("takes fp32, tf32, fp16 and bf16; found {}", nameOf(type)));
    }
}

Result<Owned<cudnnTensorDescriptor_t>> tensor(cudnnDataType_t type, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
    cudnnTensorDescriptor_t desc = nullptr;
    RINGSIDE_CALL(cudnnCreateTensorDescriptor, &desc);
    Owned<cudnnTensorDescriptor_t> owned(desc);
    RINGSIDE_CALL(cudnnSetTensor4dDescriptor, desc, CUDNN_TENSOR_NCHW, type, static_cast<int>(n), static_cast<int>(c), static_cast<int>(h), static_cast<int>(w));
    return owned;
}

/// cuDNN lists its algorithms, best first; the first that works within the workspace limit is taken.
template <class Perf>
Result<void> choose(Plan& plan, const Perf* perfs, int count, const char* name) {
    for (int i = 0; i < count; ++i)
        if (perfs[i].status == CUDNN_STATUS_SUCCESS && perfs[i].memory <= kWorkspaceLimit) {
            plan.algo = static_cast<int>(perfs[i].algo);
            return {};
        }
    return failure(ErrorCode::RuntimeFailure, name, "cuDNN has no algorithm for this shape within 512 MiB of workspace");
}

Result<Plan> makePlan(RingsideCudaDevice& device, const RingsideKernel& kernel) {
    const auto& d = kernel.dims;
    const DType dtype = typeOf(kernel);
    TRY(const cudnnDataType_t type, elementType(dtype));
    Plan plan;
    TRY(plan.x, tensor(type, d[0], d[1], d[2], d[3]));
    TRY(plan.y, tensor(type, d[0], d[4], math::pooledSize(d[2], d[5], d[7], d[8]), math::pooledSize(d[3], d[6], d[7], d[8])));
    cudnnFilterDescriptor_t w = nullptr;
    RINGSIDE_CALL(cudnnCreateFilterDescriptor, &w);
    plan.w.reset(w);
    RINGSIDE_CALL(cudnnSetFilter4dDescriptor, w, type, CUDNN_TENSOR_NCHW, static_cast<int>(d[4]), static_cast<int>(d[1]), static_cast<int>(d[5]), static_cast<int>(d[6]));
    cudnnConvolutionDescriptor_t convolution = nullptr;
    RINGSIDE_CALL(cudnnCreateConvolutionDescriptor, &convolution);
    plan.convolution.reset(convolution);
    const int stride = static_cast<int>(d[7]), padding = static_cast<int>(d[8]);
    RINGSIDE_CALL(cudnnSetConvolution2dDescriptor, convolution, padding, padding, stride, stride, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    // FMA math keeps fp32 out of the tensor cores, where it would be rounded to TF32.
    const cudnnMathType_t mathType = dtype == DType::Fp32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
    RINGSIDE_CALL(cudnnSetConvolutionMathType, convolution, mathType);

    int count = 0;
    switch (opOf(kernel)) {
        case KernelOp::Convolution: {
            std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> perfs{};
            RINGSIDE_CALL(cudnnGetConvolutionForwardAlgorithm_v7, device.dnn, plan.x.get(), w, convolution, plan.y.get(), static_cast<int>(perfs.size()), &count, perfs.data());
            TRY_VOID(choose(plan, perfs.data(), count, kernel.name));
            RINGSIDE_CALL(cudnnGetConvolutionForwardWorkspaceSize, device.dnn, plan.x.get(), w, convolution, plan.y.get(),
                          static_cast<cudnnConvolutionFwdAlgo_t>(plan.algo), &plan.workspace);
            return plan;
        }
        case KernelOp::ConvolutionInputGradient: {
            std::array<cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT> perfs{};
            RINGSIDE_CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7, device.dnn, w, plan.y.get(), convolution, plan.x.get(), static_cast<int>(perfs.size()), &count, perfs.data());
            TRY_VOID(choose(plan, perfs.data(), count, kernel.name));
            RINGSIDE_CALL(cudnnGetConvolutionBackwardDataWorkspaceSize, device.dnn, w, plan.y.get(), convolution, plan.x.get(),
                          static_cast<cudnnConvolutionBwdDataAlgo_t>(plan.algo), &plan.workspace);
            return plan;
        }
        default: {
            std::array<cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT> perfs{};
            RINGSIDE_CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7, device.dnn, plan.x.get(), plan.y.get(), convolution, w, static_cast<int>(perfs.size()), &count, perfs.data());
            TRY_VOID(choose(plan, perfs.data(), count, kernel.name));
            RINGSIDE_CALL(cudnnGetConvolutionBackwardFilterWorkspaceSize, device.dnn, plan.x.get(), plan.y.get(), convolution, w,
                          static_cast<cudnnConvolutionBwdFilterAlgo_t>(plan.algo), &plan.workspace);
            return plan;
        }
    }
}

struct PlanKey {
    std::uint32_t op = 0, dtype = 0;
    std::array<std::int64_t, 9> dims{};

    auto operator<=>(const PlanKey&) const = default;
};

}  // namespace

class ConvolutionPlans {
public:
    std::map<PlanKey, Plan> plans;
};

Result<void> runConvolution(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel) {
    PlanKey key{kernel.op, kernel.dtype, {}};
    for (std::size_t i = 0; i < key.dims.size(); ++i) {
        key.dims[i] = kernel.dims[i];
        if (key.dims[i] > std::numeric_limits<int>::max()) return badInput(kernel.name, fmt::format("a dimension of {} is more than cuDNN takes", key.dims[i]));
    }
    if (!device.convolutionPlans) device.convolutionPlans = std::make_shared<ConvolutionPlans>();
    auto found = device.convolutionPlans->plans.find(key);
    if (found == device.convolutionPlans->plans.end()) {
        TRY(Plan plan, makePlan(device, kernel));
        found = device.convolutionPlans->plans.emplace(key, std::move(plan)).first;
    }
    const Plan& plan = found->second;
    TRY(void* workspace, scratchFor(device, stream, plan.workspace));
    RINGSIDE_CALL(cudnnSetStream, device.dnn, stream);
    const float alpha = 1, none = 0, beta = static_cast<float>(kernel.scalars[0]);
    switch (opOf(kernel)) {
        case KernelOp::Convolution:
            RINGSIDE_CALL(cudnnConvolutionForward, device.dnn, &alpha, plan.x.get(), kernel.in[0], plan.w.get(), kernel.in[1], plan.convolution.get(),
                          static_cast<cudnnConvolutionFwdAlgo_t>(plan.algo), workspace, plan.workspace, &none, plan.y.get(), kernel.out[0]);
            return {};
        case KernelOp::ConvolutionInputGradient:
            RINGSIDE_CALL(cudnnConvolutionBackwardData, device.dnn, &alpha, plan.w.get(), kernel.in[1], plan.y.get(), kernel.in[0], plan.convolution.get(),
                          static_cast<cudnnConvolutionBwdDataAlgo_t>(plan.algo), workspace, plan.workspace, &none, plan.x.get(), kernel.out[0]);
            return {};
        default:
            RINGSIDE_CALL(cudnnConvolutionBackwardFilter, device.dnn, &alpha, plan.x.get(), kernel.in[0], plan.y.get(), kernel.in[1], plan.convolution.get(),
                          static_cast<cudnnConvolutionBwdFilterAlgo_t>(plan.algo), workspace, plan.workspace, &beta, plan.w.get(), kernel.out[0]);
            return {};
    }
}

}  // namespace ringside::cuda
