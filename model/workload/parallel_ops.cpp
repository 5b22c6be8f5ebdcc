#include "model/workload/parallel_ops.h"

#include <utility>

#include "model/base/check.h"
#include "model/workload/dense_ops.h"
#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

double bytesOf(const LayerBuilder& layer, int value) { return static_cast<double>(layer.bytes(value)); }

OpCollective collectiveOn(const LayerBuilder& layer, CollectiveOp op, MeshAxis axis, int value) {
    return {op, axis, elementCount(layer.at(value).shape), layer.at(value).dtype};
}

/// The extent that is split: tokens, in [b, s, h] and in [rows, h].
std::size_t tokenExtent(const Shape& shape) { return shape.size() - 2; }

// A collective moves the type that the next op reads, so autocast's cast comes before it; backward casts after it.
struct Cast {
    int value;
    std::vector<KernelWork> forward, backward;
};
Cast castFirst(LayerBuilder& layer, int x, DType type) {
    Cast cast{x, {}, {}};
    cast.value = castIfNeeded(layer, "x.cast", x, type, cast.forward);
    if (cast.value != x) cast.backward.push_back(memoryWork("cast input gradient", bytesOf(layer, x) + bytesOf(layer, cast.value)));
    return cast;
}

}  // namespace

int tensorCopy(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks, DType type) {
    std::vector<KernelWork> forward, backward;
    const bool casts = layer.at(x).dtype != type;
    const int y = layer.value(name, layer.at(x).shape, type);
    if (casts) {
        forward.push_back(memoryWork("cast", bytesOf(layer, x) + bytesOf(layer, y)));
        backward.push_back(memoryWork("cast input gradient", bytesOf(layer, x) + bytesOf(layer, y)));
    }
    Op& op = layer.op(OpKind::TensorCopy, name, {x}, {y});
    op.forward = std::move(forward);
    op.backward = std::move(backward);
    op.backwardCollectives = {collectiveOn(layer, CollectiveOp::AllReduce, MeshAxis::Tensor, y)};
    op.gradientInPlace = !casts;
    op.attributes = {ranks};
    return y;
}

int tensorReduce(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks) {
    const int y = layer.value(name, layer.at(x).shape, layer.at(x).dtype);
    Op& op = layer.op(OpKind::TensorReduce, name, {x}, {y});
    op.forwardCollectives = {collectiveOn(layer, CollectiveOp::AllReduce, MeshAxis::Tensor, y)};
    op.gradientInPlace = true;
    op.attributes = {ranks};
    return y;
}

int tensorGather(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks) {
    Shape whole = layer.at(x).shape;
    whole.back() *= ranks;
    // The parts arrive one after the other; joining them along the last extent is a copy of its own.
    const int parts = layer.value("parts", whole, layer.at(x).dtype);
    {
        Op& op = layer.op(OpKind::TensorGather, name, {x}, {parts});
        op.forwardCollectives = {collectiveOn(layer, CollectiveOp::AllGather, MeshAxis::Tensor, parts)};
        op.backward = {memoryWork("take own part", 2 * bytesOf(layer, x))};
        op.attributes = {ranks};
    }
    const int y = layer.value(name, std::move(whole), layer.at(x).dtype);
    Op& op = layer.op(OpKind::Concat, name, {parts}, {y});
    op.forward = {memoryWork("concat", 2 * bytesOf(layer, y))};
    op.gradientInPlace = true;
    op.attributes = {static_cast<std::int64_t>(layer.at(y).shape.size()) - 1};
    return y;
}

int sequenceGather(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks, DType type, bool keepsPiece, GatheredGradient gradient) {
    Cast cast = castFirst(layer, x, type);
    Shape whole = layer.at(x).shape;
    whole[tokenExtent(whole)] *= ranks;
    const int y = layer.value(name, std::move(whole), type);
    Op& op = layer.op(OpKind::SequenceGather, name, {x}, {y});
    if (cast.value != x) op.outputs.push_back(cast.value);
    if (keepsPiece) op.saves = {cast.value};
    op.forward = std::move(cast.forward);
    op.forwardCollectives = {collectiveOn(layer, CollectiveOp::AllGather, MeshAxis::Tensor, y)};
    if (gradient == GatheredGradient::Partial)
        op.backwardCollectives = {collectiveOn(layer, CollectiveOp::ReduceScatter, MeshAxis::Tensor, y)};
    else
        op.backward = {memoryWork("take own part", 2 * bytesOf(layer, cast.value))};
    op.backward.insert(op.backward.end(), cast.backward.begin(), cast.backward.end());
    op.attributes = {ranks};
    return y;
}

