#include "model/workload/image_ops.h"

#include <algorithm>
#include <string>

#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

double bytesOf(const LayerBuilder& layer, int value) { return static_cast<double>(layer.bytes(value)); }
/// Tensor cores work on NHWC; fp32's own kernels take NCHW as it is.
bool onTensorCores(DType math) { return math != DType::Fp32 && math != DType::Fp64; }

double bytesOf(std::int64_t elements, DType type) { return static_cast<double>(elements) * static_cast<double>(sizeOf(type)); }

/// Grouped kernels of tensor cores work on blocks of this many channels, most of which a narrow group leaves unused.
constexpr std::int64_t kGroupBlock = 32;

/// The three kernels of a convolution.
class ConvolutionKernels {
public:
    ConvolutionKernels(const LayerBuilder& layer, const Shape& from, const Shape& to, const ConvolutionShape& window, double bytes)
        : math_(layer.precision().math), window_(window), inPositions_(from[0] * from[2] * from[3]), outPositions_(to[0] * to[2] * to[3]), in_(from[1]), out_(to[1]), bytes_(bytes) {
        const DType type = layer.precision().activation;
        if (layer.images() == MemoryFormat::Contiguous && onTensorCores(math_)) transposed_ = bytesOf(elementCount(from) + elementCount(to), type);
    }

    KernelWork forward() const { return product("convolution", {1, outPositions_, out_, wide(in_) * taps()}); }
    /// A pixel of the input gathers from the windows that saw it: one in stride² of kernel².
    KernelWork inputGradient() const {
        return product("convolution input gradient", {1, inPositions_, in_, std::max<std::int64_t>(1, wide(out_) * taps() / (window_.stride * window_.stride))});
    }
    KernelWork weightGradient() const { return product("convolution weight gradient", {1, out_, wide(in_) * taps(), outPositions_}); }

private:
    std::int64_t taps() const { return window_.kernel * window_.kernel; }
    bool depthwise() const { return window_.groups > 1 && window_.groups == in_; }
    /// Channels that one output is computed from, as a kernel counts them.
    std::int64_t wide(std::int64_t channels) const {
        const std::int64_t own = channels / window_.groups;
        return window_.groups == 1 ? own : std::min(channels, std::max(own, kGroupBlock));
    }

    KernelWork product(std::string_view name, const GemmShape& shape) const {
        const double flops = 2.0 * static_cast<double>(outPositions_) * static_cast<double>(out_) * static_cast<double>(in_ / window_.groups * taps());
        if (depthwise()) {  // no matrix to speak of: every tap of every output is loaded and added by itself
            KernelWork work = memoryWork(name, bytes_);
            work.elements = flops / 2;
            return work;
        }
        KernelWork work = convolutionWork(name, shape, math_, bytes_);
        work.flops = flops;
        work.winograd = window_.kernel == 3 && window_.stride == 1 && window_.groups == 1;
        work.transposedBytes = transposed_;
        return work;
    }

    DType math_;
    ConvolutionShape window_;
    std::int64_t inPositions_, outPositions_, in_, out_;
    double bytes_, transposed_ = 0;
};

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

    const double bytes = bytesOf(layer, input) + bytesOf(layer, y) + bytesOf(weightElements, type);
    const ConvolutionKernels kernels(layer, from, layer.at(y).shape, window, bytes);
    forward.push_back(kernels.forward());
    if (parameters.bias >= 0) forward.push_back(memoryWork("add bias", 2 * bytesOf(layer, y)));
    if (layer.needsGradient(x)) backward.push_back(kernels.inputGradient());
    backward.push_back(kernels.weightGradient());
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
    op.attributes = {window.kernel, window.stride, window.padding, parameters.bias >= 0, window.groups};
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
    KernelWork forward = memoryWork("batch norm", 3 * data + small), backward = memoryWork("batch norm gradient", 5 * data + small);
    if (layer.images() == MemoryFormat::Contiguous) {  // channels_last has kernels of their own that load several channels at once
        forward.elements = 3 * static_cast<double>(elementCount(layer.at(x).shape));
        backward.elements = 5 * static_cast<double>(elementCount(layer.at(x).shape));
    }
    op.forward = {memoryWork("count batches", 16), forward};
    op.backward = {backward};
    op.attributes = {channels};
    return y;
}

int channelScale(LayerBuilder& layer, std::string_view name, int x, int factors) {
    const int y = layer.value(name, layer.at(x).shape, layer.at(x).dtype);
    const double data = bytesOf(layer, x), small = bytesOf(layer, factors);
    Op& op = layer.op(OpKind::ChannelScale, name, {x, factors}, {y});
    op.saves = {x, factors};
    op.forward = {memoryWork("channel scale", 2 * data + small)};
    // dx = dy · factor; d factor is the mean over pixels of dy · x, which is written before it is summed.
    op.backward = {memoryWork("channel scale gradient", 2 * data + small), memoryWork("channel factor gradient", 3 * data), memoryWork("sum over pixels", data + small)};
    return y;
}

int squeezeExcitation(LayerBuilder& layer, std::string_view name, int x, std::int64_t squeezed, OpKind inner, WeightBias squeeze, WeightBias expand) {
    const std::string prefix(name);
    const std::int64_t channels = layer.at(x).shape[1];
    int factors = flatten(layer, prefix + ".flatten", averagePool(layer, prefix + ".avgpool", x, 1));
    factors = activation(layer, prefix + ".activation", inner, linear(layer, prefix + ".fc1", factors, squeezed, squeeze));
    factors = activation(layer, prefix + ".sigmoid", OpKind::Sigmoid, linear(layer, prefix + ".fc2", factors, channels, expand));
    return channelScale(layer, prefix + ".scale", x, factors);
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

int selectTokens(LayerBuilder& layer, std::string_view name, int x, std::int64_t count) {
    const Shape from = layer.at(x).shape;
    const int y = layer.value(name, {from[0], count, from[2]}, layer.at(x).dtype);
    Op& op = layer.op(OpKind::Flatten, name, {x}, {y});
    op.forward = {memoryWork("select tokens", 2 * bytesOf(layer, y))};
    op.backward = {memoryWork("select gradient", bytesOf(layer, x) + 2 * bytesOf(layer, y))};  // zeros, and the chosen rows
    op.attributes = {count};
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
