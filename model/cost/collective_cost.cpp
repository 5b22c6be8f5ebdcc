#include "model/cost/collective_cost.h"

#include <utility>
#include <variant>

#include "model/base/check.h"
#include "model/cost/gloo_cost.h"
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

struct CollectiveModel::Backends {
    std::variant<NcclModel, GlooModel> model;
};

Result<CollectiveModel> CollectiveModel::create(const Cluster& cluster, const GroupShape& group, CollectiveBackend backend,
                                                const CollectiveOptions& options) {
    if (backend == CollectiveBackend::Gloo) {
        TRY(auto gloo, GlooModel::create(cluster, group, options.gloo));
        return CollectiveModel(std::make_shared<const Backends>(Backends{std::move(gloo)}));
    }
    TRY(auto nccl, NcclModel::create(cluster, group, options.nccl));
    return CollectiveModel(std::make_shared<const Backends>(Backends{std::move(nccl)}));
}

CollectiveCost CollectiveModel::cost(CollectiveOp op, Bytes bytes) const {
    if (const auto* nccl = std::get_if<NcclModel>(&backends_->model)) return nccl->cost(op, bytes);
    return std::get<GlooModel>(backends_->model).cost(op, bytes);
}

Result<CollectiveCost> CollectiveModel::checkedCost(CollectiveOp op, Bytes bytes) const {
    if (const auto* nccl = std::get_if<NcclModel>(&backends_->model)) return nccl->checkedCost(op, bytes);
    return std::get<GlooModel>(backends_->model).cost(op, bytes);
}

std::vector<CollectiveCost> CollectiveModel::candidates(CollectiveOp op, Bytes bytes) const {
    if (const auto* nccl = std::get_if<NcclModel>(&backends_->model)) return nccl->candidates(op, bytes);
    return std::get<GlooModel>(backends_->model).candidates(op, bytes);
}

CollectiveBackend CollectiveModel::backend() const {
    return std::holds_alternative<NcclModel>(backends_->model) ? CollectiveBackend::Nccl : CollectiveBackend::Gloo;
}

}  // namespace ringside
