#include "model/workload/tensor_overlap.h"

#include <algorithm>
#include <numeric>

namespace ringside {
namespace {

constexpr std::int64_t kScatterPieces = 4;  // num_splits of Transformer Engine's method "pipeline"
constexpr std::int64_t kStreams = 3;        // _NUM_MAX_UB_STREAMS: so many pieces of a product may run at a time

/// One kernel becomes `pieces` of equally many rows.
void cutRows(std::vector<KernelWork>& kernels, std::size_t at, std::int64_t pieces) {
    KernelWork piece = kernels[at];
    const auto columns = static_cast<double>(piece.shape.n), depth = static_cast<double>(piece.shape.k), rows = static_cast<double>(piece.shape.m);
    const double share = 1.0 / static_cast<double>(pieces);
    // Each piece reads the weight again.
    piece.bytes *= (rows * share * (depth + columns) + columns * depth) / (rows * (depth + columns) + columns * depth);
    piece.flops *= share;
    piece.shape.m /= pieces;
    piece.beside = static_cast<int>(std::min(kStreams, pieces));
    kernels[at] = piece;
    kernels.insert(kernels.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::size_t>(pieces - 1), piece);
}

bool isDense(const Op& op) { return op.kind == OpKind::Linear && op.attributes[4] <= 1 && op.inputGradientKernels > 0; }

void cutForward(Op& product, Op& collective, std::int64_t pieces) {
    if (pieces <= 1) return;
    cutRows(product.forward, product.forward.size() - 1, pieces);
    product.forwardPieces = collective.forwardPieces = static_cast<int>(pieces);
}

void cutBackward(Op& product, Op& collective, std::int64_t pieces) {
    if (pieces <= 1) return;
    cutRows(product.backward, static_cast<std::size_t>(product.inputGradientKernels) - 1, pieces);
    product.inputGradientKernels += static_cast<int>(pieces) - 1;
    product.backwardPieces = collective.backwardPieces = static_cast<int>(pieces);
}

}  // namespace

void overlapTensorCollectives(LayerType& layer, std::int64_t ranks) {
    for (std::size_t o = 0; o + 1 < layer.ops.size(); ++o) {
        Op &first = layer.ops[o], &second = layer.ops[o + 1];
        if (second.inputs.empty() || first.outputs.empty() || second.inputs.front() != first.outputs.front()) continue;
        if (first.kind == OpKind::SequenceGather && isDense(second)) {
            cutForward(second, first, ranks);
        } else if (second.kind == OpKind::SequenceScatter && isDense(first)) {
            cutForward(first, second, std::gcd(kScatterPieces, first.forward.back().shape.m));
            cutBackward(first, second, ranks);
        }
    }
}

}  // namespace ringside
