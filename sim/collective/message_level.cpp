#include "sim/collective/message_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/collective/broadcast.h"
#include "sim/collective/fold_ring.h"
#include "sim/collective/halving_doubling.h"
#include "sim/collective/hierarchical.h"
#include "sim/collective/message_player.h"
#include "sim/collective/reduce.h"
#include "sim/collective/ring_all_gather.h"
#include "sim/collective/ring_all_reduce.h"
#include "sim/collective/ring_reduce_scatter.h"
#include "sim/collective/tree_all_reduce.h"

namespace ringside {

namespace {

constexpr const char* kPlace = "message level";
constexpr std::int64_t kMostRanks = std::int64_t{1} << 28;
// Ring steps are counted in 31 bits; folded rings have no other limit.
constexpr std::int64_t kMostFoldedRanks = std::int64_t{1} << 30;

template <class Pattern>
MessageLevelResult playPattern(Pattern pattern, const MessageNetwork& network, std::span<const Time> arrivals, Time baseLatency) {
    std::vector<Time> entries(static_cast<std::size_t>(network.ranks), baseLatency);
    Time first;
    if (!arrivals.empty()) {
        first = *std::min_element(arrivals.begin(), arrivals.end());
        for (std::size_t r = 0; r < entries.size(); ++r) entries[r] = arrivals[r] + baseLatency;
    }
    MessagePlayer<Pattern> player(std::move(pattern), network);
    player.play(entries);
    MessageLevelResult result;
    result.duration = player.finish() - first;
    result.messages = player.messages();
    result.bytesPerLink = player.bytesPerLink();
    result.linkIds = std::move(player.linkIds());
    result.rankFinish = std::move(player.lastReceived());
    return result;
}

Result<void> validate(const MessageNetwork& network, Bytes bytes, std::span<const Time> arrivals, const MessageLevelOptions& options,
                      std::int64_t mostRanks) {
    if (network.ranks < 1 || network.ranks > mostRanks)
        return badInput(kPlace, fmt::format("{} ranks; expected 1 to {}", network.ranks, mostRanks));
    if (bytes < 0) return badInput(kPlace, fmt::format("{} bytes; expected 0 or more", bytes));
    if (!arrivals.empty() && arrivals.size() != static_cast<std::size_t>(network.ranks))
        return badInput(kPlace, fmt::format("{} arrival times for {} ranks; give one per rank, or none", arrivals.size(), network.ranks));
    if (std::any_of(arrivals.begin(), arrivals.end(), [](Time t) { return t < Time(); }))
        return badInput(kPlace, "an arrival time is negative; expected times from 0 on");
    if (options.groups < 1 || network.ranks % options.groups != 0)
        return badInput(kPlace, fmt::format("{} groups do not divide {} ranks evenly", options.groups, network.ranks));
    if (options.chunkBytes < 1) return badInput(kPlace, fmt::format("chunks of {} bytes; expected at least 1", options.chunkBytes));
    return {};
}

struct RingSteps {
    std::int64_t steps = 0;
    Bytes messageBytes = 0;
};

// The ring collectives by their number of steps; none for the others.
std::optional<RingSteps> ringSteps(CollectiveOp op, CollectiveAlgorithm algorithm, std::int64_t ranks, Bytes bytes) {
    if (algorithm != CollectiveAlgorithm::Ring && algorithm != CollectiveAlgorithm::None) return std::nullopt;
    switch (op) {
        case CollectiveOp::AllReduce: return RingSteps{2 * (ranks - 1), partOf(bytes, ranks)};
        case CollectiveOp::AllGather:
        case CollectiveOp::ReduceScatter: return RingSteps{ranks - 1, partOf(bytes, ranks)};
        default: return std::nullopt;
    }
}

}  // namespace

Result<MessageLevelResult> playCollective(const MessageNetwork& network, CollectiveOp op, CollectiveAlgorithm algorithm, Bytes bytes,
                                          std::span<const Time> arrivals, const MessageLevelOptions& options) {
    TRY_VOID(validate(network, bytes, arrivals, options, kMostRanks));
    const std::int64_t n = network.ranks;
    const auto play = [&](auto pattern) { return playPattern(std::move(pattern), network, arrivals, options.baseLatency); };
    const auto unsupported = [&] {
        return badInput(kPlace, fmt::format("{} by {} is not simulated message by message; use its closed form", nameOf(op), nameOf(algorithm)));
    };
    const bool byRing = algorithm == CollectiveAlgorithm::Ring || algorithm == CollectiveAlgorithm::None;
    if (options.groups != 1 && !ringSteps(op, algorithm, n, bytes))
        return badInput(kPlace, fmt::format("{} groups at once; only ring collectives can be played in groups", options.groups));
    if (bytes == 0 || n == options.groups) {
        MessageLevelResult nothing;
        nothing.rankFinish.assign(arrivals.begin(), arrivals.end());
        nothing.rankFinish.resize(static_cast<std::size_t>(n));
        const auto [first, last] = std::minmax_element(nothing.rankFinish.begin(), nothing.rankFinish.end());
        nothing.duration = *last - *first;
        return nothing;
    }
    switch (op) {
        case CollectiveOp::AllReduce:
            if (byRing) return play(ringAllReduce(n, bytes, options.groups));
            if (algorithm == CollectiveAlgorithm::Tree) return play(treeAllReduce(n, network.ranksPerNode, bytes, options.chunkBytes));
            if (algorithm == CollectiveAlgorithm::HalvingDoubling) return play(halvingDoublingAllReduce(n, bytes));
            if (algorithm == CollectiveAlgorithm::Hierarchical) return play(hierarchicalAllReduce(n, network.ranksPerNode, bytes));
            return unsupported();
        case CollectiveOp::AllGather: return byRing ? Result<MessageLevelResult>(play(ringAllGather(n, bytes, options.groups))) : unsupported();
        case CollectiveOp::ReduceScatter:
            return byRing ? Result<MessageLevelResult>(play(ringReduceScatter(n, bytes, options.groups))) : unsupported();
        case CollectiveOp::Broadcast:
            if (byRing) return play(ringBroadcast(n, bytes, options.chunkBytes));
            if (algorithm == CollectiveAlgorithm::Binomial) return play(binomialBroadcast(n, bytes));
            return unsupported();
        case CollectiveOp::Reduce:
            if (byRing) return play(ringReduce(n, bytes, options.chunkBytes));
            if (algorithm == CollectiveAlgorithm::Binomial) return play(binomialReduce(n, bytes));
            return unsupported();
        case CollectiveOp::AllToAll:
        case CollectiveOp::Gather:
        case CollectiveOp::Scatter:
        case CollectiveOp::SendRecv: break;
    }
    return unsupported();
}

Result<MessageLevelResult> playCollectiveFolded(const MessageNetwork& network, CollectiveOp op, CollectiveAlgorithm algorithm, Bytes bytes,
                                                const MessageLevelOptions& options) {
    TRY_VOID(validate(network, bytes, {}, options, kMostFoldedRanks));
    const std::int64_t perRing = network.ranks / options.groups;
    const auto ring = ringSteps(op, algorithm, perRing, bytes);
    const bool foldable = network.symmetry && network.ranks % network.symmetry->ranksPerTurn == 0 &&
                          network.symmetry->ranksPerTurn % options.groups == 0;
    if (!ring || !foldable || bytes == 0 || perRing == 1) return playCollective(network, op, algorithm, bytes, {}, options);
    return foldRing(network, options.groups, ring->steps, ring->messageBytes, options.baseLatency);
}

}  // namespace ringside
