// NCCL's tuning model: every (algorithm, protocol) has a latency and a bandwidth derived from the topology; the fastest wins.
//
// Source and derivation: docs/models/nccl.md.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/cost/collective_cost.h"
#include "model/cost/nccl_real_time.h"
#include "model/hardware/cluster.h"

namespace ringside {

/// The model of one communicator: topology-derived bandwidths and latencies, computed once per group shape.
/// Immutable value; safe to use from many threads.
class NcclModel {
public:
    /// Fails (bad input) where the node kind lacks a figure (for example the NVLink rate), naming it.
    static Result<NcclModel> create(const Cluster& cluster, const GroupShape& group, const NcclOptions& options = {});

    /// Cost of the pair that NCCL picks: the fastest by NCCL's own estimate, before the options' scales, what is really achieved
    /// and other groups' share of the NICs. `bytes` counts as nccl-tests does. One rank, or no bytes, costs nothing.
    /// A forced algorithm or protocol that cannot do the op is ignored here; checkedCost reports it. O(1), no allocation.
    CollectiveCost cost(CollectiveOp op, Bytes bytes) const;
    /// Like cost, but an error where the forced algorithm or protocol is not available for the op in this group.
    Result<CollectiveCost> checkedCost(CollectiveOp op, Bytes bytes) const;
    /// Every allowed pair in NCCL's order of preference (its own estimate), which is what `ringside collective --verbose`
    /// shows. Empty where a forced pair is not available.
    std::vector<CollectiveCost> candidates(CollectiveOp op, Bytes bytes) const;

private:
    enum class Correction : std::uint8_t { None, Tree, NvlsTree };

    // One (algorithm, protocol) for one op: time = latency + bytes / bandwidth, as NCCL estimates it.
    struct Way {
        CollectiveAlgorithm algorithm = CollectiveAlgorithm::None;
        CollectiveProtocol protocol = CollectiveProtocol::None;
        double latencyUs = 0;
        double plateauLatencyUs = 0;      // from plateauBytes on
        Bytes plateauBytes = 0;
        double usPerByte = 0;
        double fillUsPerByte = 0;         // pipeline fill of point-to-point: the first chunk counts twice …
        Bytes fillBytes = 0;              // … up to this size
        double transferScale = 1;         // real over estimated: scales of the profile, share of the NICs
        Correction correction = Correction::None;
        int maxChannels = 1;
        Bytes bytesPerChannel = 1;        // a channel less below each multiple; 0: always maxChannels
        bool forced = true;               // agrees with what is forced
        nccl::AchievedTerms real;         // only with options.achieved
    };
    struct Estimate {
        double latencyUs = 0, transferUs = 0, fillUs = 0;

        double us() const { return latencyUs + transferUs + fillUs; }
    };

    friend class NcclModelBuilder;
    static bool onPlateau(const Way& way, Bytes bytes) { return way.plateauBytes > 0 && bytes >= way.plateauBytes; }
    static Estimate estimate(const Way& way, Bytes bytes);
    Estimate realTime(const Way& way, Bytes bytes) const;
    CollectiveCost toCost(const Way& way, Bytes bytes) const;
    const Way* best(CollectiveOp op, Bytes bytes, bool onlyForced) const;

    std::array<std::vector<Way>, kCollectiveOps> ways_;
    std::array<bool, kCollectiveOps> forceWorks_{};
    double latencyScale_ = 1;
    NcclOptions options_;
    std::int64_t ranks_ = 1;
};

}  // namespace ringside
