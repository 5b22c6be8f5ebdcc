#include "sim/player/broadcast_row.h"

#include <algorithm>

namespace ringside {

Time BroadcastRow::begin(Time now, std::span<const Time> ready, std::size_t root, BroadcastHop hop) {
    const std::size_t ranks = ready.size();
    std::vector<double> entries(ranks);
    for (std::size_t v = 0; v < ranks; ++v) {
        const std::size_t position = (root + v) % ranks;
        const Time free = lead_.empty() ? ended_ : ended_ - lead_[position];
        entries[v] = (std::max(ready[position], free) - now).seconds();
    }
    const std::vector<double> through = binomialBroadcastTimes(entries, hop);
    const double last = std::max(0.0, *std::max_element(through.begin(), through.end()));
    nextLead_.resize(ranks);
    for (std::size_t v = 0; v < ranks; ++v) nextLead_[(root + v) % ranks] = Time::fromSeconds(last - through[v]);
    return Time::fromSeconds(last);
}

void BroadcastRow::end(Time now) {
    ended_ = now;
    lead_.swap(nextLead_);
    nextLead_.clear();
}

}  // namespace ringside
