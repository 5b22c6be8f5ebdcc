// Collective cost: how long one collective takes when its ranks are all there and nothing else uses the links.
//
// nccl_cost.h holds NCCL's own tuning model, gloo_cost.h Gloo's algorithms; this header is what both answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/base/dtype.h"
#include "model/base/result.h"
#include "model/base/units.h"
#include "model/cost/collective_kinds.h"
#include "model/cost/collective_options.h"
#include "model/hardware/cluster.h"

namespace ringside {

struct CollectiveCost {
    double seconds = 0;           ///< latency + bytes / bandwidth
    double latencySeconds = 0;    ///< the part that does not shrink with bytes
    double transferSeconds = 0;   ///< the part that scales with 1 / bandwidth
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::None;
    CollectiveProtocol protocol = CollectiveProtocol::None;
    int channels = 0;             ///< multiprocessors that the collective occupies while it runs
    // Only where it was measured on CPUs (docs/models/cpu-interference.md):
    double cpuSeconds = 0;        ///< processor time of each rank's own core
    double computeSlowdown = 0;   ///< measured factor on kernels beside it; 0: not measured
    double slowdownByCompute = 0; ///< measured factor on it beside kernels; 0: not measured

    bool hasCpuFigures() const { return cpuSeconds > 0 || computeSlowdown > 0 || slowdownByCompute > 0; }
};

/// Factor of nccl-tests: busbw = algbw × factor (2(n−1)/n for all-reduce, (n−1)/n for all-gather, …). 0 for one rank
/// where the factor has n−1 in it. REQUIRES: ranks ≥ 1.
double busBandwidthFactor(CollectiveOp op, std::int64_t ranks);
/// Bytes that one rank sends for the op with the ring (the least any rank must send, for reductions without in-network
/// help). `bytes` counts as nccl-tests does: the total buffer for all-gather and reduce-scatter. Chunks are
/// ceil(bytes / ranks), as NCCL's remainder rule cuts them. Where ranks send
/// differently (the last of a broadcast's chain sends nothing, a scatter's root everything), the figure is their mean. REQUIRES: bytes ≥ 0, ranks ≥ 1.
Bytes bytesSentPerRank(CollectiveOp op, Bytes bytes, std::int64_t ranks);

/// The cost of one group's collectives under either backend: what the simulator and the command line ask.
/// Immutable; copies share the tables. Safe to use from many threads.
class CollectiveModel {
public:
    /// Fails (bad input) where the group does not fit the cluster or a needed figure is missing; the error names it.
    /// What options.measured has for the op, the backend and the link wins over the closed form (measured_collectives.h), unless
    /// an algorithm or protocol is forced.
    static Result<CollectiveModel> create(const Cluster& cluster, const GroupShape& group, CollectiveBackend backend,
                                          const CollectiveOptions& options = {});

    /// One rank, or no bytes, costs nothing. O(1).
    CollectiveCost cost(CollectiveOp op, Bytes bytes) const;
    /// Like cost, but an error where a forced algorithm or protocol cannot do the op (cost() then ignores the force).
    Result<CollectiveCost> checkedCost(CollectiveOp op, Bytes bytes) const;
    /// Every way the backend could do it, in the backend's order of preference (best first).
    std::vector<CollectiveCost> candidates(CollectiveOp op, Bytes bytes) const;
    CollectiveBackend backend() const;

private:
    struct Backends;
    explicit CollectiveModel(std::shared_ptr<const Backends> backends) : backends_(std::move(backends)) {}
    std::shared_ptr<const Backends> backends_;
};

}  // namespace ringside
