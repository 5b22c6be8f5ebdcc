#include "model/workload/loss_ops.h"

#include <algorithm>
#include <bit>

#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

double bytesOf(std::int64_t elements, DType type) { return static_cast<double>(elements) * static_cast<double>(sizeOf(type)); }
double bytesOf(const LayerBuilder& layer, int value) { return static_cast<double>(layer.bytes(value)); }

/// PyTorch's own: an fp32 copy, fp32 log-probabilities, which are kept, and in backward a gradient of each.
int eagerLoss(LayerBuilder& layer, int logits) {
    std::vector<KernelWork> forward, backward;
    const int upcast = castIfNeeded(layer, "logits.fp32", logits, DType::Fp32, forward);
    const std::int64_t classes = layer.at(logits).shape.back();
    const int logProbabilities = layer.value("log_probs", layer.at(logits).shape, DType::Fp32, false);
    const int loss = layer.value("loss", {1}, DType::Fp32);
    const double data = bytesOf(layer, logProbabilities);
    const double perRow = data / static_cast<double>(classes);
    forward.push_back(memoryWork("log softmax", 2 * data));
    forward.push_back(memoryWork("nll loss", 3 * perRow));
    backward.push_back(memoryWork("nll loss gradient", data));
    backward.push_back(memoryWork("log softmax gradient", 3 * data));
    if (upcast != logits) backward.push_back(memoryWork("cast gradient", bytesOf(layer, logits) + bytesOf(layer, upcast)));
    Op& op = layer.op(OpKind::CrossEntropy, "loss", {logits}, {loss, logProbabilities});
    if (upcast != logits) op.outputs.push_back(upcast);
    op.saves = {logProbabilities};
    op.forward = std::move(forward);
    op.backward = std::move(backward);
    // The gradients of the log-probabilities and of the fp32 logits exist together; what is handed on comes after them.
    op.backwardWorkspace = 2 * layer.bytes(logProbabilities) - layer.bytes(logits);
    op.attributes = {classes};
    return loss;
}

/// One kernel reads the logits in their own type, which are kept; their gradient is of that type too, or is written over them.
int fusedLoss(LayerBuilder& layer, int logits, LossKernel kernel) {
    const std::int64_t classes = layer.at(logits).shape.back();
    const int loss = layer.value("loss", {1}, DType::Fp32);
    const double data = bytesOf(layer, logits);
    Op& op = layer.op(OpKind::CrossEntropy, "loss", {logits}, {loss});
    op.saves = {logits};
    op.gradientOverSaved = kernel == LossKernel::FusedInPlace;
    op.forward = {memoryWork("fused loss", op.gradientOverSaved ? 3 * data : data)};  // in place, forward writes the gradient already
    op.backward = {memoryWork("fused loss gradient", 2 * data)};
    op.attributes = {classes, static_cast<std::int64_t>(kernel)};
    return loss;
}

/// Each makes an fp32 copy and log-probabilities of it. Training loops compute them when backward has freed the activations (Composer does), so they
/// raise no peak; here they stand beside the loss, as nothing else of a step knows the logits.
void addMetrics(LayerBuilder& layer, int logits, std::int64_t metrics) {
    const Value& value = layer.at(logits);
    const double elements = static_cast<double>(elementCount(value.shape));
    const Bytes copy = value.dtype == DType::Fp32 ? 0 : elementCount(value.shape) * sizeOf(DType::Fp32);
    Op& op = layer.lastOp();
    for (std::int64_t i = 0; i < metrics; ++i) {
        if (copy > 0) op.forward.push_back(memoryWork("metric cast", bytesOf(layer, logits) + static_cast<double>(copy)));
        op.forward.push_back(memoryWork("metric log softmax", 2 * elements * static_cast<double>(sizeOf(DType::Fp32))));
    }
}

}  // namespace

int crossEntropy(LayerBuilder& layer, int logits, LossKernel kernel, std::int64_t metrics) {
    const bool fused = kernel == LossKernel::Fused || kernel == LossKernel::FusedInPlace;
    const int loss = fused ? fusedLoss(layer, logits, kernel) : eagerLoss(layer, logits);
    if (metrics > 0) addMetrics(layer, logits, metrics);
    return loss;
}

// Chunks are so many tokens that their logits take about as much as the input: the power of two from tokens / (vocabulary / width) on.
int fusedLinearLoss(LayerBuilder& layer, std::string_view name, int x, std::int64_t classes, WeightBias parameters) {
    const Precision& precision = layer.precision();
    const DType type = precision.activation, math = precision.math == DType::Fp8 ? type : precision.math;
    const std::int64_t in = layer.at(x).shape.back(), rows = elementCount(layer.at(x).shape) / in;
    const std::int64_t factor = (classes + in - 1) / in;
    const auto wanted = static_cast<std::uint64_t>((rows + factor - 1) / factor);
    const std::int64_t chunk = std::min(rows, static_cast<std::int64_t>(std::bit_ceil(wanted)));
    const auto chunks = static_cast<double>((rows + chunk - 1) / chunk);

    std::vector<KernelWork> forward;
    const int input = castIfNeeded(layer, "x.cast", x, type, forward);
    const int inputGradient = layer.value("loss.input_gradient", layer.at(x).shape, type, false);
    const int weightGradient = layer.value("loss.weight_gradient", layer.parameterAt(parameters.weight).shape, precision.parameter, false);
    const int loss = layer.value("loss", {1}, DType::Fp32);
    const double logits = bytesOf(rows * classes, type);
    forward.push_back(gemmWork("linear", {1, rows, classes, in}, math, type));
    forward.push_back(memoryWork("fused loss", 3 * logits));
    forward.push_back(gemmWork("linear input gradient", {1, rows, in, classes}, math, type));
    forward.push_back(gemmWork("linear weight gradient", {1, classes, in, rows, true}, math, type));
    forward.push_back(memoryWork("add", 3 * chunks * bytesOf(layer, weightGradient)));  // one sum per chunk
    Op& op = layer.op(OpKind::CrossEntropy, name, {x}, {loss, inputGradient, weightGradient});
    if (input != x) op.outputs.push_back(input);
    op.saves = {inputGradient, weightGradient};
    op.parameters = {parameters.weight};
    op.forward = std::move(forward);
    op.backward = {memoryWork("scale gradient", 2 * bytesOf(layer, inputGradient)), memoryWork("scale gradient", 2 * bytesOf(layer, weightGradient))};
    op.forwardWorkspace = chunk * classes * sizeOf(type) + layer.bytes(weightGradient);  // a chunk's logits and its share of the weight's gradient
    op.attributes = {classes, static_cast<std::int64_t>(LossKernel::FusedLinear)};
    return loss;
}

}  // namespace ringside
