#include "kernels/cpu/cpu_kernels.h"

#include <array>
#include <cstddef>
#include <new>

#include <fmt/format.h>

#include "kernels/kernel_signature.h"

namespace ringside {

namespace {

enum class Takes { Fp32, Fp32AndBf16, AnyType };

struct Entry {
    KernelBody body;
    Takes types = Takes::Fp32;
};

// In the order of KernelOp.
constexpr std::array<Entry, static_cast<std::size_t>(KernelOp::Count)> kKernels = {{
    {cpu::matmul, Takes::Fp32AndBf16},
    {cpu::columnSum, Takes::Fp32AndBf16},
    {cpu::addBias},
    {cpu::channelSum},
    {cpu::convolution, Takes::Fp32AndBf16},
    {cpu::convolutionInputGradient, Takes::Fp32AndBf16},
    {cpu::convolutionWeightGradient, Takes::Fp32AndBf16},
    {cpu::layerNorm},
    {cpu::layerNormInputGradient},
    {cpu::layerNormWeightGradient},
    {cpu::rmsNorm},
    {cpu::rmsNormInputGradient},
    {cpu::rmsNormWeightGradient},
    {cpu::batchNorm},
    {cpu::batchNormGradient},
    {cpu::softmax},
    {cpu::softmaxGradient},
    {cpu::activation},
    {cpu::activationGradient},
    {cpu::add, Takes::Fp32AndBf16},
    {cpu::multiply},
    {cpu::axpy, Takes::Fp32AndBf16},
    {cpu::scale, Takes::Fp32AndBf16},
    {cpu::fill, Takes::AnyType},
    {cpu::copy, Takes::AnyType},
    {cpu::cast, Takes::AnyType},
    {cpu::copyStrided, Takes::AnyType},
    {cpu::transpose, Takes::AnyType},
    {cpu::mask},
    {cpu::repeatHeads},
    {cpu::sumRepeatedHeads},
    {cpu::dropout},
    {cpu::dropoutGradient},
    {cpu::embedding},
    {cpu::embeddingGradient},
    {cpu::addRows},
    {cpu::sumOverSamples},
    {cpu::rotary},
    {cpu::attention},
    {cpu::attentionGradient},
    {cpu::maxPool},
    {cpu::maxPoolGradient},
    {cpu::averagePool},
    {cpu::averagePoolGradient},
    {cpu::logSoftmax},
    {cpu::logSoftmaxGradient},
    {cpu::nllLoss},
    {cpu::nllLossGradient},
    {cpu::squaredError},
    {cpu::sumOfSquares},
    {cpu::lerp},
    {cpu::multiplyAccumulate},
    {cpu::squareRoot},
    {cpu::addScalar},
    {cpu::divideAccumulate},
    {cpu::adamFused},
    {cpu::sgdFused},
}};
static_assert(kKernels.back().body == cpu::sgdFused, "a line per op");

}  // namespace

Result<void> runKernel(KernelThread& thread, const KernelCall& call) {
    TRY_VOID(checkOperands(call));
    const Entry& entry = kKernels[static_cast<std::size_t>(call.op)];
    const bool takes = entry.types == Takes::AnyType || call.dtype == DType::Fp32 || (entry.types == Takes::Fp32AndBf16 && call.dtype == DType::Bf16);
    if (!takes)
        return badCall(call, fmt::format("the CPU has no kernel for {}; expected {}", nameOf(call.dtype), entry.types == Takes::Fp32 ? "fp32" : "fp32 or bf16"));
    try {
        return entry.body(thread, call);
    } catch (const dnnl::error& error) {
        return failure(ErrorCode::RuntimeFailure, std::string(nameOf(call.op)), fmt::format("oneDNN failed: {}", error.what()));
    } catch (const std::bad_alloc&) {
        return failure(ErrorCode::RuntimeFailure, std::string(nameOf(call.op)), "no memory left for the kernel's scratch");
    }
}

}  // namespace ringside
