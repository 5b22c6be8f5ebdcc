// How often a token travels where whoever holds several of its experts gets it once (DeepEP, HybridEP). docs/models/experts.md.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringside {

struct TokenSpread {
    std::int64_t experts = 0, perToken = 0;  ///< 0: a row for each of a token's experts travels by itself

    /// Of `holders` that share the experts out evenly, how many have any of a token's, where all choices are alike. REQUIRES: holders ≥ 1, experts > 0.
    double holdersPerToken(std::int64_t holders) const {
        double none = 1;  // of its experts with one of them, drawn without putting back
        const auto all = static_cast<double>(experts), here = all / static_cast<double>(holders);
        for (std::int64_t k = 0; k < perToken; ++k) none *= std::max(0.0, all - here - static_cast<double>(k)) / (all - static_cast<double>(k));
        return static_cast<double>(holders) * (1 - none);
    }
    bool operator==(const TokenSpread&) const = default;
};

}  // namespace ringside
