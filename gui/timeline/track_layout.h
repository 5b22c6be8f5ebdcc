// TrackLayout: which row stands where. Ranks with their tracks and counters from top to bottom; collapsed ranks as density rows.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gui/timeline/slice_index.h"
#include "traces/analysis/steps.h"
#include "traces/trace.h"

namespace ringside::gui {

/// What the user asked for. Ranks and tracks that are not named are as the layout thinks best.
struct TrackOptions {
    std::set<std::int64_t> collapsed, expanded;   ///< ranks
    std::set<std::uint32_t> folded;               ///< tracks of which only the outermost row is shown
    std::vector<std::uint32_t> pinned;            ///< tracks that stay on top while the rest scrolls
    std::vector<std::int64_t> order;              ///< ranks that come first, in this order
    std::vector<std::uint32_t> trackOrder;        ///< tracks that come first within their rank, in this order
    std::string filter;                           ///< part of a track's or counter's name, or of "rank 3"; any case; empty: all
    bool counters = true;

    bool operator==(const TrackOptions&) const = default;
};

enum class RowKind : std::uint8_t { Rank, Density, Track, Counter };

struct LayoutRow {
    RowKind kind = RowKind::Track;
    double y = 0, height = 0;
    std::int64_t rank = 0;
    std::uint32_t track = 0;    ///< Track; Counter: its index in Trace::counters
    std::size_t lines = 1;      ///< Track: rows of slices that are shown
    std::vector<std::uint32_t> bands = {};  ///< Density: tracks, one thin band each
    bool folded = false;        ///< Track: has more lines than are shown

    double bottom() const { return y + height; }
};

struct RowHeights {
    double rank = 24, line = 18, stackedCounter = 76, counter = 42, density = 26, manyDensity = 14, gap = 3;
};

struct TrackLayout {
    std::vector<LayoutRow> pinned;   ///< y counts from the top of the fixed part
    double pinnedHeight = 0;
    std::vector<LayoutRow> rows;     ///< y counts from the top of the scrolled part
    double height = 0;

    /// Rows that overlap [top, bottom), as positions into `rows`. O(log rows).
    std::pair<std::size_t, std::size_t> visible(double top, double bottom) const;
    const LayoutRow* rowAt(double y) const;       ///< of the scrolled part
    const LayoutRow* pinnedAt(double y) const;
    const LayoutRow* rowOfTrack(std::uint32_t track) const;  ///< pinned ones first; the density row of a collapsed rank
};

/// More ranks than this begin collapsed.
inline constexpr std::size_t kManyRanks = 32;

bool isCollapsed(const TrackOptions& options, std::int64_t rank, std::size_t rankCount);

/// The counter of reserved bytes that is drawn as a line over `counter`; it has no row of its own.
std::optional<std::uint32_t> reservedBeside(const Trace& trace, std::uint32_t counter);

/// What the user asks for by dragging the name of one row onto that of another: ranks among ranks, tracks among those of their rank,
/// pinned tracks among pinned ones. Going down it stands after the other, going up before it. Unchanged where the two do not mix.
/// REQUIRES: both are rows of `layout`, which was made from `options`.
TrackOptions withMoved(const TrackOptions& options, const TrackLayout& layout, const LayoutRow& row, const LayoutRow& onto);

/// O(tracks log tracks).
TrackLayout layoutTracks(const Trace& trace, const SliceIndex& index, const TrackOptions& options, const RowHeights& heights = {});

}  // namespace ringside::gui
