// Parallel ops: what a sharded model does between its ops so that ranks see each other's parts. Each function appends one op
// and returns the value it writes. Formulas: docs/models/model-shards.md.
#pragma once

#include <string_view>

#include "model/workload/layer_builder.h"

namespace ringside {

/// Entry of a tensor-parallel region (Megatron's f): x in `type` as it is; backward all-reduces its gradient.
int tensorCopy(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks, DType type);

/// Exit of a tensor-parallel region (Megatron's g): all-reduces partial sums; backward hands the gradient on.
int tensorReduce(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks);

/// Joins the parts of the last extent: all-gather; backward takes this rank's part.
int tensorGather(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks);

/// What a SequenceGather's gradient is on each rank: partial (backward reduce-scatters it), or the same on all (it takes its part).
enum class GatheredGradient : std::uint8_t { Partial, Same };

/// Joins the parts of the last extent but one: all-gather, in `type`. `keepsPiece`: saves this rank's part, for linear layers
/// that gather again in backward (LinearOptions::inputGathered).
int sequenceGather(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks, DType type, bool keepsPiece,
                   GatheredGradient gradient = GatheredGradient::Partial);

/// Sums over the ranks and keeps this rank's part of the last extent but one: reduce-scatter; backward all-gathers.
/// REQUIRES: the extent divides by `ranks`.
int sequenceScatter(LayerBuilder& layer, std::string_view name, int x, std::int64_t ranks);

/// Exchanges parts over `axis`; the result has `shape`. Packs before sending where `packs` (backward unpacks).
/// REQUIRES: shape has as many elements as x.
int allToAll(LayerBuilder& layer, std::string_view name, int x, Shape shape, MeshAxis axis, std::int64_t ranks, bool packs);

/// Mean cross-entropy of logits whose classes are split over the tensor axis: all-reduces of each row's maximum, sum of
/// exponentials and target logit, fp32. Returns the loss (one element).
int vocabParallelCrossEntropy(LayerBuilder& layer, int logits, std::int64_t ranks, bool fused);

}  // namespace ringside
