#include "traces/analysis/collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "traces/collective_names.h"

namespace ringside {

double busbwFactor(std::string_view op, std::int64_t n) {
    const double ranks = static_cast<double>(n);
    switch (collectiveKindOf(op)) {
        case CollectiveKind::AllReduce: return 2 * (ranks - 1) / ranks;
        case CollectiveKind::AllGather:
        case CollectiveKind::ReduceScatter:
        case CollectiveKind::AllToAll: return (ranks - 1) / ranks;
        case CollectiveKind::Broadcast:
        case CollectiveKind::Reduce:
        case CollectiveKind::SendRecv:
        case CollectiveKind::Other: return 1;
    }
    return 1;
}

std::vector<CollectiveRow> collectivesOf(const Trace& trace, std::int64_t rank) {
    std::vector<Time> shortest(trace.collectives.size(), Time::max());
    std::vector<CollectiveRow> rows;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        const std::int32_t collective = trace.collective[i];
        if (collective < 0 || trace.category[i] != SliceCategory::Communication) continue;
        Time& transfer = shortest[static_cast<std::size_t>(collective)];
        transfer = std::min(transfer, trace.duration[i]);
        if (trace.tracks[trace.track[i]].rank == rank) rows.push_back({collective, trace.start[i], trace.duration[i], {}, 0, 0});
    }
    for (CollectiveRow& row : rows) {
        const CollectiveDetails& details = trace.collectives[static_cast<std::size_t>(row.collective)];
        row.transfer = shortest[static_cast<std::size_t>(row.collective)];
        if (row.transfer > Time{}) row.algbw = static_cast<double>(details.bytes) / row.transfer.seconds();
        row.busbw = row.algbw * busbwFactor(details.op, std::max<std::int64_t>(details.groupSize, 1));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const CollectiveRow& a, const CollectiveRow& b) { return a.start < b.start; });
    return rows;
}

std::vector<MatchedCollective> matchCollectives(const Trace& trace) {
    std::vector<std::uint32_t> slices;
    for (std::uint32_t i = 0; i < trace.size(); ++i)
        if (trace.collective[i] >= 0 && trace.category[i] == SliceCategory::Communication) slices.push_back(i);
    std::stable_sort(slices.begin(), slices.end(), [&](std::uint32_t a, std::uint32_t b) { return trace.start[a] < trace.start[b]; });

    // What tells one collective from the next, without counting: then slices of a rank with the same key are counted.
    std::vector<std::uint32_t> keyOf(trace.collectives.size());
    std::map<std::string, std::uint32_t> keys;
    std::map<std::int32_t, std::int64_t> ranksPerDetails;
    std::map<std::pair<std::int32_t, std::int64_t>, int> uses;
    for (const std::uint32_t i : slices)
        if (++uses[{trace.collective[i], trace.tracks[trace.track[i]].rank}] == 1) ++ranksPerDetails[trace.collective[i]];
    for (std::size_t c = 0; c < trace.collectives.size(); ++c) {
        const CollectiveDetails& d = trace.collectives[c];
        std::string key = fmt::format("{}|{}|{}|{}|", d.group, d.groupSize, fmt::join(d.ranks, " "), ncclName(collectiveKindOf(d.op)));
        if (const auto shared = ranksPerDetails.find(static_cast<std::int32_t>(c)); shared != ranksPerDetails.end() && shared->second > 1) key = fmt::format("same {}", c);
        else if (d.sequence >= 0) key += fmt::format("seq {}", d.sequence);
        else key += fmt::format("bytes {}", d.bytes);
        keyOf[c] = keys.try_emplace(std::move(key), static_cast<std::uint32_t>(keys.size())).first->second;
    }
    std::map<std::pair<std::int64_t, std::uint32_t>, std::uint32_t> count;  // per rank and key
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> index;   // of key and turn
    std::vector<MatchedCollective> matched;
    for (const std::uint32_t i : slices) {
        const std::uint32_t key = keyOf[static_cast<std::size_t>(trace.collective[i])];
        const std::uint32_t turn = count[{trace.tracks[trace.track[i]].rank, key}]++;
        const auto [it, isNew] = index.try_emplace({key, turn}, matched.size());
        if (isNew) {
            matched.emplace_back();
            matched.back().collective = trace.collective[i];
        }
        matched[it->second].slices.push_back(i);
    }
    for (MatchedCollective& one : matched) {
        std::stable_sort(one.slices.begin(), one.slices.end(), [&](std::uint32_t a, std::uint32_t b) { return trace.tracks[trace.track[a]].rank < trace.tracks[trace.track[b]].rank; });
        one.begin = one.transfer = Time::max();
        for (const std::uint32_t i : one.slices) {
            one.begin = std::min(one.begin, trace.start[i]);
            one.end = std::max(one.end, trace.start[i] + trace.duration[i]);
            one.transfer = std::min(one.transfer, trace.duration[i]);
        }
        const CollectiveDetails& details = trace.collectives[static_cast<std::size_t>(one.collective)];
        one.isComplete = details.groupSize > 0 && std::ssize(one.slices) == details.groupSize;
        if (one.transfer > Time{}) one.algbw = static_cast<double>(details.bytes) / one.transfer.seconds();
        one.busbw = one.algbw * busbwFactor(details.op, std::max<std::int64_t>(details.groupSize, 1));
    }
    std::stable_sort(matched.begin(), matched.end(), [](const MatchedCollective& a, const MatchedCollective& b) { return a.begin < b.begin; });
    return matched;
}

