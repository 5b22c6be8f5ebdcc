#include "model/cost/gloo_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "model/base/check.h"
#include "model/cost/binomial_broadcast.h"

namespace ringside {
namespace {

constexpr Bytes kMaxSegment = kMiB;

Result<void> checkOptions(const GlooOptions& o) {
    const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
    if (!positive(o.loopbackGbPerS) || !positive(o.reduceGbPerS) || !positive(o.latencyScale) || !positive(o.bandwidthScale) ||
        !(o.loopbackAlphaUs >= 0) || !(o.tcpAlphaUs >= 0)) {
        return badInput("gloo", "rates and scales must be above 0 and latencies at least 0");
    }
    if (o.algorithm && *o.algorithm != CollectiveAlgorithm::Ring && *o.algorithm != CollectiveAlgorithm::Bcube &&
        *o.algorithm != CollectiveAlgorithm::HalvingDoubling) {
        return badInput("gloo", fmt::format("Gloo has no {} all-reduce; it has ring, bcube and halving_doubling", nameOf(*o.algorithm)));
    }
    return {};
}

}  // namespace

GlooSegments glooSegments(Bytes bytes, std::int64_t ranks) {
    CHECK(bytes >= 0 && ranks >= 1);
    const std::int64_t bySize = (bytes + kMaxSegment - 1) / kMaxSegment;
    const std::int64_t wanted = std::max(bySize, 2 * ranks);
    const std::int64_t count = (wanted + ranks - 1) / ranks * ranks;
    return {count, (bytes + count - 1) / count};
}

Result<GlooModel> GlooModel::create(const Cluster& cluster, const GroupShape& group, const GlooOptions& options) {
    TRY_VOID(checkOptions(options));
    if (group.nodeKind >= cluster.nodes.size()) {
        return badInput(cluster.name, fmt::format("the group names node kind {} but the cluster has {}", group.nodeKind, cluster.nodes.size()));
    }
    if (group.ranks < 1 || group.nodes < 1 || group.ranksPerNode < 1 || group.ranks < group.nodes) {
        return badInput(cluster.name, fmt::format("a group of {} ranks on {} nodes ({} per node) is not possible", group.ranks, group.nodes,
                                                  group.ranksPerNode));
    }
    const NodeKind& kind = cluster.nodes[group.nodeKind].kind;
    GlooModel m;
    m.options_ = options;
    m.ranks_ = group.ranks;
    m.nodes_ = group.nodes;
    m.ranksPerNode_ = group.ranksPerNode;
    m.reduceSecondsPerByte_ = 1 / (options.reduceGbPerS * 1e9);
    m.loopback_ = {options.loopbackAlphaUs * 1e-6, 1 / (options.loopbackGbPerS * 1e9)};
    m.ringHop_ = m.sharedNet_ = m.loopback_;
    if (group.nodes > 1) {
        if (kind.nics.count < 1 || kind.nics.gbitPerS <= 0) {
            return badInput(kind.name, fmt::format("the group spans {} nodes but the node kind has no network; give nics.count and nics.gbit_per_s",
                                                   group.nodes));
        }
        // Gloo opens its connections on one interface, which groups side by side share.
        const double nic = kind.nics.gbitPerS / 8 * 1e9 / static_cast<double>(std::max<std::int64_t>(1, group.groupsSharingNics));
        const double alpha = (options.tcpAlphaUs + kind.nics.latencyUs) * 1e-6;
        m.sharedNet_ = {alpha, static_cast<double>(group.ranksPerNode) / nic};
        // All ranks of a ring step together, so the slowest hop sets the pace.
        const double netRing = 1 / nic;
        m.ringHop_ = {alpha, group.ranksPerNode > 1 ? std::max(netRing, m.loopback_.secondsPerByte) : netRing};
    }
    if (options.deviceTensors) {
        TRY(auto copy, CopyCost::create(kind.device));
        m.staging_.push_back(copy);
    }
    return m;
}

GlooModel::Hop GlooModel::exchangeHop(std::int64_t distance) const {
    return nodes_ > 1 && distance >= ranksPerNode_ ? sharedNet_ : loopback_;
}

// Two segments are in flight at a time. A segment is sent, received and (in the first phase) added before it can be passed on,
// so an iteration takes half of that chain, or as long as the link or the adding thread is busy, whichever is longest.
GlooModel::Parts GlooModel::ringPhase(Bytes bytes, bool reduces) const {
    const GlooSegments segments = glooSegments(bytes, ranks_);
    const double iterations = static_cast<double>(segments.count - segments.count / ranks_);
    const double wire = static_cast<double>(segments.bytes) * ringHop_.secondsPerByte;
    const double add = reduces ? static_cast<double>(segments.bytes) * reduceSecondsPerByte_ : 0;
    const double iteration = std::max({wire, add, (ringHop_.alpha + wire + add) / 2});
    // What remains with free messages is transfer; the rest is latency.
    const double transfer = std::max({wire, add, (wire + add) / 2});
    return {iterations * (iteration - transfer), iterations * transfer};
}

GlooModel::Parts GlooModel::ringAllReduce(Bytes bytes) const {
    const Parts scatter = ringPhase(bytes, true);
    const Parts gather = ringPhase(bytes, false);
    return {scatter.latency + gather.latency, scatter.transfer + gather.transfer};
}

// A power of two is factored by 2: as halving-doubling. Anything else exchanges with all others directly, in one step each way.
GlooModel::Parts GlooModel::bcubeAllReduce(Bytes bytes) const {
    if (std::has_single_bit(static_cast<std::uint64_t>(ranks_))) return halvingDoublingAllReduce(bytes);
    const Hop hop = nodes_ > 1 ? sharedNet_ : loopback_;
    const double others = static_cast<double>(ranks_ - 1);
    const double part = static_cast<double>(bytes) * others / static_cast<double>(ranks_);
    return {2 * others * hop.alpha, part * (2 * hop.secondsPerByte + reduceSecondsPerByte_)};
}

// Halves with near ranks first, then back. Other counts than powers of two run as binary blocks (13 = 8 + 4 + 1): each smaller
// block hands its result to the next larger one and gets the answer back.
GlooModel::Parts GlooModel::halvingDoublingAllReduce(Bytes bytes) const {
    const double size = static_cast<double>(bytes);
    const auto n = static_cast<std::uint64_t>(ranks_);
    const auto block = static_cast<std::int64_t>(std::bit_floor(n));
    Parts parts;
    double part = size;
    for (std::int64_t distance = 1; distance < block; distance *= 2) {
        part /= 2;
        const Hop hop = exchangeHop(distance);
        parts.latency += 2 * hop.alpha;
        parts.transfer += part * (2 * hop.secondsPerByte + reduceSecondsPerByte_);
    }
    for (std::uint64_t rest = n - std::bit_floor(n); rest != 0; rest -= std::bit_floor(rest)) {
        const auto smaller = static_cast<std::int64_t>(std::bit_floor(rest));
        const Hop hop = exchangeHop(smaller);
        parts.latency += 2 * hop.alpha;
        parts.transfer += size / static_cast<double>(smaller) * (2 * hop.secondsPerByte + reduceSecondsPerByte_);
    }
    return parts;
}

// A tree between nodes, and one within each.
GlooModel::Parts GlooModel::broadcast(Bytes bytes) const {
    const BroadcastDepth across = binomialBroadcastDepth(nodes_), within = binomialBroadcastDepth(nodes_ > 1 ? ranksPerNode_ : ranks_);
    return {across.latencies * ringHop_.alpha + within.latencies * loopback_.alpha,
            static_cast<double>(bytes) * (across.transfers * ringHop_.secondsPerByte + within.transfers * loopback_.secondsPerByte)};
}

GlooModel::Parts GlooModel::allReduce(CollectiveAlgorithm algorithm, Bytes bytes) const {
    if (algorithm == CollectiveAlgorithm::Bcube) return bcubeAllReduce(bytes);
    if (algorithm == CollectiveAlgorithm::HalvingDoubling) return halvingDoublingAllReduce(bytes);
    return ringAllReduce(bytes);
}

CollectiveCost GlooModel::finish(Parts parts, CollectiveAlgorithm algorithm, Bytes bytes) const {
    CollectiveCost cost;
    cost.latencySeconds = parts.latency * options_.latencyScale;
    cost.transferSeconds = parts.transfer / options_.bandwidthScale;
    for (const CopyCost& copy : staging_) cost.transferSeconds += 2 * copy.seconds(bytes);
    cost.seconds = cost.latencySeconds + cost.transferSeconds;
    cost.algorithm = algorithm;
    cost.protocol = CollectiveProtocol::Tcp;
    return cost;
}

CollectiveCost GlooModel::cost(CollectiveOp op, Bytes bytes) const {
    using enum CollectiveAlgorithm;
    if (ranks_ <= 1 || bytes <= 0) return {};
    const double others = static_cast<double>(ranks_ - 1);
    const double share = static_cast<double>(bytes) / static_cast<double>(ranks_);
    const CollectiveAlgorithm configured = options_.algorithm.value_or(Ring);
    switch (op) {
        case CollectiveOp::AllReduce: return finish(allReduce(configured, bytes), configured, bytes);
        case CollectiveOp::ReduceScatter:
            if (options_.reduceScatterIsAllReduce) return finish(allReduce(configured, bytes), configured, bytes);
            return finish(ringPhase(bytes, true), Ring, bytes);
        case CollectiveOp::AllGather: return finish({others * ringHop_.alpha, others * share * ringHop_.secondsPerByte}, Ring, bytes);
        case CollectiveOp::Broadcast: return finish(broadcast(bytes), Binomial, bytes);
        case CollectiveOp::Reduce: {
            // Reduce-scatter around the ring, then every rank sends its part to the root, which receives one after the other.
            Parts parts = ringPhase(bytes, true);
            parts.latency += ringHop_.alpha;
            parts.transfer += others * share * ringHop_.secondsPerByte;
            return finish(parts, Ring, bytes);
        }
        case CollectiveOp::Gather:
        case CollectiveOp::Scatter:
        case CollectiveOp::AllToAll: {
            const Hop hop = nodes_ > 1 ? sharedNet_ : loopback_;
            return finish({others * hop.alpha, others * share * hop.secondsPerByte}, Direct, bytes);
        }
        case CollectiveOp::SendRecv: break;
    }
    return finish({ringHop_.alpha, static_cast<double>(bytes) * ringHop_.secondsPerByte}, Direct, bytes);
}

std::vector<CollectiveCost> GlooModel::candidates(CollectiveOp op, Bytes bytes) const {
    using enum CollectiveAlgorithm;
    if (ranks_ <= 1 || bytes <= 0) return {};
    std::vector<CollectiveCost> costs{cost(op, bytes)};
    if (op != CollectiveOp::AllReduce || options_.algorithm) return costs;
    for (const auto algorithm : {Bcube, HalvingDoubling}) costs.push_back(finish(allReduce(algorithm, bytes), algorithm, bytes));
    std::stable_sort(costs.begin() + 1, costs.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    return costs;
}

}  // namespace ringside
