#include "model/base/names.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringside {
namespace {

std::string folded(std::string_view name) {
    std::string out;
    for (const char c : name)
        if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

/// Optimal string alignment distance: insertions, deletions, substitutions, swaps of neighbours.
std::size_t editDistance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before, previous(b.size() + 1), current(b.size() + 1);
    std::iota(previous.begin(), previous.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) current[j] = std::min(current[j], before[j - 2] + 1);
        }
        before = previous;
        std::swap(previous, current);
    }
    return previous[b.size()];
}

}  // namespace

std::string nearestName(std::string_view name, const std::vector<std::string>& candidates) {
    const std::string wanted = folded(name);
    std::string best;
    std::size_t bestDistance = std::max<std::size_t>(2, wanted.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = editDistance(wanted, folded(candidate));
        if (distance < bestDistance) {
            bestDistance = distance;
            best = candidate;
        }
    }
    if (best.empty() && wanted.size() >= 3)  // a part of a name: "llama" or "a100"
        for (const std::string& candidate : candidates)
            if (folded(candidate).find(wanted) != std::string::npos && (best.empty() || candidate.size() < best.size())) best = candidate;
    return best;
}

std::string unknownName(std::string_view what, std::string_view name, const std::vector<std::string>& candidates, std::string_view hint) {
    std::string message = fmt::format("unknown {} '{}'", what, name);
    const std::string nearest = nearestName(name, candidates);
    if (!nearest.empty()) message += fmt::format("; did you mean '{}'?", nearest);
    if (!hint.empty())
        message += fmt::format(" ({})", hint);
    else if (candidates.size() <= 24)
        message += fmt::format(" (known: {})", fmt::join(candidates, ", "));
    return message;
}

}  // namespace ringside
