#include "model/workload/image_ops.h"

#include <string>

#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

double bytesOf(const LayerBuilder& layer, int value) { return static_cast<double>(layer.bytes(value)); }
double bytesOf(std::int64_t elements, DType type) { return static_cast<double>(elements) * static_cast<double>(sizeOf(type)); }

}  // namespace

std::int64_t windowed(std::int64_t extent, const ConvolutionShape& window) {
    return (extent + 2 * window.padding - window.kernel) / window.stride + 1;
}

int convolution(LayerBuilder& layer, std::string_view name, int x, std::int64_t channels, const ConvolutionShape& window,
                WeightBias parameters) {
    const Precision& precision = layer.precision();
    const DType type = precision.activation;
    const Shape from = layer.at(x).shape;
    const std::int64_t rows = windowed(from[2], window), columns = windowed(from[3], window);
    const std::int64_t weightElements = layer.parameterAt(parameters.weight).elements();

    std::vector<KernelWork> forward, backward;
    const int input = castIfNeeded(layer, "x.cast", x, type, forward);
    const bool castsWeight = precision.autocast && precision.parameter != type;
    const double weightCastBytes = bytesOf(weightElements, precision.parameter) + bytesOf(weightElements, type);
    int castWeight = -1;
    if (castsWeight) {
        castWeight = layer.value("weight.cast", layer.parameterAt(parameters.weight).shape, type);
        forward.push_back(memoryWork("cast weight", weightCastBytes));
    }
    const int y = layer.value(name, {from[0], channels, rows, columns}, type);

    const std::int64_t positions = from[0] * rows * columns, patch = from[1] * window.kernel * window.kernel;
    const double bytes = bytesOf(layer, input) + bytesOf(layer, y) + bytesOf(weightElements, type);
    forward.push_back(convolutionWork("convolution", {1, positions, channels, patch}, precision.math, bytes));
    if (parameters.bias >= 0) forward.push_back(memoryWork("add bias", 2 * bytesOf(layer, y)));
    if (layer.needsGradient(x))
        backward.push_back(convolutionWork("convolution input gradient", {1, positions, patch, channels}, precision.math, bytes));
    backward.push_back(convolutionWork("convolution weight gradient", {1, channels, patch, positions}, precision.math, bytes));
    if (parameters.bias >= 0) backward.push_back(memoryWork("bias gradient", bytesOf(layer, y)));
    if (castsWeight) backward.push_back(memoryWork("cast weight gradient", weightCastBytes));
    if (input != x && layer.needsGradient(x))
        backward.push_back(memoryWork("cast input gradient", bytesOf(layer, x) + bytesOf(layer, input)));

    Op& op = layer.op(OpKind::Convolution, name, {x}, {y});
    if (input != x) op.outputs.push_back(input);
    if (castWeight >= 0) op.outputs.push_back(castWeight);
    op.saves = {input};
    if (castWeight >= 0) op.saves.push_back(castWeight);
    op.parameters = {parameters.weight};
    if (parameters.bias >= 0) op.parameters.push_back(parameters.bias);
    op.forward = std::move(forward);
    op.backward = std::move(backward);
    op.attributes = {window.kernel, window.stride, window.padding, parameters.bias >= 0};
    return y;
}

int batchNorm(LayerBuilder& layer, std::string_view name, int x, WeightBias parameters) {
    const std::int64_t channels = layer.at(x).shape[1];
    const std::string prefix(name);
    layer.buffer(prefix + ".running_mean", {channels}, DType::Fp32);
    layer.buffer(prefix + ".running_var", {channels}, DType::Fp32);
    layer.buffer(prefix + ".num_batches_tracked", {}, DType::Int64);
    const int y = layer.value(name, layer.at(x).shape, layer.at(x).dtype);
    const int statistics = layer.value("mean,invstd", {channels, 2}, DType::Fp32, false);
    const double data = bytesOf(layer, x), small = bytesOf(channels * 6, DType::Fp32);
    Op& op = layer.op(OpKind::BatchNorm, name, {x}, {y, statistics});
    op.saves = {x, statistics};
    op.parameters = {parameters.weight, parameters.bias};
    // A channel does not fit on chip, so its statistics cost a pass of their own: x is read twice, and in backward x and dy too.
    op.forward = {memoryWork("count batches", 16), memoryWork("batch norm", 3 * data + small)};
    op.backward = {memoryWork("batch norm gradient", 5 * data + small)};
    op.attributes = {channels};
    return y;
}

int maxPool(LayerBuilder& layer, std::string_view name, int x, const ConvolutionShape& window) {
    const Shape from = layer.at(x).shape;
    const Shape to{from[0], from[1], windowed(from[2], window), windowed(from[3], window)};
    const int y = layer.value(name, to, layer.at(x).dtype);
    const int indices = layer.value("indices", to, DType::Int64, false);
    const double all = bytesOf(layer, x) + bytesOf(layer, y) + bytesOf(layer, indices);
    Op& op = layer.op(OpKind::MaxPool, name, {x}, {y, indices});
    op.saves = {x, indices};
    op.forward = {memoryWork("max pool", all)};
    op.backward = {memoryWork("max pool gradient", all)};
    op.attributes = {window.kernel, window.stride, window.padding};
    return y;
}

int averagePool(LayerBuilder& layer, std::string_view name, int x, std::int64_t size) {
    const Shape from = layer.at(x).shape;
    const int y = layer.value(name, {from[0], from[1], size, size}, layer.at(x).dtype);
    const double all = bytesOf(layer, x) + bytesOf(layer, y);
    Op& op = layer.op(OpKind::AveragePool, name, {x}, {y});
    if (size > 1) op.saves = {x};  // to one pixel it is a mean, which keeps only the shape
    op.forward = {memoryWork("average pool", all)};
    op.backward = {memoryWork("average pool gradient", all)};
    op.attributes = {size};
    return y;
}

int flatten(LayerBuilder& layer, std::string_view name, int x) {
    const Shape& from = layer.at(x).shape;
    const int y = layer.value(name, {from[0], elementCount(from) / from[0]}, layer.at(x).dtype);
    layer.op(OpKind::Flatten, name, {x}, {y}).gradientInPlace = true;
    return y;
}

int firstToken(LayerBuilder& layer, std::string_view name, int x) {
    const Shape from = layer.at(x).shape;
    const int y = layer.value(name, {from[0], from[2]}, layer.at(x).dtype);
    Op& op = layer.op(OpKind::Flatten, name, {x}, {y});
    op.backward = {memoryWork("select gradient", bytesOf(layer, x) + bytesOf(layer, y))};  // zeros, and one row per sample
    op.attributes = {1};
    return y;
}

int patchesToTokens(LayerBuilder& layer, std::string_view name, int x, int classToken) {
    const Shape from = layer.at(x).shape;
    // Joining with the class token promotes to the wider type.
    const DType parameter = layer.precision().parameter;
    const DType type = sizeOf(layer.at(x).dtype) >= sizeOf(parameter) ? layer.at(x).dtype : parameter;
    const int y = layer.value(name, {from[0], from[2] * from[3] + 1, from[1]}, type);
    const double all = bytesOf(layer, x) + bytesOf(layer, y);
    Op& op = layer.op(OpKind::Concat, name, {x}, {y});
    op.parameters = {classToken};
    op.forward = {memoryWork("concat", all)};
    op.backward = {memoryWork("concat gradient", all), memoryWork("class token gradient", bytesOf(from[0] * from[1], type))};
    op.attributes = {1};
    return y;
}

}  // namespace ringside
