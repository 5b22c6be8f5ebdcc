// Stand-in for libcudnn (no GPU): NCHW convolutions and their gradients as plain loops over host memory, in fp32.
#include <array>
#include <string>

#include <cudnn.h>

#include "tests/gpu/stand_in/stand_in.h"

struct cudnnTensorStruct {
    std::array<int, 4> dims{};
    cudnnDataType_t type{};
};
struct cudnnFilterStruct {
    std::array<int, 4> dims{};
};
struct cudnnConvolutionStruct {
    int padding = 0, stride = 1;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};
struct cudnnContext {
    cudaStream_t stream = nullptr;
};

namespace {

template <class T>
cudnnStatus_t made(T** handle) {
    *handle = new T{};
    return CUDNN_STATUS_SUCCESS;
}
template <class T>
cudnnStatus_t dropped(T* handle) {
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

/// body(x index, w index, y index) for every product of the convolution.
template <class Body>
void everyProduct(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y, Body body) {
    const auto [n, ci, h, width] = x->dims;
    const auto [co, unused, kh, kw] = w->dims;
    const int oh = y->dims[2], ow = y->dims[3];
    for (int s = 0; s < n; ++s)
        for (int o = 0; o < co; ++o)
            for (int r = 0; r < oh; ++r)
                for (int q = 0; q < ow; ++q)
                    for (int i = 0; i < ci; ++i)
                        for (int a = 0; a < kh; ++a)
                            for (int b = 0; b < kw; ++b) {
                                const int row = r * convolution->stride + a - convolution->padding, column = q * convolution->stride + b - convolution->padding;
                                if (row >= 0 && row < h && column >= 0 && column < width)
                                    body(((s * ci + i) * h + row) * width + column, ((o * ci + i) * kh + a) * kw + b, ((s * co + o) * oh + r) * ow + q);
                            }
}

void scale(void* memory, const std::array<int, 4>& dims, const void* beta) {
    const float factor = *static_cast<const float*>(beta);
    for (int i = 0; i < dims[0] * dims[1] * dims[2] * dims[3]; ++i) static_cast<float*>(memory)[i] = factor == 0 ? 0 : static_cast<float*>(memory)[i] * factor;
}

template <class Perf>
cudnnStatus_t oneAlgorithm(cudnnTensorDescriptor_t x, cudnnConvolutionDescriptor_t convolution, int* count, Perf* perfs) {
    standInNote(("convolution math " + std::to_string(static_cast<int>(convolution->math))).c_str());
    perfs[0] = {};
    perfs[0].status = x->type == CUDNN_DATA_FLOAT ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t sized(std::size_t* bytes) {
    *bytes = 1024;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t called(cudnnHandle_t handle, const char* function) {
    standInNote((std::string(function) + " stream " + std::to_string(standInStreamNumber(handle->stream))).c_str());
    int code = 0;
    return standInFails(function, &code) ? static_cast<cudnnStatus_t>(code) : CUDNN_STATUS_SUCCESS;
}
float at(const void* memory, int i) { return static_cast<const float*>(memory)[i]; }

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    int code = 0;
    if (standInFails("cudnnCreate", &code)) return static_cast<cudnnStatus_t>(code);
    return made(handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return dropped(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
std::size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_STATUS_OF_THE_STAND_IN"; }

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* desc) { return made(desc); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc) { return dropped(desc); }
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t, cudnnDataType_t type, int n, int c, int h, int w) {
    desc->dims = {n, c, h, w};
    desc->type = type;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* desc) { return made(desc); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc) { return dropped(desc); }
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t, cudnnTensorFormat_t, int k, int c, int h, int w) {
    desc->dims = {k, c, h, w};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* desc) { return made(desc); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc) { return dropped(desc); }
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int padH, int, int strideH, int, int, int, cudnnConvolutionMode_t mode, cudnnDataType_t) {
    if (mode != CUDNN_CROSS_CORRELATION) return CUDNN_STATUS_NOT_SUPPORTED;
    desc->padding = padH, desc->stride = strideH;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t math) {
    desc->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t convolution,
                                                     cudnnTensorDescriptor_t, int, int* count, cudnnConvolutionFwdAlgoPerf_t* perfs) {
    return oneAlgorithm(x, convolution, count, perfs);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t convolution,
                                                          cudnnTensorDescriptor_t x, int, int* count, cudnnConvolutionBwdDataAlgoPerf_t* perfs) {
    return oneAlgorithm(x, convolution, count, perfs);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t convolution,
                                                            cudnnFilterDescriptor_t, int, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* perfs) {
    return oneAlgorithm(x, convolution, count, perfs);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t,
                                                      cudnnConvolutionFwdAlgo_t, std::size_t* bytes) {
    return sized(bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
                                                           cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgo_t, std::size_t* bytes) {
    return sized(bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
                                                             cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgo_t, std::size_t* bytes) {
    return sized(bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t xDesc, const void* x, cudnnFilterDescriptor_t wDesc, const void* w,
                                      cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t, void*, std::size_t, const void* beta, cudnnTensorDescriptor_t yDesc,
                                      void* y) {
    if (const cudnnStatus_t status = called(handle, "cudnnConvolutionForward"); status != CUDNN_STATUS_SUCCESS) return status;
    scale(y, yDesc->dims, beta);
    everyProduct(xDesc, wDesc, convolution, yDesc, [&](int i, int j, int k) { static_cast<float*>(y)[k] += at(x, i) * at(w, j); });
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*, cudnnFilterDescriptor_t wDesc, const void* w, cudnnTensorDescriptor_t dyDesc, const void* dy,
                                           cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdDataAlgo_t, void*, std::size_t, const void* beta,
                                           cudnnTensorDescriptor_t dxDesc, void* dx) {
    if (const cudnnStatus_t status = called(handle, "cudnnConvolutionBackwardData"); status != CUDNN_STATUS_SUCCESS) return status;
    scale(dx, dxDesc->dims, beta);
    everyProduct(dxDesc, wDesc, convolution, dyDesc, [&](int i, int j, int k) { static_cast<float*>(dx)[i] += at(w, j) * at(dy, k); });
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t xDesc, const void* x, cudnnTensorDescriptor_t dyDesc, const void* dy,
                                             cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdFilterAlgo_t, void*, std::size_t, const void* beta,
                                             cudnnFilterDescriptor_t dwDesc, void* dw) {
    if (const cudnnStatus_t status = called(handle, "cudnnConvolutionBackwardFilter"); status != CUDNN_STATUS_SUCCESS) return status;
    scale(dw, dwDesc->dims, beta);
    everyProduct(xDesc, dwDesc, convolution, dyDesc, [&](int i, int j, int k) { static_cast<float*>(dw)[j] += at(x, i) * at(dy, k); });
    return CUDNN_STATUS_SUCCESS;
}
}
