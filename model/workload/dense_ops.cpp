#include "model/workload/dense_ops.h"

#include <algorithm>

#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

double bytesOf(std::int64_t elements, DType type) { return static_cast<double>(elements) * static_cast<double>(sizeOf(type)); }
double bytesOf(const LayerBuilder& layer, int value) { return static_cast<double>(layer.bytes(value)); }

/// The arithmetic of a linear layer's products.
DType productType(const Precision& precision, bool isHead) { return isHead && precision.math == DType::Fp8 ? precision.activation : precision.math; }

}  // namespace

int castIfNeeded(LayerBuilder& layer, std::string_view name, int x, DType type, std::vector<KernelWork>& kernels) {
    if (layer.at(x).dtype == type) return x;
    const int cast = layer.value(name, layer.at(x).shape, type);
    kernels.push_back(memoryWork("cast", bytesOf(layer, x) + bytesOf(layer, cast)));
    return cast;
}

int linear(LayerBuilder& layer, std::string_view name, int x, std::int64_t out, WeightBias parameters, LinearOptions options) {
    const Precision& precision = layer.precision();
    const DType type = precision.activation;
    const std::int64_t in = layer.at(x).shape.back();
    const std::int64_t rows = elementCount(layer.at(x).shape) / in;
    const std::int64_t weightElements = layer.parameterAt(parameters.weight).elements();

    std::vector<KernelWork> forward, backward;
    forward.reserve(4);
    backward.reserve(6);
    // Autocast casts the input at every use, and each weight once per forward (its cache). The casts are what is saved.
    const int input = castIfNeeded(layer, "x.cast", x, type, forward);
    const bool castsWeight = precision.autocast && precision.parameter != type;
    int castWeight = -1;
    const double weightCastBytes = bytesOf(weightElements, precision.parameter) + bytesOf(weightElements, type);
    const double biasCastBytes = bytesOf(out, precision.parameter) + bytesOf(out, type);
    if (castsWeight) {
        castWeight = layer.value("weight.cast", layer.parameterAt(parameters.weight).shape, type);
        layer.markCached(castWeight);
        forward.push_back(memoryWork("cast weight", weightCastBytes));
        if (parameters.bias >= 0) forward.push_back(memoryWork("cast bias", biasCastBytes));
    }

    Shape shape = layer.at(x).shape;
    shape.back() = out;
    const int y = layer.value(name, std::move(shape), type);

    // Eight bits: the input and the output's gradient are quantised for each product, by rows and by columns. Weights are quantised once a
    // step, which is nothing beside the rest.
    const DType math = productType(precision, options.isHead);
    const int launches = options.launchesEach ? static_cast<int>(options.groups) : 1;
    const auto quantised = [&](std::string_view what, int value, std::int64_t elements) {
        KernelWork work = memoryWork(what, bytesOf(layer, value) + 2 * bytesOf(elements, math));
        work.launches = launches;
        return work;
    };
    if (math == DType::Fp8) {
        forward.push_back(quantised("quantise input", input, rows * in));
        backward.push_back(quantised("quantise gradient", y, rows * out));
    }

    // Experts get equal shares of the rows; the FLOPs are those of all rows even where the shares are not whole.
    const std::int64_t share = std::max<std::int64_t>(1, rows / options.groups);
    const double exact = static_cast<double>(rows) / static_cast<double>(share * options.groups);
    const auto product = [&](std::string_view what, std::int64_t m, std::int64_t n, std::int64_t k, bool columnsOfA = false) {
        KernelWork work = gemmWork(what, {options.groups, m, n, k, columnsOfA}, math, type);
        work.flops *= exact;
        work.launches = launches;
        return work;
    };
    forward.push_back(product("linear", share, out, in));

    if (layer.needsGradient(x)) backward.push_back(product("linear input gradient", share, in, out));
    backward.push_back(product("linear weight gradient", out, in, share, true));
    if (parameters.bias >= 0) backward.push_back(memoryWork("bias gradient", bytesOf(layer, y) + bytesOf(out, type)));
    if (castsWeight) {
        backward.push_back(memoryWork("cast weight gradient", weightCastBytes));
        if (parameters.bias >= 0) backward.push_back(memoryWork("cast bias gradient", biasCastBytes));
    }
    if (input != x && layer.needsGradient(x))
        backward.push_back(memoryWork("cast input gradient", bytesOf(layer, x) + bytesOf(layer, input)));

    Op& op = layer.op(OpKind::Linear, name, {x}, {y});
    if (input != x) op.outputs.push_back(input);
    if (castWeight >= 0) op.outputs.push_back(castWeight);
    if (options.inputGathered)
        op.backwardCollectives = {{CollectiveOp::AllGather, MeshAxis::Tensor, rows * in, type}};
    else
        op.saves = {input};
    if (castWeight >= 0) op.saves.push_back(castWeight);
    if (input == x && layer.needsGradient(x)) op.inputGradientKernels = math == DType::Fp8 ? 2 : 1;
    op.parameters = {parameters.weight};
    if (parameters.bias >= 0) {
        // As measured with PyTorch 2.15 (docs/models/workloads.md): the bias is ready first, for nn.Linear and for Conv1D. Under
        // autocast, where both come through a cast, nn.Linear's weight is; Conv1D's bias stays first.
        const bool weightFirst = castsWeight && !options.weightIsInByOut;
        op.parameters.insert(weightFirst ? op.parameters.end() : op.parameters.begin(), parameters.bias);
    }
    op.forward = std::move(forward);
    op.backward = std::move(backward);
    op.attributes = {in, out, parameters.bias >= 0, options.weightIsInByOut, options.groups};
    return y;
}

