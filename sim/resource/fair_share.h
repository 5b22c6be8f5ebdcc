// Max-min fair share: how fast each flow goes when flows share links. A pure function by progressive filling.
//
// All flows grow together until a link is full (its flows are then fixed) or a flow reaches its own cap; the rest grows
// on. The result is the only allocation in which no flow can gain without a flow that has no more losing.
// Rates are rounded down to whole bytes per second wherever they are at least one. Sums of whole numbers do not depend
// on their order, so the result is the same to the bit for every order of the flows, and for a folded network.
// Derivation and worked numbers: docs/models/fair-share.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringside {

using LinkIndex = std::uint32_t;

/// Flows as compressed rows: flow f uses links[firstLink[f] … firstLink[f + 1]). A link named twice is used twice.
struct FlowPaths {
    std::span<const std::uint32_t> firstLink;  ///< flows + 1 entries; empty: no flow
    std::span<const LinkIndex> links;
    std::span<const double> weights = {};      ///< per flow, > 0: gets that many shares (a bundle of w equal flows); empty: 1
    std::span<const double> rateCaps = {};     ///< per flow, bytes per second; empty: none

    std::size_t count() const { return firstLink.empty() ? 0 : firstLink.size() - 1; }
};

/// Working memory, to be reused between calls.
struct FairShareScratch {
    std::vector<double> room;    // per link: capacity not yet given away
    std::vector<double> weight;  // per link: weight of the flows not yet fixed
    std::vector<std::uint8_t> full;
    std::vector<std::uint32_t> open;  // flows not yet fixed
};

/// Writes each flow's rate in bytes per second. A flow without links and without a cap gets infinity.
/// REQUIRES: capacities > 0 in bytes per second, link indices below capacities.size(), rates.size() == flows.count().
/// O(b · (links + total path length)), b the number of distinct bottleneck levels.
void maxMinFairShare(std::span<const double> capacities, const FlowPaths& flows, std::span<double> rates, FairShareScratch& scratch);
std::vector<double> maxMinFairShare(std::span<const double> capacities, const FlowPaths& flows);

}  // namespace ringside
