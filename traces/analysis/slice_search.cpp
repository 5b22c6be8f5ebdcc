#include "traces/analysis/slice_search.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <string_view>

#include <fmt/format.h>

namespace ringside {
namespace {

/// std::regex walks by recursion, a level per letter: names beyond this are matched by their front.
constexpr std::size_t kLongestName = 4096;

bool isPlain(std::string_view pattern) { return pattern.find_first_of("^$\\.*+?()[]{}|") == std::string_view::npos; }

std::string lowered(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

std::string reasonOf(const std::regex_error& error) {
    switch (error.code()) {
        case std::regex_constants::error_brack: return "a '[' is not closed";
        case std::regex_constants::error_paren: return "a '(' or ')' has no partner";
        case std::regex_constants::error_brace: case std::regex_constants::error_badbrace: return "a '{…}' is not a count";
        case std::regex_constants::error_badrepeat: return "a '*', '+' or '?' has nothing before it";
        case std::regex_constants::error_escape: return "a '\\' stands before nothing it can escape";
        case std::regex_constants::error_range: return "a range like [z-a] is the wrong way round";
        default: return error.what();
    }
}

}  // namespace

Result<SearchHits> searchSlices(const Trace& trace, const std::string& pattern) {
    SearchHits hits;
    if (pattern.empty()) return hits;
    const bool anyCase = std::none_of(pattern.begin(), pattern.end(), [](unsigned char c) { return std::isupper(c); });
    std::vector<bool> matches(trace.names.size());
    if (isPlain(pattern)) {
        for (std::size_t n = 0; n < trace.names.size(); ++n) matches[n] = (anyCase ? lowered(trace.names[n]) : trace.names[n]).find(pattern) != std::string::npos;
    } else {
        try {
            const std::regex expression(pattern, anyCase ? std::regex::ECMAScript | std::regex::icase | std::regex::optimize : std::regex::ECMAScript | std::regex::optimize);
            for (std::size_t n = 0; n < trace.names.size(); ++n) {
                const std::string_view name = std::string_view(trace.names[n]).substr(0, kLongestName);
                matches[n] = std::regex_search(name.begin(), name.end(), expression);
            }
        } catch (const std::regex_error& error) {
            return failure(ErrorCode::Usage, pattern, fmt::format("is no regular expression: {}; put a '\\' before letters that mean themselves", reasonOf(error)));
        }
    }
    for (std::uint32_t n = 0; n < matches.size(); ++n)
        if (matches[n]) hits.names.push_back(n);
    if (hits.names.empty()) return hits;
    for (std::uint32_t i = 0; i < trace.size(); ++i)
        if (matches[trace.name[i]]) hits.slices.push_back(i);
    std::stable_sort(hits.slices.begin(), hits.slices.end(), [&](std::uint32_t a, std::uint32_t b) { return trace.start[a] < trace.start[b]; });
    return hits;
}

}  // namespace ringside