namespace {

/// An RMS norm of several kernels: x.float(), its mean square, the product with 1/rms, back to x's type, times the weight. Autograd keeps the
/// fp32 copy (of the square and of the product) and the normed values (of the product with the weight).
int eagerRmsNorm(LayerBuilder& layer, std::string_view name, int x, WeightBias parameters) {
    const std::int64_t features = layer.at(x).shape.back();
    const std::int64_t rows = elementCount(layer.at(x).shape) / features;
    const DType type = layer.precision().autocast ? DType::Fp32 : layer.at(x).dtype;
    std::vector<KernelWork> forward, backward;
    const int wide = castIfNeeded(layer, "x.fp32", x, DType::Fp32, forward);
    const int normed = layer.value("normed", layer.at(x).shape, type, false);
    const int y = layer.value(name, layer.at(x).shape, type);
    const int statistics = layer.value("rstd", {rows, 1}, DType::Fp32, false);
    const double whole = bytesOf(rows * features, DType::Fp32), data = bytesOf(layer, y), small = bytesOf(layer, statistics);
    const bool narrows = type != DType::Fp32;

    forward.push_back(memoryWork("square", 2 * whole));
    forward.push_back(memoryWork("mean", whole + small));
    forward.push_back(memoryWork("add", 2 * small));
    forward.push_back(memoryWork("rsqrt", 2 * small));
    forward.push_back(memoryWork("normalise", 2 * whole + small));
    if (narrows) forward.push_back(memoryWork("cast", whole + data));
    forward.push_back(memoryWork("scale", 2 * data));

    backward.push_back(memoryWork("scale gradient", 2 * data));          // of the normed values
    backward.push_back(memoryWork("scale gradient", 3 * data));          // of the weight, row by row …
    backward.push_back(memoryWork("norm weight gradient", data));        // … and their sum
    if (narrows) backward.push_back(memoryWork("cast gradient", whole + data));
    backward.push_back(memoryWork("normalise gradient", 2 * whole + small));
    backward.push_back(memoryWork("normalise gradient", 3 * whole));     // of rstd, element by element …
    backward.push_back(memoryWork("rstd gradient", whole + 4 * small));  // … its sum, through the root and the mean
    backward.push_back(memoryWork("square gradient", 2 * whole));
    backward.push_back(memoryWork("add gradient", 3 * whole));
    if (wide != x) backward.push_back(memoryWork("cast input gradient", whole + bytesOf(layer, x)));

    Op& op = layer.op(OpKind::Norm, name, {x}, {y, statistics, normed});
    if (wide != x) op.outputs.push_back(wide);
    op.saves = {wide, statistics, normed};
    op.parameters = {parameters.weight};
    op.forward = std::move(forward);
    op.backward = std::move(backward);
    op.forwardWorkspace = static_cast<Bytes>(whole);       // the square, then the product
    op.backwardWorkspace = 2 * static_cast<Bytes>(whole);  // two fp32 gradients at a time beside the one that is handed on
    op.attributes = {features, true, false, true};
    return y;
}

}  // namespace