int sequenceScatter(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks) {
    Shape part = layer.at(x).shape;
    CHECK(part[tokenExtent(part)] % ranks == 0);
    part[tokenExtent(part)] /= ranks;
    const int y = layer.value(name, std::move(part), layer.at(x).dtype);
    Op& op = layer.op(OpKind::SequenceScatter, name, {x}, {y});
    op.forwardCollectives = {collectiveOn(layer, CollectiveOp::ReduceScatter, MeshAxis::Tensor, x)};
    op.backwardCollectives = {collectiveOn(layer, CollectiveOp::AllGather, MeshAxis::Tensor, x)};
    op.attributes = {ranks};
    return y;
}

int allToAll(LayerBuilder& layer, std::string_view name, int x, Shape shape, MeshAxis axis, std::int64_t ranks, bool packs) {
    CHECK(elementCount(shape) == elementCount(layer.at(x).shape));
    const int y = layer.value(name, std::move(shape), layer.at(x).dtype);
    Op& op = layer.op(OpKind::AllToAll, name, {x}, {y});
    if (packs) {
        op.forward = {memoryWork("pack", 2 * bytesOf(layer, x))};
        op.backward = {memoryWork("unpack", 2 * bytesOf(layer, x))};
    }
    op.forwardCollectives = op.backwardCollectives = {collectiveOn(layer, CollectiveOp::AllToAll, axis, y)};
    op.attributes = {ranks};
    return y;
}

// Megatron works in place on one fp32 copy of the logits (a fused loss on the logits themselves): less the maximum, exponentiated, normalised, and at last their gradient.
int vocabParallelCrossEntropy(LayerBuilder& layer, int logits, std::int64_t ranks, bool fused) {
    const std::int64_t classes = layer.at(logits).shape.back();
    const std::int64_t rows = elementCount(layer.at(logits).shape) / classes;
    const auto overTensor = [&](int value) { return collectiveOn(layer, CollectiveOp::AllReduce, MeshAxis::Tensor, value); };
    std::vector<KernelWork> forward;
    const int work = fused ? logits : castIfNeeded(layer, "logits.fp32", logits, DType::Fp32, forward);
    const double data = bytesOf(layer, work);
    // All three ops read the logits; only the last one brings a gradient.
    layer.consumersWriteParts(work);

    const int maximum = layer.value("logits.max", {rows}, DType::Fp32, false);
    const double perRow = bytesOf(layer, maximum);
    {
        Op& op = layer.op(OpKind::LogitsMax, "loss.max", {logits}, {maximum});
        if (work != logits) {
            op.outputs.push_back(work);
            op.backward = {memoryWork("cast gradient", bytesOf(layer, logits) + data)};
        }
        op.forward = std::move(forward);
        op.forward.push_back(memoryWork("row maximum", data + perRow));
        op.forwardCollectives = {overTensor(maximum)};
        op.gradientInPlace = work == logits;
        op.attributes = {classes, ranks};
    }
    const int sum = layer.value("logits.sum", {rows}, DType::Fp32, false);
    const int target = layer.value("logits.target", {rows}, DType::Fp32, false);
    {
        Op& op = layer.op(OpKind::LogitsSum, "loss.sum", {work, maximum}, {sum, target});
        op.forward = {memoryWork("subtract maximum", 2 * data + perRow), memoryWork("target logit", 3 * perRow),
                      memoryWork("exponentials", 2 * data), memoryWork("row sum", data + perRow)};
        op.forwardCollectives = {overTensor(target), overTensor(sum)};
        op.gradientInPlace = true;
        op.attributes = {classes, ranks};
    }
    const int loss = layer.value("loss", {1}, DType::Fp32);
    Op& op = layer.op(OpKind::CrossEntropy, "loss", {work, sum}, {loss});
    op.inputs.push_back(target);
    op.saves = {work};
    op.forward = {memoryWork("row loss", 3 * perRow), memoryWork("normalize", 2 * data + perRow)};
    op.backward = {memoryWork("cross-entropy gradient", 2 * data + perRow)};
    op.gradientOverSaved = true;
    op.attributes = {classes};
    return loss;
}

}  // namespace ringside