std::vector<Flow> collectiveFlows(const std::vector<MatchedCollective>& matched) {
    std::vector<Flow> flows;
    for (const MatchedCollective& one : matched)
        for (std::size_t k = 1; k < one.slices.size(); ++k) flows.push_back({one.slices[k - 1], one.slices[k], Flow::Kind::Collective});
    return flows;
}

namespace {

using Changes = std::map<std::int64_t, std::vector<std::pair<Time, double>>>;  // per rank: from when on so much more or less

std::vector<CounterSeries> sumsOf(Changes changes, const char* name, const char* series) {
    std::vector<CounterSeries> counters;
    for (auto& [rank, list] : changes) {
        std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        CounterSeries counter;
        counter.rank = rank;
        counter.name = name;
        counter.series = {series};
        double sum = 0;
        for (std::size_t k = 0; k < list.size(); ++k) {
            sum += list[k].second;
            if (k + 1 < list.size() && list[k + 1].first == list[k].first) continue;
            counter.at.push_back(list[k].first);
            counter.values.push_back(std::llround(std::max(sum, 0.0)));
        }
        counter.values.back() = 0;  // what rounding leaves
        counters.push_back(std::move(counter));
    }
    return counters;
}

}  // namespace

std::vector<CounterSeries> linkLoad(const Trace& trace, const std::vector<MatchedCollective>& matched) {
    Changes changes;
    for (const MatchedCollective& one : matched) {
        if (!(one.busbw > 0)) continue;
        for (const std::uint32_t i : one.slices) {
            const Time end = trace.start[i] + trace.duration[i];
            auto& list = changes[trace.tracks[trace.track[i]].rank];
            list.emplace_back(end - one.transfer, one.busbw);
            list.emplace_back(end, -one.busbw);
        }
    }
    return sumsOf(std::move(changes), "link load", "bytes per second");
}

std::vector<CounterSeries> bytesInFlight(const Trace& trace, const std::vector<MatchedCollective>& matched) {
    Changes changes;
    for (const MatchedCollective& one : matched)
        for (const std::uint32_t i : one.slices) {
            const auto bytes = static_cast<double>(trace.collectives[static_cast<std::size_t>(trace.collective[i])].bytes);
            if (!(bytes > 0)) continue;
            auto& list = changes[trace.tracks[trace.track[i]].rank];
            list.emplace_back(trace.start[i], bytes);
            list.emplace_back(trace.start[i] + trace.duration[i], -bytes);
        }
    return sumsOf(std::move(changes), "bytes in flight", "bytes");
}

}  // namespace ringside