int norm(LayerBuilder& layer, std::string_view name, int x, bool rms, WeightBias parameters, NormKernel kernel) {
    if (rms && kernel == NormKernel::Eager) return eagerRmsNorm(layer, name, x, parameters);
    const std::int64_t features = layer.at(x).shape.back();
    const std::int64_t rows = elementCount(layer.at(x).shape) / features;
    std::vector<KernelWork> forward, backward;
    const DType type = layer.precision().autocast ? DType::Fp32 : layer.at(x).dtype;
    const int input = castIfNeeded(layer, "x.cast", x, type, forward);
    const int y = layer.value(name, layer.at(x).shape, type);
    const int statistics = layer.value(rms ? "rstd" : "mean,rstd", {rows, rms ? 1 : 2}, DType::Fp32, false);

    const double data = bytesOf(layer, y), small = bytesOf(layer, statistics);
    const double weights = bytesOf(features * (parameters.bias >= 0 ? 2 : 1), layer.precision().parameter);
    forward.push_back(memoryWork(rms ? "rms norm" : "layer norm", 2 * data + small + weights));
    backward.push_back(memoryWork("norm input gradient", 3 * data + small + weights));
    backward.push_back(memoryWork("norm weight gradient", 2 * data + small + weights));
    if (input != x) backward.push_back(memoryWork("cast input gradient", bytesOf(layer, x) + bytesOf(layer, input)));

    Op& op = layer.op(OpKind::Norm, name, {x}, {y, statistics});
    if (input != x) op.outputs.push_back(input);
    op.saves = {input, statistics};
    op.parameters = {parameters.weight};
    if (parameters.bias >= 0) op.parameters.push_back(parameters.bias);
    op.forward = std::move(forward);
    op.backward = std::move(backward);
    op.attributes = {features, rms, parameters.bias >= 0};
    return y;
}

int activation(LayerBuilder& layer, std::string_view name, OpKind kind, int x) {
    const int y = layer.value(name, layer.at(x).shape, layer.at(x).dtype, layer.needsGradient(x));
    const double data = bytesOf(layer, x);
    Op& op = layer.op(kind, name, {x}, {y});
    op.saves = {kind == OpKind::Relu || kind == OpKind::Tanh || kind == OpKind::Sigmoid ? y : x};
    op.forward = {memoryWork(nameOf(kind), 2 * data)};
    op.backward = {memoryWork("activation gradient", 3 * data)};
    return y;
}

int gatedActivation(LayerBuilder& layer, std::string_view name, OpKind kind, int gate, int up, GatedKernel kernel) {
    const bool fused = up < 0;
    Shape shape = layer.at(gate).shape;
    if (fused) shape.back() /= 2;
    const std::int64_t features = shape.back();
    const DType type = layer.at(gate).dtype;
    const std::int64_t which = kind == OpKind::Silu ? 0 : kind == OpKind::Gelu ? 1 : 2;
    if (kernel != GatedKernel::Eager) {  // act(gate) exists in registers only; backward computes it again
        const int y = layer.value(name, std::move(shape), type);
        const double data = bytesOf(layer, y);
        Op& op = fused ? layer.op(OpKind::GatedSilu, name, {gate}, {y}) : layer.op(OpKind::GatedSilu, name, {gate, up}, {y});
        op.saves = op.inputs;
        op.forward = {memoryWork("gated activation", 3 * data)};
        op.backward = {memoryWork("gated activation gradient", 5 * data)};
        op.gradientOverSaved = kernel == GatedKernel::FusedInPlace;
        op.attributes = {features, which, fused, true};
        return y;
    }
    const int activated = layer.value("act(gate)", shape, type);
    const int y = layer.value(name, std::move(shape), type);
    const double data = bytesOf(layer, y);

    // Eager autograd: the activation saves the gate, the product saves both of its factors.
    Op& op =
        fused ? layer.op(OpKind::GatedSilu, name, {gate}, {y, activated}) : layer.op(OpKind::GatedSilu, name, {gate, up}, {y, activated});
    op.saves = fused ? std::vector<int>{gate, activated} : std::vector<int>{gate, activated, up};
    op.forward = {memoryWork(nameOf(kind), 2 * data), memoryWork("multiply", 3 * data)};
    op.backward = {memoryWork("multiply gradient", 3 * data), memoryWork("multiply gradient", 3 * data),
                   memoryWork("activation gradient", 3 * data)};
    if (fused) op.backward.push_back(memoryWork("concat gradient", 4 * data));  // of the two halves
    op.attributes = {features, which, fused};
    return y;
}

