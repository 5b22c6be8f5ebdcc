#include "model/cost/nccl_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "model/cost/nccl_constants.h"
#include "model/cost/nccl_formulas.h"
#include "model/cost/nccl_topology.h"

namespace ringside {

NcclModel::Estimate NcclModel::estimate(const Way& way, Bytes bytes) {
    double usPerByte = way.usPerByte;
    if (way.correction == Correction::Tree) {
        usPerByte /= nccl::treeCorrection(way.protocol, bytes);
    } else if (way.correction == Correction::NvlsTree) {
        usPerByte /= nccl::nvlsTreeCorrection(bytes);
    }
    return {onPlateau(way, bytes) ? way.plateauLatencyUs : way.latencyUs, static_cast<double>(bytes) * usPerByte,
            static_cast<double>(std::min(bytes, way.fillBytes)) * way.fillUsPerByte};
}

NcclModel::Estimate NcclModel::realTime(const Way& way, Bytes bytes) const {
    Estimate e = estimate(way, bytes);
    if (!options_.achieved) return e;
    e.latencyUs = onPlateau(way, bytes) ? way.real.plateauLatencyUs : way.real.latencyUs;
    e.transferUs = nccl::achievedTransferUs(way.real, bytes, e.transferUs, e.fillUs);
    e.fillUs = 0;
    return e;
}

CollectiveCost NcclModel::toCost(const Way& way, Bytes bytes) const {
    const Estimate e = realTime(way, bytes);
    CollectiveCost cost;
    cost.latencySeconds = e.latencyUs * latencyScale_ * 1e-6;
    cost.transferSeconds = (e.transferUs + e.fillUs) * way.transferScale * 1e-6;
    cost.seconds = cost.latencySeconds + cost.transferSeconds;
    cost.algorithm = way.algorithm;
    cost.protocol = way.protocol;
    cost.channels = way.maxChannels;
    if (way.bytesPerChannel > 0) {
        cost.channels = static_cast<int>(std::clamp<Bytes>(bytes / way.bytesPerChannel, 1, way.maxChannels));
    }
    return cost;
}

const NcclModel::Way* NcclModel::best(CollectiveOp op, Bytes bytes, bool onlyForced) const {
    const Way* best = nullptr;
    double bestUs = 0;
    for (const Way& way : ways_[static_cast<std::size_t>(op)]) {
        if (onlyForced && !way.forced) continue;
        const double us = estimate(way, bytes).us();
        if (best == nullptr || us < bestUs) {
            best = &way;
            bestUs = us;
        }
    }
    return best;
}

CollectiveCost NcclModel::cost(CollectiveOp op, Bytes bytes) const {
    if (ranks_ <= 1 || bytes <= 0) return {};
    const Way* way = best(op, bytes, forceWorks_[static_cast<std::size_t>(op)]);
    return way == nullptr ? CollectiveCost{} : toCost(*way, bytes);
}

Result<CollectiveCost> NcclModel::checkedCost(CollectiveOp op, Bytes bytes) const {
    if (ranks_ > 1 && !forceWorks_[static_cast<std::size_t>(op)]) {
        std::string known;
        for (const Way& way : ways_[static_cast<std::size_t>(op)]) {
            known += fmt::format("{}{}/{}", known.empty() ? "" : ", ", nameOf(way.algorithm), nameOf(way.protocol));
        }
        return badInput("nccl", fmt::format("{} cannot run with algorithm {} and protocol {} in this group; it can with {}", nameOf(op),
                                            options_.algorithm ? nameOf(*options_.algorithm) : "any",
                                            options_.protocol ? nameOf(*options_.protocol) : "any", known));
    }
    return cost(op, bytes);
}

std::vector<CollectiveCost> NcclModel::candidates(CollectiveOp op, Bytes bytes) const {
    std::vector<std::pair<double, CollectiveCost>> ranked;
    if (ranks_ > 1 && bytes > 0) {
        for (const Way& way : ways_[static_cast<std::size_t>(op)]) {
            if (!way.forced) continue;
            ranked.emplace_back(estimate(way, bytes).us(), toCost(way, bytes));
        }
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<CollectiveCost> costs;
    costs.reserve(ranked.size());
    for (const auto& entry : ranked) costs.push_back(entry.second);
    return costs;
}

/// Fills the tables of a model from its topology.
class NcclModelBuilder {
public:
    NcclModelBuilder(const nccl::Topology& topology, const NcclOptions& options) : t_(topology), options_(options) {}

    NcclModel build() {
        model_.options_ = options_;
        model_.latencyScale_ = options_.latencyScale;
        model_.ranks_ = t_.ranks;
        if (t_.ranks > 1) {
            for (const auto op : {CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter, CollectiveOp::Broadcast,
                                  CollectiveOp::Reduce}) {
                addCollective(op);
            }
            addPointToPoint(CollectiveOp::AllToAll);
            addPointToPoint(CollectiveOp::SendRecv);
            // The root's port carries (n − 1)/n of the buffer, as every rank's does in an all-to-all.
            addPointToPoint(CollectiveOp::Gather);
            addPointToPoint(CollectiveOp::Scatter);
        }
        for (std::size_t op = 0; op < kCollectiveOps; ++op) {
            const auto& ways = model_.ways_[op];
            model_.forceWorks_[op] = std::any_of(ways.begin(), ways.end(), [](const auto& way) { return way.forced; });
        }
        return std::move(model_);
    }

private:
    void addCollective(CollectiveOp op) {
        using enum CollectiveAlgorithm;
        for (const auto algorithm : {Ring, Tree, CollNetDirect, CollNetChain, Nvls, NvlsTree, Pat}) {
            for (const auto protocol : {CollectiveProtocol::LL, CollectiveProtocol::LL128, CollectiveProtocol::Simple}) {
                const bool ll128Forced = options_.protocol == CollectiveProtocol::LL128;
                if (protocol == CollectiveProtocol::LL128 && !t_.ll128 && !(ll128Forced && t_.nvidia)) continue;
                if (!nccl::isAvailable(t_, op, algorithm, protocol, options_.networkReduces)) continue;
                add(op, algorithm, protocol);
            }
        }
    }

    void add(CollectiveOp op, CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
        const double bandwidth = nccl::algorithmBandwidth(t_, options_.version, op, algorithm, protocol);
        if (!(bandwidth > 0)) return;
        NcclModel::Way way;
        way.algorithm = algorithm;
        way.protocol = protocol;
        way.latencyUs = nccl::latencyUs(t_, options_.version, op, algorithm, protocol);
        way.usPerByte = 1 / (1000 * bandwidth);
        way.transferScale = 1 / (options_.bandwidthScale * t_.netShare);
        way.forced = (!options_.algorithm || *options_.algorithm == algorithm) && (!options_.protocol || *options_.protocol == protocol);
        if (algorithm == CollectiveAlgorithm::Tree) way.correction = NcclModel::Correction::Tree;
        if (algorithm == CollectiveAlgorithm::NvlsTree && options_.version == NcclVersion::V2_30 && t_.computeCapability >= 10.0 && t_.x86) {
            way.correction = NcclModel::Correction::NvlsTree;
        }
        const int channels = nccl::communicatorChannels(t_);
        if (nccl::hasPlateau(t_, op, algorithm, protocol)) {
            way.plateauBytes = Bytes{64} * channels * t_.ranks;
            way.plateauLatencyUs = way.latencyUs * (t_.computeCapability < 8.0 ? 1.9 : 1.4);
        }
        if (algorithm == CollectiveAlgorithm::Nvls || algorithm == CollectiveAlgorithm::NvlsTree) {
            way.maxChannels = nccl::nvlsChannels(t_.generation, t_.nodes);
            if (algorithm == CollectiveAlgorithm::Nvls && t_.nodes > 1) way.maxChannels = std::min(way.maxChannels, channels);
            way.bytesPerChannel = 0;
        } else {
            way.maxChannels = channels;
            way.bytesPerChannel = nccl::bytesPerChannel(t_, algorithm, protocol);
        }
        addReal(op, way);
        model_.ways_[static_cast<std::size_t>(op)].push_back(way);
    }

    // NCCL has no model of point-to-point time: this one takes the ring's base and hop, the link, and one chunk of pipeline fill.
    // What is forced does not apply to it, as in NCCL.
    void addPointToPoint(CollectiveOp op) {
        const auto p2p = nccl::pointToPoint(t_, options_.version, op);
        NcclModel::Way way;
        way.algorithm = CollectiveAlgorithm::Direct;
        way.protocol = CollectiveProtocol::Simple;
        way.latencyUs = p2p.latencyUs;
        way.usPerByte = p2p.usPerByte;
        way.fillUsPerByte = p2p.usPerByte;
        way.fillBytes = p2p.fillBytes;
        way.transferScale = 1 / options_.bandwidthScale;
        way.maxChannels = nccl::communicatorChannels(t_);
        way.bytesPerChannel = p2p.bytesPerChannel;
        addReal(op, way);
        model_.ways_[static_cast<std::size_t>(op)].push_back(way);
    }

    void addReal(CollectiveOp op, NcclModel::Way& way) {
        if (!options_.achieved) return;
        way.real = nccl::achievedTerms(t_, *options_.achieved, op, way.algorithm, way.protocol,
                                       {way.latencyUs, way.plateauLatencyUs, way.usPerByte});
    }

    const nccl::Topology& t_;
    const NcclOptions& options_;
    NcclModel model_;
};

Result<NcclModel> NcclModel::create(const Cluster& cluster, const GroupShape& group, const NcclOptions& options) {
    if (!(options.latencyScale > 0) || !(options.bandwidthScale > 0) || !std::isfinite(options.latencyScale) ||
        !std::isfinite(options.bandwidthScale)) {
        return badInput("nccl", fmt::format("the scales of latency ({}) and bandwidth ({}) must be finite and above 0", options.latencyScale,
                                            options.bandwidthScale));
    }
    TRY(const auto topology, nccl::describeTopology(cluster, group, options.version, options.networkReduces));
    return NcclModelBuilder(topology, options).build();
}

}  // namespace ringside
