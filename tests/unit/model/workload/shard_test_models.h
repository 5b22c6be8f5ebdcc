// Models and counting for the tests of sharded workloads.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "model/catalog/model_catalog.h"

namespace ringside {

inline TrainingConfig shardTraining(const char* precision, std::int64_t microBatch, std::int64_t seqLen) {
    TrainingConfig training;
    training.microBatch = microBatch;
    training.seqLen = seqLen;
    training.precision = precisionByName(precision).value();
    return training;
}

inline ModelSpec catalogModel(const std::string& name) {
    static const ModelCatalog catalog = ModelCatalog::builtin().value();
    return catalog.find(name).value();
}

inline ModelShard tensorShard(std::int64_t tp, bool sequenceParallel = false, TensorStyle style = TensorStyle::Megatron) {
    ModelShard shard;
    shard.tp = tp;
    shard.sequenceParallel = sequenceParallel;
    shard.style = style;
    return shard;
}

inline ModelShard contextShard(std::int64_t cp, ContextKind kind = ContextKind::Ring, bool balanced = true, std::int64_t rank = 0) {
    ModelShard shard;
    shard.cp = cp;
    shard.context = kind;
    shard.balanced = balanced;
    shard.cpRank = rank;
    return shard;
}

inline ModelShard expertShard(std::int64_t ep, std::int64_t tp = 1, bool sequenceParallel = false) {
    ModelShard shard = tensorShard(tp, sequenceParallel);
    shard.ep = ep;
    return shard;
}

/// Every collective that a layer's forward (backward) runs, the exchanges of rings included.
inline std::vector<OpCollective> collectivesOf(const LayerType& type, bool backward) {
    std::vector<OpCollective> out;
    for (const Op& op : type.ops) {
        const std::vector<OpCollective>& own = backward ? op.backwardCollectives : op.forwardCollectives;
        out.insert(out.end(), own.begin(), own.end());
        for (int step = 0; step + 1 < op.ring.steps; ++step) out.push_back(op.ring.exchange);
        if (backward)
            for (int exchange = 0; exchange < op.ring.gradientExchanges; ++exchange) out.push_back(op.ring.gradientExchange);
    }
    return out;
}

/// The elements of each of them that is an `op`.
inline std::vector<std::int64_t> elementsOf(const LayerType& type, bool backward, CollectiveOp op) {
    std::vector<std::int64_t> out;
    for (const OpCollective& collective : collectivesOf(type, backward))
        if (collective.op == op) out.push_back(collective.elements);
    return out;
}

inline const Op& shardOp(const LayerType& type, const std::string& name) {
    return *std::find_if(type.ops.begin(), type.ops.end(), [&](const Op& op) { return op.name == name; });
}

/// FLOPs that are done: a causal kernel skips half of those it counts.
inline double flopsDone(const Workload& workload, bool backward) {
    double flops = 0;
    for (std::size_t l = 0; l < workload.layers.size(); ++l)
        for (const Op& op : workload.typeOf(l).ops)
            for (const KernelWork& kernel : backward ? op.backward : op.forward) flops += kernel.flops * (kernel.causal ? 0.5 : 1.0);
    return flops;
}

}  // namespace ringside
