#include "model/cost/binomial_broadcast.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "model/base/check.h"

namespace ringside {
namespace {

struct Child {
    std::size_t rank = 0;
    double begins = 0;
};

/// Children that begin at their times and share one link: when each has its `transfer` seconds of it.
void shareLink(std::vector<Child>& children, double transfer, double latency, std::vector<double>& has) {
    std::sort(children.begin(), children.end(), [](const Child& a, const Child& b) { return a.begins != b.begins ? a.begins < b.begins : a.rank < b.rank; });
    // All that are under way advance alike, so they end in the order in which they began: `served` is what one that was there from the start has got.
    std::vector<double> endsAt(children.size());
    double now = -std::numeric_limits<double>::infinity(), served = 0;
    for (std::size_t next = 0, first = 0; first < children.size();) {
        if (next == first) now = std::max(now, children[next].begins);
        while (next < children.size() && children[next].begins <= now) endsAt[next++] = served + transfer;
        const double flows = static_cast<double>(next - first), end = now + (endsAt[first] - served) * flows;
        if (next < children.size() && children[next].begins < end) {
            served += (children[next].begins - now) / flows;
            now = children[next].begins;
            continue;
        }
        now = end;
        served = endsAt[first];
        has[children[first++].rank] = now + latency;
    }
}

}  // namespace

std::vector<double> binomialBroadcastTimes(std::span<const double> entries, BroadcastHop hop) {
    std::vector<double> through(entries.begin(), entries.end());  // first: when a rank has the buffer
    std::vector<Child> children;
    for (std::size_t rank = 0; rank < entries.size(); ++rank) {  // parents stand before their children
        children.clear();
        for (std::size_t distance = rank == 0 ? 1 : std::bit_floor(rank) * 2; rank + distance < entries.size(); distance *= 2)
            children.push_back({rank + distance, std::max(through[rank], entries[rank + distance])});
        shareLink(children, hop.transfer, hop.latency, through);
        for (const Child& child : children) through[rank] = std::max(through[rank], through[child.rank]);
    }
    return through;
}

// The last to have it is reached through ranks that each have as many children as there can be: 0, 1, 3, 7, …
BroadcastDepth binomialBroadcastDepth(std::int64_t ranks) {
    CHECK(ranks >= 1);
    const auto n = static_cast<std::uint64_t>(ranks);
    BroadcastDepth depth;
    for (std::uint64_t rank = 0; rank < n; rank = 2 * rank + 1) {
        double children = 0;
        for (std::uint64_t distance = rank == 0 ? 1 : std::bit_floor(rank) * 2; rank + distance < n; distance *= 2) ++children;
        if (children == 0) break;
        depth.latencies += 1;
        depth.transfers += children;
    }
    return depth;
}

}  // namespace ringside
