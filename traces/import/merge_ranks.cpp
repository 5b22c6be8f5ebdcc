#include "traces/import/merge_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "model/base/check.h"
#include "traces/analysis/collectives.h"
#include "traces/analysis/steps.h"
#include "traces/collective_names.h"

namespace ringside {
namespace {

Time absolute(Time t) { return t < Time{} ? Time{} - t : t; }

Time medianOf(std::vector<Time> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Ranks that are taken already are numbered anew.
void settleRanks(std::vector<ImportedTrace>& parts, ImportNotes& notes) {
    std::set<std::int64_t> taken;
    for (ImportedTrace& part : parts) {
        std::map<std::int64_t, std::int64_t> newRank;
        for (const std::int64_t rank : ranksOf(part.trace)) {
            std::int64_t free = rank;
            while (taken.contains(free)) ++free;
            if (free != rank) notes.add(fmt::format("rank {} is already in another file; shown as rank {}", rank, free), part.files.front());
            taken.insert(free);
            newRank[rank] = free;
        }
        const auto renumber = [&](std::int64_t& rank) {
            if (const auto it = newRank.find(rank); it != newRank.end()) rank = it->second;
        };
        for (Track& track : part.trace.tracks) renumber(track.rank);
        for (CounterSeries& counter : part.trace.counters) renumber(counter.rank);
        for (Allocation& allocation : part.trace.allocations) renumber(allocation.rank);
        for (TraceDevice& device : part.metadata.devices) renumber(device.rank);
        std::map<std::int64_t, std::string> names;
        for (auto& [rank, name] : part.trace.rankNames) names[newRank.contains(rank) ? newRank[rank] : rank] = std::move(name);
        part.trace.rankNames = std::move(names);
    }
}

void shift(Trace& trace, Time by) {
    if (by == Time{}) return;
    for (Time& start : trace.start) start += by;
    for (Instant& instant : trace.instants) instant.at += by;
    for (CounterSeries& counter : trace.counters)
        for (Time& at : counter.at) at += by;
    for (Allocation& allocation : trace.allocations) {
        allocation.begin += by;
        if (allocation.end < Time::max()) allocation.end += by;
    }
}

/// The parts one behind the other: tracks stay sorted, so do slices.
Trace joined(std::vector<ImportedTrace>& parts) {
    Trace all;
    std::unordered_map<std::string, std::uint32_t> names;
    std::size_t size = 0;
    for (const ImportedTrace& part : parts) size += part.trace.size();
    const auto reserve = [size](auto&... columns) { (columns.reserve(size), ...); };
    reserve(all.track, all.start, all.duration, all.category, all.name, all.task, all.collective, all.origin);
    for (std::size_t p = 0; p < parts.size(); ++p) {
        Trace part = std::move(parts[p].trace);
        std::vector<std::uint32_t> newName(part.names.size());
        for (std::size_t n = 0; n < part.names.size(); ++n) {
            const auto [it, isNew] = names.try_emplace(part.names[n], static_cast<std::uint32_t>(all.names.size()));
            if (isNew) all.names.push_back(std::move(part.names[n]));
            newName[n] = it->second;
        }
        const auto slices = static_cast<std::uint32_t>(all.size()), tracks = static_cast<std::uint32_t>(all.tracks.size());
        const auto collectives = static_cast<std::int32_t>(all.collectives.size());
        const auto append = [](auto& to, auto& from) { to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end())); };
        for (std::uint32_t& t : part.track) t += tracks;
        for (std::uint32_t& n : part.name) n = newName[n];
        for (std::int32_t& c : part.collective)
            if (c >= 0) c += collectives;
        for (std::uint64_t& origin : part.origin) origin = originValue(p, originOf(origin).offset);
        for (Flow& flow : part.flows) {
            flow.from += slices;
            flow.to += slices;
        }
        for (Instant& instant : part.instants) {
            instant.track += tracks;
            instant.name = newName[instant.name];
        }
        for (Allocation& allocation : part.allocations) {
            allocation.name = newName[allocation.name];
            allocation.category = newName[allocation.category];
        }
        append(all.track, part.track);
        append(all.start, part.start);
        append(all.duration, part.duration);
        append(all.category, part.category);
        append(all.name, part.name);
        append(all.task, part.task);
        append(all.collective, part.collective);
        append(all.origin, part.origin);
        append(all.tracks, part.tracks);
        append(all.collectives, part.collectives);
        append(all.flows, part.flows);
        append(all.counters, part.counters);
        append(all.instants, part.instants);
        append(all.allocations, part.allocations);
        all.rankNames.merge(part.rankNames);
        all.worldSize = std::max(all.worldSize, part.worldSize);
        if (p == 0) all.title = part.title;
    }
    return all;
}

/// All ranks leave these together.
bool isAnchor(const CollectiveDetails& details) {
    const CollectiveKind kind = collectiveKindOf(details.op);
    return kind == CollectiveKind::AllReduce || kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
}

struct Placement {
    RankAlignment::Method method = RankAlignment::Method::None;
    Time shift, residual, worst;
    std::int64_t anchors = 0;
};

std::vector<Placement> placementsOf(const Trace& trace, const std::vector<std::uint32_t>& partOfTrack, std::size_t parts, bool haveClocks) {
    // Per pair of parts, how much later the first left their common collectives.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Time>> later;
    for (const MatchedCollective& one : matchCollectives(trace)) {
        if (!isAnchor(trace.collectives[static_cast<std::size_t>(one.collective)])) continue;
        for (const std::uint32_t a : one.slices)
            for (const std::uint32_t b : one.slices) {
                const std::uint32_t partA = partOfTrack[trace.track[a]], partB = partOfTrack[trace.track[b]];
                if (partA != partB && later.size() < 100000) later[{partA, partB}].push_back(trace.start[a] + trace.duration[a] - trace.start[b] - trace.duration[b]);
            }
    }
    std::vector<Placement> placements(parts);
    placements[0].method = RankAlignment::Method::Reference;
    std::vector<bool> placed(parts);
    placed[0] = true;
    for (bool moved = true; moved;) {
        moved = false;
        for (std::uint32_t p = 1; p < parts; ++p) {
            if (placed[p]) continue;
            std::vector<Time> differences;
            for (std::uint32_t q = 0; q < parts; ++q) {
                const auto it = placed[q] ? later.find({q, p}) : later.end();
                if (it == later.end()) continue;
                for (const Time difference : it->second) differences.push_back(difference + placements[q].shift);
            }
            if (differences.empty()) continue;
            Placement& placement = placements[p];
            placement.anchors = std::ssize(differences);
            const Time median = medianOf(differences);
            std::vector<Time> around;
            for (const Time difference : differences) around.push_back(absolute(difference - median));
            const Time residual = medianOf(around);
            const bool clockIsRight = haveClocks && absolute(median) <= residual;
            placement.method = clockIsRight ? RankAlignment::Method::OwnClock : RankAlignment::Method::Collectives;
            placement.shift = clockIsRight ? Time{} : median;
            std::vector<Time> left;
            for (const Time difference : differences) left.push_back(absolute(difference - placement.shift));
            placement.residual = medianOf(left);
            placement.worst = *std::max_element(left.begin(), left.end());
            placed[p] = moved = true;
        }
    }
    return placements;
}

}  // namespace

