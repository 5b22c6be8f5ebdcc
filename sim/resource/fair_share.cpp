#include "sim/resource/fair_share.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/base/check.h"

namespace ringside {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Whole bytes per second; a share below one is kept as it is, because a rate of zero would never end.
double wholeShare(double room, double weight) {
    const double share = room / weight;
    return share >= 1 ? std::floor(share) : share;
}

}  // namespace

void maxMinFairShare(std::span<const double> capacities, const FlowPaths& flows, std::span<double> rates, FairShareScratch& scratch) {
    const std::size_t flowCount = flows.count();
    const std::size_t linkCount = capacities.size();
    CHECK(rates.size() == flowCount);
    CHECK(flows.weights.empty() || flows.weights.size() == flowCount);
    CHECK(flows.rateCaps.empty() || flows.rateCaps.size() == flowCount);
    const auto weightOf = [&](std::size_t f) { return flows.weights.empty() ? 1.0 : flows.weights[f]; };
    const auto capOf = [&](std::size_t f) { return flows.rateCaps.empty() ? kNoLimit : flows.rateCaps[f]; };
    const auto linksOf = [&](std::size_t f) {
        return flows.links.subspan(flows.firstLink[f], flows.firstLink[f + 1] - flows.firstLink[f]);
    };

    std::vector<double>&room = scratch.room, &weight = scratch.weight;
    std::vector<std::uint8_t>& full = scratch.full;
    std::vector<std::uint32_t>& open = scratch.open;
    room.assign(capacities.begin(), capacities.end());
    weight.assign(linkCount, 0.0);
    full.assign(linkCount, 0);
    open.clear();
    for (std::uint32_t f = 0; f < flowCount; ++f) {
        if (linksOf(f).empty()) {
            rates[f] = capOf(f);
            continue;
        }
        open.push_back(f);
        for (const LinkIndex link : linksOf(f)) weight[link] += weightOf(f);
    }

    while (!open.empty()) {
        double linkLevel = kNoLimit;  // rate per unit of weight at which the next link is full
        for (std::size_t l = 0; l < linkCount; ++l)
            if (weight[l] > 0) linkLevel = std::min(linkLevel, wholeShare(room[l], weight[l]));
        double capLevel = kNoLimit;
        if (!flows.rateCaps.empty())
            for (const std::uint32_t f : open) capLevel = std::min(capLevel, capOf(f) / weightOf(f));

        const bool byCap = capLevel <= linkLevel;
        if (!byCap)
            for (std::size_t l = 0; l < linkCount; ++l) full[l] = weight[l] > 0 && wholeShare(room[l], weight[l]) <= linkLevel;

        // Whether a flow is fixed now is decided by the levels alone, never by flows fixed earlier in this pass.
        std::size_t kept = 0;
        for (const std::uint32_t f : open) {
            const auto links = linksOf(f);
            const double share = weightOf(f);
            const bool fixed = byCap ? capOf(f) / share <= capLevel
                                     : std::any_of(links.begin(), links.end(), [&](LinkIndex link) { return full[link] != 0; });
            if (!fixed) {
                open[kept++] = f;
                continue;
            }
            rates[f] = byCap ? capOf(f) : linkLevel * share;
            for (const LinkIndex link : links) {
                room[link] = std::max(0.0, room[link] - rates[f]);
                weight[link] -= share;
                if (weight[link] < 1e-9) weight[link] = 0;  // weights need not be whole numbers
            }
        }
        CHECK(kept < open.size());
        open.resize(kept);
    }
}

std::vector<double> maxMinFairShare(std::span<const double> capacities, const FlowPaths& flows) {
    std::vector<double> rates(flows.count());
    FairShareScratch scratch;
    maxMinFairShare(capacities, flows, rates, scratch);
    return rates;
}

}  // namespace ringside
