#include "traces/analysis/range_statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr std::size_t kCategories = static_cast<std::size_t>(SliceCategory::Marker) + 1;
constexpr std::uint32_t kNoRow = 0xffffffffU;

}  // namespace

Time percentile(std::span<const Time> values, double percent) {
    CHECK(!values.empty());
    const auto rank = static_cast<std::ptrdiff_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
    return values[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(rank - 1, 0, std::ssize(values) - 1))];
}

RangeStatistics rangeStatistics(const Trace& trace, Time begin, Time end, std::span<const std::uint32_t> tracks) {
    CHECK(begin <= end);
    std::vector<std::uint32_t> chosen(tracks.begin(), tracks.end());
    if (chosen.empty()) {
        chosen.resize(trace.tracks.size());
        std::iota(chosen.begin(), chosen.end(), 0U);
    }
    RangeStatistics result;
    result.begin = begin;
    result.end = end;
    std::map<std::int64_t, RankActivity> activities;
    struct Sum {
        std::int64_t count = 0;
        Time total, self;
    };
    // One row per name and category; names that are there in one category only are the rule.
    std::vector<std::uint32_t> rowOfName(trace.names.size() * kCategories, kNoRow);
    std::vector<Sum> sums;
    std::vector<std::pair<std::uint32_t, SliceCategory>> keys;
    std::vector<std::pair<std::uint32_t, Time>> durations;  // row and uncut length
    struct Open {
        Time end;
        std::uint32_t row;
    };
    std::vector<Open> open;
    for (const std::uint32_t t : chosen) {
        CHECK(t < trace.tracks.size());
        RankActivity& activity = activities[trace.tracks[t].rank];
        open.clear();
        for (std::size_t i = trace.firstSlice(t), last = trace.firstSlice(t + 1); i < last && trace.start[i] < end; ++i) {
            const Time from = trace.start[i], to = from + trace.duration[i];
            if (to < begin || (to == begin && trace.duration[i] > Time{})) continue;
            const Time cut = std::min(to, end) - std::max(from, begin);
            std::uint32_t& row = rowOfName[trace.name[i] * kCategories + static_cast<std::size_t>(trace.category[i])];
            if (row == kNoRow) {
                row = static_cast<std::uint32_t>(sums.size());
                sums.emplace_back();
                keys.emplace_back(trace.name[i], trace.category[i]);
            }
            Sum& sum = sums[row];
            ++sum.count;
            sum.total += cut;
            sum.self += cut;
            durations.emplace_back(row, trace.duration[i]);
            activity.add(trace.tracks[t].kind, trace.category[i], from, to);
            while (!open.empty() && open.back().end <= from) open.pop_back();
            if (!open.empty() && to <= open.back().end) sums[open.back().row].self -= cut;
            open.push_back({to, row});
        }
    }
    result.slices = std::ssize(durations);
    for (const auto& [rank, activity] : activities) result.ranks.emplace_back(rank, activity.breakdown(begin, end));

    // Deal the lengths out by row, then sort each.
    std::vector<std::size_t> first(sums.size() + 1, 0);
    for (const auto& [row, length] : durations) ++first[row + 1];
    for (std::size_t r = 1; r < first.size(); ++r) first[r] += first[r - 1];
    std::vector<Time> byRow(durations.size());
    std::vector<std::size_t> next(first.begin(), first.end() - (first.empty() ? 0 : 1));
    for (const auto& [row, length] : durations) byRow[next[row]++] = length;
    for (std::size_t r = 0; r < sums.size(); ++r) {
        const std::span<Time> values(byRow.data() + first[r], first[r + 1] - first[r]);
        std::sort(values.begin(), values.end());
        NameStatistics row;
        row.name = keys[r].first;
        row.category = keys[r].second;
        row.count = sums[r].count;
        row.total = sums[r].total;
        row.self = std::max(sums[r].self, Time{});
        double all = 0;
        for (const Time value : values) all += static_cast<double>(value.picoseconds());
        row.mean = Time::fromPicoseconds(std::llround(all / static_cast<double>(values.size())));
        row.least = values.front();
        row.most = values.back();
        row.p50 = percentile(values, 50);
        row.p90 = percentile(values, 90);
        row.p99 = percentile(values, 99);
        result.names.push_back(row);
    }
    std::stable_sort(result.names.begin(), result.names.end(), [](const NameStatistics& a, const NameStatistics& b) { return a.self > b.self; });
    return result;
}

Time Histogram::edge(std::size_t i) const {
    if (counts.empty()) return {};
    const double part = static_cast<double>(i) / static_cast<double>(counts.size()), low = static_cast<double>(least.picoseconds()), high = static_cast<double>(most.picoseconds());
    const double at = logarithmic ? std::max(low, 1.0) * std::pow(high / std::max(low, 1.0), part) : low + (high - low) * part;
    return Time::fromPicoseconds(std::llround(at));
}

Histogram durationHistogram(const Trace& trace, std::span<const std::uint32_t> names, Time begin, Time end, std::size_t bins, bool logarithmic) {
    CHECK(bins >= 1);
    std::vector<bool> wanted(trace.names.size());
    for (const std::uint32_t name : names) wanted[name] = true;
    std::vector<Time> values;
    for (std::size_t i = 0; i < trace.size(); ++i)
        if (wanted[trace.name[i]] && trace.start[i] >= begin && trace.start[i] < end) values.push_back(trace.duration[i]);
    Histogram result;
    if (values.empty()) return result;
    std::sort(values.begin(), values.end());
    result.least = values.front();
    result.most = values.back();
    result.logarithmic = logarithmic && result.most > Time{};
    result.counts.assign(bins, 0);
    result.slices = std::ssize(values);
    double sum = 0;
    std::size_t bin = 0;
    for (const Time value : values) {
        sum += static_cast<double>(value.picoseconds());
        while (bin + 1 < bins && value >= result.edge(bin + 1)) ++bin;
        ++result.counts[bin];
    }
    result.mean = Time::fromPicoseconds(std::llround(sum / static_cast<double>(values.size())));
    result.p50 = percentile(values, 50);
    result.p90 = percentile(values, 90);
    result.p99 = percentile(values, 99);
    return result;
}

}  // namespace ringside