ImportedTrace mergeRanks(std::vector<ImportedTrace> parts) {
    CHECK(!parts.empty());
    if (parts.size() == 1) return std::move(parts.front());
    const auto firstRank = [](const ImportedTrace& part) { return part.trace.tracks.empty() ? 0 : part.trace.tracks.front().rank; };
    std::stable_sort(parts.begin(), parts.end(), [&](const ImportedTrace& a, const ImportedTrace& b) { return firstRank(a) < firstRank(b); });
    ImportedTrace out;
    for (const ImportedTrace& part : parts)
        for (const ImportNote& note : part.notes.all()) out.notes.add(note.what, note.where, note.count);
    settleRanks(parts, out.notes);

    const bool haveClocks = std::all_of(parts.begin(), parts.end(), [](const ImportedTrace& part) { return part.metadata.baseTimeNanoseconds.has_value(); });
    std::vector<std::uint32_t> partOfTrack;
    out.format = parts.front().format;
    out.metadata = parts.front().metadata;
    out.metadata.devices.clear();
    constexpr std::int64_t kFarthest = 40LL * 24 * 3600 * 1000000000;  // 40 days in ns: what is farther apart was not one run
    std::int64_t base = haveClocks ? *parts.front().metadata.baseTimeNanoseconds : 0;
    if (haveClocks)
        for (const ImportedTrace& part : parts) base = std::min(base, *part.metadata.baseTimeNanoseconds);
    for (std::uint32_t p = 0; p < parts.size(); ++p) {
        ImportedTrace& part = parts[p];
        if (part.format != out.format) out.notes.add("files of different formats are shown together", part.files.front());
        if (haveClocks) {
            const std::int64_t after = *part.metadata.baseTimeNanoseconds - base;
            if (after < kFarthest) shift(part.trace, Time::fromNanoseconds(after));
            else out.notes.add("the clock of this file is more than 40 days from the others; shown from the start", part.files.front());
        }
        partOfTrack.insert(partOfTrack.end(), part.trace.tracks.size(), p);
        out.files.push_back(part.files.front());
        out.sources.insert(out.sources.end(), part.sources.begin(), part.sources.end());
        out.metadata.devices.insert(out.metadata.devices.end(), part.metadata.devices.begin(), part.metadata.devices.end());
        out.metadata.worldSize = std::max(out.metadata.worldSize, part.metadata.worldSize);
    }
    if (haveClocks) out.metadata.baseTimeNanoseconds = base;
    std::vector<std::vector<std::int64_t>> ranks;
    for (const ImportedTrace& part : parts) ranks.push_back(ranksOf(part.trace));
    out.trace = joined(parts);
    out.trace.worldSize = std::max(out.trace.worldSize, std::ssize(ranksOf(out.trace)));

    const std::vector<Placement> placements = placementsOf(out.trace, partOfTrack, parts.size(), haveClocks);
    for (std::size_t i = 0; i < out.trace.size(); ++i) out.trace.start[i] += placements[partOfTrack[out.trace.track[i]]].shift;
    for (Instant& instant : out.trace.instants) instant.at += placements[partOfTrack[instant.track]].shift;
    std::map<std::int64_t, const Placement*> ofRank;
    for (std::size_t p = 0; p < placements.size(); ++p)
        for (const std::int64_t rank : ranks[p]) {
            const Placement& placement = placements[p];
            ofRank[rank] = &placement;
            out.alignment.push_back({rank, placement.method == RankAlignment::Method::None && haveClocks ? RankAlignment::Method::OwnClock : placement.method, placement.shift, placement.anchors,
                                     placement.residual, placement.worst});
        }
    for (CounterSeries& counter : out.trace.counters)
        if (const auto it = ofRank.find(counter.rank); it != ofRank.end())
            for (Time& at : counter.at) at += it->second->shift;
    for (Allocation& allocation : out.trace.allocations)
        if (const auto it = ofRank.find(allocation.rank); it != ofRank.end()) {
            allocation.begin += it->second->shift;
            if (allocation.end < Time::max()) allocation.end += it->second->shift;
        }
    for (std::size_t p = 1; p < placements.size(); ++p) {
        const Placement& placement = placements[p];
        const std::string rank = fmt::format("rank {}", fmt::join(ranks[p], ", "));
        switch (placement.method) {
            case RankAlignment::Method::Reference: break;
            case RankAlignment::Method::Collectives:
                out.notes.add(fmt::format("{} was moved by {}{}: the median over {} ends of collectives that it shares; {} are left (at worst {})", rank, placement.shift < Time{} ? "−" : "+",
                                          formatTime(absolute(placement.shift)), placement.anchors, formatTime(placement.residual), formatTime(placement.worst)), out.files[p]);
                break;
            case RankAlignment::Method::OwnClock:
                out.notes.add(fmt::format("{} is placed by its clock, which agrees with {} ends of collectives within {} (at worst {})", rank, placement.anchors, formatTime(placement.residual),
                                          formatTime(placement.worst)), out.files[p]);
                break;
            case RankAlignment::Method::None:
                out.notes.add(haveClocks ? fmt::format("{} is NOT aligned: it shares no collective with the others; it is placed by its own clock, which may be off by any amount", rank)
                                         : fmt::format("{} is NOT aligned: it shares no collective with the others and its file has no clock; it begins at 0, and times must not be compared across ranks", rank),
                              out.files[p]);
        }
    }
    // Moves may have gone before 0: the first thing begins there, as in a single file.
    Time first = Time::max();
    for (const Time start : out.trace.start) first = std::min(first, start);
    if (!out.trace.start.empty() && first < Time{}) {
        shift(out.trace, Time{} - first);
        if (out.metadata.baseTimeNanoseconds) *out.metadata.baseTimeNanoseconds += first.picoseconds() / 1000;
    }
    return out;
}

}  // namespace ringside
