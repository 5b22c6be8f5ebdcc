// Laws of max-min fair share, on random networks.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "sim/resource/fair_share.h"

namespace ringside {
namespace {

struct Case {
    std::vector<double> capacities;
    std::vector<std::vector<LinkIndex>> paths;

    std::vector<double> rates(double scale = 1) const {
        std::vector<std::uint32_t> first{0};
        std::vector<LinkIndex> links;
        for (const auto& path : paths) {
            links.insert(links.end(), path.begin(), path.end());
            first.push_back(static_cast<std::uint32_t>(links.size()));
        }
        std::vector<double> scaled = capacities;
        for (double& capacity : scaled) capacity *= scale;
        return maxMinFairShare(scaled, FlowPaths{first, links});
    }
    std::vector<double> load(const std::vector<double>& rates) const {
        std::vector<double> load(capacities.size(), 0.0);
        for (std::size_t f = 0; f < paths.size(); ++f)
            for (const LinkIndex link : paths[f]) load[link] += rates[f];
        return load;
    }
};

Case anyCase() {
    Case c;
    const int links = *rc::gen::inRange(1, 8);
    const int flows = *rc::gen::inRange(1, 12);
    for (int l = 0; l < links; ++l) c.capacities.push_back(static_cast<double>(*rc::gen::inRange(1'000'000, 50'000'000)));
    for (int f = 0; f < flows; ++f) {
        std::vector<LinkIndex> path;
        for (int l = 0; l < links; ++l)
            if (*rc::gen::inRange(0, 3) == 0) path.push_back(static_cast<LinkIndex>(l));
        if (path.empty()) path.push_back(static_cast<LinkIndex>(*rc::gen::inRange(0, links)));
        c.paths.push_back(path);
    }
    return c;
}

// Rounding down costs at most one byte per second and flow.
double slack(const Case& c) { return static_cast<double>(c.paths.size()); }

TEST(FairShareLaws, NoLinkIsEverAboveItsCapacity) {
    ASSERT_TRUE(rc::check([] {
        const Case c = anyCase();
        const auto load = c.load(c.rates());
        for (std::size_t l = 0; l < load.size(); ++l) RC_ASSERT(load[l] <= c.capacities[l]);
    }));
}

// Max-min: every flow crosses a full link on which no flow has more than it. That is the theorem's characterisation, so it
// is both "every flow is bottlenecked" and optimality.
TEST(FairShareLaws, EveryFlowHasAFullLinkOnWhichNobodyHasMore) {
    ASSERT_TRUE(rc::check([] {
        const Case c = anyCase();
        const auto rates = c.rates();
        const auto load = c.load(rates);
        for (std::size_t f = 0; f < rates.size(); ++f) {
            const bool bottlenecked = std::any_of(c.paths[f].begin(), c.paths[f].end(), [&](LinkIndex link) {
                if (load[link] < c.capacities[link] - slack(c)) return false;
                for (std::size_t g = 0; g < rates.size(); ++g)
                    if (rates[g] > rates[f] + slack(c) && std::count(c.paths[g].begin(), c.paths[g].end(), link)) return false;
                return true;
            });
            RC_ASSERT(bottlenecked);
        }
    }));
}

TEST(FairShareLaws, TheOrderOfTheFlowsDoesNotMatterToTheBit) {
    ASSERT_TRUE(rc::check([] {
        Case c = anyCase();
        const auto rates = c.rates();
        std::vector<std::size_t> order(c.paths.size());
        std::iota(order.begin(), order.end(), 0u);
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
        Case shuffled = c;
        for (std::size_t i = 0; i < order.size(); ++i) shuffled.paths[i] = c.paths[order[i]];
        const auto shuffledRates = shuffled.rates();
        for (std::size_t i = 0; i < order.size(); ++i) RC_ASSERT(shuffledRates[i] == rates[order[i]]);
    }));
}

TEST(FairShareLaws, TwiceTheCapacitiesAreTwiceTheRates) {
    ASSERT_TRUE(rc::check([] {
        const Case c = anyCase();
        const auto once = c.rates(), twice = c.rates(2);
        for (std::size_t f = 0; f < once.size(); ++f) RC_ASSERT(std::abs(twice[f] - 2 * once[f]) <= 4 * slack(c));
    }));
}

}  // namespace
}  // namespace ringside
