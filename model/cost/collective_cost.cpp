#include "model/cost/collective_cost.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "model/base/check.h"
#include "model/cost/gloo_cost.h"
#include "model/cost/measured_collectives.h"
#include "model/cost/nccl_cost.h"

namespace ringside {

double busBandwidthFactor(CollectiveOp op, std::int64_t ranks) {
    CHECK(ranks >= 1);
    const double n = static_cast<double>(ranks);
    switch (op) {
        case CollectiveOp::AllReduce: return 2 * (n - 1) / n;
        case CollectiveOp::AllGather:
        case CollectiveOp::ReduceScatter:
        case CollectiveOp::AllToAll:
        case CollectiveOp::Gather:
        case CollectiveOp::Scatter: return (n - 1) / n;
        case CollectiveOp::Broadcast:
        case CollectiveOp::Reduce:
        case CollectiveOp::SendRecv: return 1;
    }
    return 1;
}

Bytes bytesSentPerRank(CollectiveOp op, Bytes bytes, std::int64_t ranks) {
    CHECK(bytes >= 0 && ranks >= 1);
    if (ranks == 1) return 0;
    const Bytes chunk = (bytes + ranks - 1) / ranks;
    switch (op) {
        case CollectiveOp::AllReduce: return 2 * (ranks - 1) * chunk;
        case CollectiveOp::AllGather:
        case CollectiveOp::ReduceScatter:
        case CollectiveOp::AllToAll:
        case CollectiveOp::Broadcast:
        case CollectiveOp::Reduce: return (ranks - 1) * chunk;
        case CollectiveOp::Gather:
        case CollectiveOp::Scatter: return (ranks - 1) * chunk / ranks;
        case CollectiveOp::SendRecv: return bytes;
    }
    return bytes;
}

namespace {

using ClosedForm = std::variant<NcclModel, GlooModel>;

Result<ClosedForm> closedForm(const Cluster& cluster, const GroupShape& group, CollectiveBackend backend, const CollectiveOptions& options) {
    if (backend == CollectiveBackend::Gloo) {
        TRY(auto gloo, GlooModel::create(cluster, group, options.gloo));
        return ClosedForm(std::move(gloo));
    }
    TRY(auto nccl, NcclModel::create(cluster, group, options.nccl));
    return ClosedForm(std::move(nccl));
}

CollectiveCost closedCost(const ClosedForm& form, CollectiveOp op, Bytes bytes) {
    return std::visit([&](const auto& model) { return model.cost(op, bytes); }, form);
}

bool isForced(CollectiveBackend backend, const CollectiveOptions& options) {
    if (backend == CollectiveBackend::Gloo) return options.gloo.algorithm.has_value();
    return options.nccl.algorithm || options.nccl.protocol;
}

/// The group with another number of ranks, laid out as before.
GroupShape withRanks(GroupShape shape, std::int64_t ranks) {
    if (shape.nodes == 1) {
        shape.ranksPerNode = ranks;
    } else {
        shape.ranksPerNode = std::min(shape.ranksPerNode, ranks);
        shape.nodes = (ranks + shape.ranksPerNode - 1) / shape.ranksPerNode;
    }
    shape.ranks = ranks;
    return shape;
}

}  // namespace

struct CollectiveModel::Backends {
    ClosedForm model;
    MeasuredCollectives measured;
    std::map<std::int64_t, ClosedForm> elsewhere;  ///< by number of ranks: the closed form where a curve was measured
    std::int64_t ranks = 1;
    double networkScale = 1;

    CollectiveCost corrected(CollectiveCost cost, CollectiveOp op, Bytes bytes) const {
        const CollectiveCurve* curve = measured.curveFor(op);
        if (!curve || ranks <= 1 || bytes <= 0) return cost;
        const MeasuredTime time = measuredTime(*curve, bytes);
        double factor = 1, cpuFactor = 1;
        if (curve->ranks != ranks) {
            const auto there = elsewhere.find(curve->ranks);
            const double reference = there == elsewhere.end() ? 0 : closedCost(there->second, op, bytes).seconds;
            if (!(reference > 0)) return cost;
            factor = cost.seconds / reference;  // a what-if factor is in both and cancels: it is put on once, below
            cpuFactor = busBandwidthFactor(op, ranks) / busBandwidthFactor(op, curve->ranks);
        }
        cost.latencySeconds = factor * time.fixedSeconds;
        cost.transferSeconds = factor * (time.seconds - time.fixedSeconds) / networkScale;
        cost.seconds = cost.latencySeconds + cost.transferSeconds;
        cost.cpuSeconds = cpuFactor * (curve->cpuSecondsPerCall + curve->cpuSecondsPerByte * static_cast<double>(bytes));
        cost.computeSlowdown = curve->computeSlowdown;
        cost.slowdownByCompute = curve->slowdownByCompute;
        return cost;
    }
};

Result<CollectiveModel> CollectiveModel::create(const Cluster& cluster, const GroupShape& group, CollectiveBackend backend,
                                                const CollectiveOptions& options) {
    TRY(ClosedForm form, closedForm(cluster, group, backend, options));
    Backends backends{std::move(form), {}, {}, group.ranks, options.networkScale};
    if (options.measured && !isForced(backend, options)) {
        backends.measured = MeasuredCollectives(*options.measured, backend, linkNameOf(cluster, group), group.ranks);
        for (const std::int64_t ranks : backends.measured.otherRankCounts())
            if (auto other = closedForm(cluster, withRanks(group, ranks), backend, options)) backends.elsewhere.emplace(ranks, std::move(*other));
    }
    return CollectiveModel(std::make_shared<const Backends>(std::move(backends)));
}

CollectiveCost CollectiveModel::cost(CollectiveOp op, Bytes bytes) const { return backends_->corrected(closedCost(backends_->model, op, bytes), op, bytes); }

Result<CollectiveCost> CollectiveModel::checkedCost(CollectiveOp op, Bytes bytes) const {
    if (const auto* nccl = std::get_if<NcclModel>(&backends_->model)) {
        TRY(const CollectiveCost cost, nccl->checkedCost(op, bytes));
        return backends_->corrected(cost, op, bytes);
    }
    return cost(op, bytes);
}

std::vector<CollectiveCost> CollectiveModel::candidates(CollectiveOp op, Bytes bytes) const {
    std::vector<CollectiveCost> costs = std::visit([&](const auto& model) { return model.candidates(op, bytes); }, backends_->model);
    if (!costs.empty()) costs.front() = backends_->corrected(costs.front(), op, bytes);
    return costs;
}

CollectiveBackend CollectiveModel::backend() const {
    return std::holds_alternative<NcclModel>(backends_->model) ? CollectiveBackend::Nccl : CollectiveBackend::Gloo;
}

}  // namespace ringside
