#include "sim/study/goodput.h"

#include <algorithm>
#include <cmath>

namespace ringside {
namespace {

constexpr double kShortestInterval = 1;  // seconds: about a step; nobody takes checkpoints more often

}  // namespace

Result<CheckpointCost> checkpointCost(Bytes stateBytes, const Cluster& cluster, const CheckpointModel& model) {
    const double bytes = static_cast<double>(stateBytes);
    const double rate = model.gbPerS.value_or(kStorageGbPerSPerNode * static_cast<double>(cluster.nodeCount())) * 1e9;
    const double whole = model.seconds.value_or(bytes / rate);
    if (!model.async) return CheckpointCost{whole, 0};
    // Every device copies an equal share: what data-parallel replicas hold in common is split among them.
    double slowest = 0;
    for (const NodeGroup& group : cluster.nodes) {
        TRY(const double pcie, pcieRateGbPerS(group.kind.device));
        slowest = std::max(slowest, bytes / static_cast<double>(cluster.deviceCount()) / (pcie * 1e9));
    }
    return CheckpointCost{std::min(slowest, whole), whole};
}

double youngInterval(double checkpointSeconds, double mtbfSeconds) { return std::sqrt(2 * checkpointSeconds * mtbfSeconds); }

double dalyInterval(double checkpointSeconds, double mtbfSeconds) {
    const double half = checkpointSeconds / (2 * mtbfSeconds);
    if (half >= 1) return mtbfSeconds;
    return youngInterval(checkpointSeconds, mtbfSeconds) * (1 + std::sqrt(half) / 3 + half / 9) - checkpointSeconds;
}

double goodputAt(double interval, const CheckpointCost& cost, double restartSeconds, double mtbfSeconds) {
    const double perFailure = restartSeconds + cost.writeSeconds;
    return interval / (mtbfSeconds * std::exp(perFailure / mtbfSeconds) * std::expm1((interval + cost.blockingSeconds) / mtbfSeconds));
}

Goodput bestGoodput(std::int64_t devices, const CheckpointCost& cost, const FailureModel& failures) {
    Goodput best;
    best.mtbfSeconds = failures.deviceMtbfHours * 3600 / static_cast<double>(devices);
    best.checkpoint = cost;
    best.restartSeconds = failures.restartSeconds;
    best.youngSeconds = youngInterval(cost.blockingSeconds, best.mtbfSeconds);
    const double daly = cost.blockingSeconds > 0 ? dalyInterval(cost.blockingSeconds, best.mtbfSeconds) : 0;
    best.intervalSeconds = std::max({daly, cost.writeSeconds, kShortestInterval});
    best.goodput = goodputAt(best.intervalSeconds, cost, failures.restartSeconds, best.mtbfSeconds);
    return best;
}

}  // namespace ringside