int add(LayerBuilder& layer, std::string_view name, int a, int b) {
    const int wide = sizeOf(layer.at(a).dtype) >= sizeOf(layer.at(b).dtype) ? a : b;
    const int y = layer.value(name, layer.at(a).shape, layer.at(wide).dtype);
    const double all = bytesOf(layer, a) + bytesOf(layer, b) + bytesOf(layer, y);
    std::vector<KernelWork> backward;  // the gradient itself goes on to both sides; only another type needs a kernel
    for (const int side : {a, b})
        if (layer.at(side).dtype != layer.at(y).dtype && layer.needsGradient(side))
            backward.push_back(memoryWork("cast gradient", bytesOf(layer, y) + bytesOf(layer, side)));
    Op& op = layer.op(OpKind::Add, name, {a, b}, {y});
    op.forward = {memoryWork("add", all)};
    op.backward = std::move(backward);
    op.gradientInPlace = op.backward.empty();
    return y;
}

int dropout(LayerBuilder& layer, std::string_view name, int x) {
    const int y = layer.value(name, layer.at(x).shape, layer.at(x).dtype);
    const int mask = layer.value("mask", layer.at(x).shape, DType::Bool, false);
    const double all = bytesOf(layer, x) + bytesOf(layer, y) + bytesOf(layer, mask);
    Op& op = layer.op(OpKind::Dropout, name, {x}, {y, mask});
    op.saves = {mask};
    op.forward = {memoryWork("dropout", all)};
    op.backward = {memoryWork("dropout gradient", all)};
    return y;
}

int embedding(LayerBuilder& layer, std::string_view name, int tokens, int table, std::int64_t shards) {
    const int y = embedding(layer, name, layer.at(tokens).shape, table, shards);
    layer.lastOp().inputs = layer.lastOp().saves = {tokens};
    return y;
}

int embedding(LayerBuilder& layer, std::string_view name, Shape tokens, int table, std::int64_t shards) {
    const Shape rows = layer.parameterAt(table).shape;
    const DType type = layer.precision().parameter;
    const double indices = bytesOf(elementCount(tokens), DType::Int64);
    tokens.push_back(rows[1]);
    const int y = layer.value(name, std::move(tokens), type);
    const double data = bytesOf(layer, y), dense = bytesOf(rows[0] * rows[1], type);
    Op& op = layer.op(OpKind::Embedding, name, {}, {y});
    op.parameters = {table};
    op.forward = {memoryWork("embedding", 2 * data + indices)};
    op.backward = {memoryWork("embedding gradient fill", dense), memoryWork("embedding gradient", 3 * data + indices)};
    if (shards > 1) {
        // Tokens of other parts look up row 0; their rows are zeroed, and so are their gradients.
        const double others = data * static_cast<double>(shards - 1) / static_cast<double>(shards);
        op.forward.insert(op.forward.begin(), memoryWork("mask tokens", 3 * indices));
        op.forward.push_back(memoryWork("zero masked rows", others));
        op.backward.insert(op.backward.begin(), memoryWork("zero masked gradients", others));
    }
    op.attributes = {rows[0], rows[1]};
    return y;
}

int positionEmbedding(LayerBuilder& layer, std::string_view name, int x, int table) {
    const Shape rows = layer.parameterAt(table).shape;
    const Shape& shape = layer.at(x).shape;
    const std::int64_t length = shape[shape.size() - 2];
    const DType type = layer.precision().parameter;
    const DType result = sizeOf(layer.at(x).dtype) >= sizeOf(type) ? layer.at(x).dtype : type;
    const int y = layer.value(name, layer.at(x).shape, result);
    const double chosen = bytesOf(length * rows[1], type);
    Op& op = layer.op(OpKind::PositionEmbedding, name, {x}, {y});
    op.parameters = {table};
    op.forward = {memoryWork("position embedding", 2 * chosen), memoryWork("add", bytesOf(layer, x) + chosen + bytesOf(layer, y))};
    op.backward = {memoryWork("sum over samples", bytesOf(layer, y) + chosen),
                   memoryWork("embedding gradient fill", bytesOf(rows[0] * rows[1], type)), memoryWork("embedding gradient", 3 * chosen)};
    op.gradientInPlace = layer.at(x).dtype == result;
    if (!op.gradientInPlace) op.backward.push_back(memoryWork("cast gradient", bytesOf(layer, y) + bytesOf(layer, x)));
    op.attributes = {rows[0], rows[1]};
    return y;
}

}  // namespace ringside
