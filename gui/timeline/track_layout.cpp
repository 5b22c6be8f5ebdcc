#include "gui/timeline/track_layout.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace ringside::gui {
namespace {

bool containsAnyCase(const std::string& text, const std::string& part) {
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

/// Compute first, then what it waits for.
int orderOf(TrackKind kind) {
    switch (kind) {
        case TrackKind::Host: return 0;
        case TrackKind::Compute: return 1;
        case TrackKind::Communication: return 2;
        case TrackKind::Copy: return 3;
    }
    return 4;
}

struct OfRank {
    std::vector<std::uint32_t> tracks, counters;
};

}  // namespace

bool isCollapsed(const TrackOptions& options, std::int64_t rank, std::size_t rankCount) {
    if (options.collapsed.contains(rank)) return true;
    if (options.expanded.contains(rank)) return false;
    return rankCount > kManyRanks;
}

std::optional<std::uint32_t> reservedBeside(const Trace& trace, std::uint32_t counter) {
    const CounterSeries& shown = trace.counters[counter];
    if (shown.series.size() < 2 || !shown.name.starts_with("memory")) return std::nullopt;
    for (std::uint32_t c = 0; c < trace.counters.size(); ++c)
        if (trace.counters[c].rank == shown.rank && trace.counters[c].name == "memory reserved") return c;
    return std::nullopt;
}

TrackLayout layoutTracks(const Trace& trace, const SliceIndex& index, const TrackOptions& options, const RowHeights& heights) {
    std::map<std::int64_t, OfRank> ofRank;
    for (std::uint32_t t = 0; t < trace.tracks.size(); ++t) {
        if (trace.firstSlice(t) == trace.firstSlice(t + 1)) continue;  // nothing to see
        ofRank[trace.tracks[t].rank].tracks.push_back(t);
    }
    if (options.counters)
        for (std::uint32_t c = 0; c < trace.counters.size(); ++c)
            if (!trace.counters[c].at.empty()) ofRank[trace.counters[c].rank].counters.push_back(c);
    std::set<std::uint32_t> lines;
    for (auto& [rank, content] : ofRank) {
        for (const std::uint32_t c : content.counters)
            if (const std::optional<std::uint32_t> reserved = reservedBeside(trace, c)) lines.insert(*reserved);
        std::erase_if(content.counters, [&](std::uint32_t c) { return lines.contains(c); });
    }
    std::vector<std::int64_t> ranks;
    for (const std::int64_t rank : options.order)
        if (ofRank.contains(rank) && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
    for (const auto& [rank, content] : ofRank)
        if (std::find(options.order.begin(), options.order.end(), rank) == options.order.end()) ranks.push_back(rank);

    const auto trackRow = [&](std::uint32_t track, double y) {
        LayoutRow row;
        row.kind = RowKind::Track;
        row.rank = trace.tracks[track].rank;
        row.track = track;
        row.y = y;
        row.folded = options.folded.contains(track) && index.rowCount(track) > 1;
        row.lines = row.folded ? 1 : index.rowCount(track);
        row.height = static_cast<double>(row.lines) * heights.line + heights.gap;
        return row;
    };

    TrackLayout layout;
    for (const std::uint32_t track : options.pinned) {
        if (track >= trace.tracks.size()) continue;
        layout.pinned.push_back(trackRow(track, layout.pinnedHeight));
        layout.pinnedHeight = layout.pinned.back().bottom();
    }
    for (const std::int64_t rank : ranks) {
        OfRank& content = ofRank[rank];
        const auto placeOf = [&](std::uint32_t track) {
            const auto asked = std::find(options.trackOrder.begin(), options.trackOrder.end(), track);
            return std::pair(asked - options.trackOrder.begin(), orderOf(trace.tracks[track].kind));
        };
        std::stable_sort(content.tracks.begin(), content.tracks.end(), [&](std::uint32_t a, std::uint32_t b) { return placeOf(a) < placeOf(b); });
        if (!options.filter.empty() && !containsAnyCase(fmt::format("rank {}", rank), options.filter)) {
            std::erase_if(content.tracks, [&](std::uint32_t t) { return !containsAnyCase(trace.tracks[t].name, options.filter) && !containsAnyCase(std::string(nameOf(trace.tracks[t].kind)), options.filter); });
            std::erase_if(content.counters, [&](std::uint32_t c) { return !containsAnyCase(trace.counters[c].name, options.filter); });
        }
        if (content.tracks.empty() && content.counters.empty()) continue;
        const bool collapsed = isCollapsed(options, rank, ofRank.size());
        if (collapsed) {
            LayoutRow row;
            row.kind = RowKind::Density;
            row.rank = rank;
            row.y = layout.height;
            row.height = ofRank.size() > kManyRanks ? heights.manyDensity : heights.density;
            // The device's tracks tell the story; the host's only where there is nothing else.
            for (const std::uint32_t t : content.tracks)
                if (trace.tracks[t].kind == TrackKind::Compute || trace.tracks[t].kind == TrackKind::Communication) row.bands.push_back(t);
            if (row.bands.empty()) row.bands = content.tracks;
            if (row.bands.size() > 4) row.bands.resize(4);
            layout.rows.push_back(std::move(row));
            layout.height = layout.rows.back().bottom();
            continue;
        }
        LayoutRow header;
        header.kind = RowKind::Rank;
        header.rank = rank;
        header.y = layout.height;
        header.height = heights.rank;
        layout.rows.push_back(header);
        layout.height = header.bottom();
        for (const std::uint32_t t : content.tracks) {
            if (std::find(options.pinned.begin(), options.pinned.end(), t) != options.pinned.end()) continue;
            layout.rows.push_back(trackRow(t, layout.height));
            layout.height = layout.rows.back().bottom();
        }
        for (const std::uint32_t c : content.counters) {
            LayoutRow row;
            row.kind = RowKind::Counter;
            row.rank = rank;
            row.track = c;
            row.y = layout.height;
            row.height = trace.counters[c].series.size() > 1 || trace.counters[c].name.starts_with("memory") ? heights.stackedCounter : heights.counter;
            layout.rows.push_back(row);
            layout.height = row.bottom();
        }
    }
    return layout;
}

namespace {

/// Of a list in the order shown: `what` stands where `where` stood.
template <class T>
void move(std::vector<T>& list, T what, T where) {
    const auto from = std::find(list.begin(), list.end(), what), to = std::find(list.begin(), list.end(), where);
    if (from == list.end() || to == list.end()) return;
    if (from < to) std::rotate(from, from + 1, to + 1);
    else std::rotate(to, from, from + 1);
}

}  // namespace

TrackOptions withMoved(const TrackOptions& options, const TrackLayout& layout, const LayoutRow& row, const LayoutRow& onto) {
    const auto isRank = [](const LayoutRow& r) { return r.kind == RowKind::Rank || r.kind == RowKind::Density; };
    const auto isPinned = [&](const LayoutRow& r) { return std::find(options.pinned.begin(), options.pinned.end(), r.track) != options.pinned.end(); };
    TrackOptions moved = options;
    if (isRank(row)) {
        moved.order.clear();
        for (const LayoutRow& shown : layout.rows)
            if (isRank(shown)) moved.order.push_back(shown.rank);
        move(moved.order, row.rank, onto.rank);
    } else if (row.kind == RowKind::Track && onto.kind == RowKind::Track && isPinned(row) && isPinned(onto)) {
        move(moved.pinned, row.track, onto.track);
    } else if (row.kind == RowKind::Track && onto.kind == RowKind::Track && row.rank == onto.rank && !isPinned(row) && !isPinned(onto)) {
        std::vector<std::uint32_t> ofRank;
        for (const LayoutRow& shown : layout.rows)
            if (shown.kind == RowKind::Track && shown.rank == row.rank) ofRank.push_back(shown.track);
        std::erase_if(moved.trackOrder, [&](std::uint32_t track) { return std::find(ofRank.begin(), ofRank.end(), track) != ofRank.end(); });
        move(ofRank, row.track, onto.track);
        moved.trackOrder.insert(moved.trackOrder.end(), ofRank.begin(), ofRank.end());
    }
    return moved;
}

std::pair<std::size_t, std::size_t> TrackLayout::visible(double top, double bottom) const {
    const auto first = std::partition_point(rows.begin(), rows.end(), [&](const LayoutRow& row) { return row.bottom() <= top; });
    const auto last = std::partition_point(first, rows.end(), [&](const LayoutRow& row) { return row.y < bottom; });
    return {static_cast<std::size_t>(first - rows.begin()), static_cast<std::size_t>(last - rows.begin())};
}

const LayoutRow* TrackLayout::rowAt(double y) const {
    const auto [first, last] = visible(y, y + 1e-6);
    return first < last ? &rows[first] : nullptr;
}

const LayoutRow* TrackLayout::pinnedAt(double y) const {
    for (const LayoutRow& row : pinned)
        if (row.y <= y && y < row.bottom()) return &row;
    return nullptr;
}

const LayoutRow* TrackLayout::rowOfTrack(std::uint32_t track) const {
    for (const LayoutRow& row : pinned)
        if (row.track == track) return &row;
    for (const LayoutRow& row : rows) {
        if (row.kind == RowKind::Track && row.track == track) return &row;
        if (row.kind == RowKind::Density && std::find(row.bands.begin(), row.bands.end(), track) != row.bands.end()) return &row;
    }
    return nullptr;
}

}  // namespace ringside::gui
