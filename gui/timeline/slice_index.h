// SliceIndex: the slices of a trace in rows where none overlaps another, each with a pyramid over it, so that any zoom is painted in
// time that depends on the width of the picture and not on the number of slices.
//
// A row is a list of disjoint slices by start. Level k of its pyramid sums up groups of 8^k of them: from when to when, how much of
// that is covered, and what covers most. A group narrower than a pixel is painted without looking at its slices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gui/timeline/time_range.h"
#include "traces/analysis/enclosing.h"
#include "traces/trace.h"

namespace ringside::gui {

/// Which of a category's shades a name has: neighbours of different names differ.
inline std::uint8_t shadeOfName(std::uint32_t name, int shades) { return static_cast<std::uint8_t>((name * 2654435761U >> 13) % static_cast<std::uint32_t>(shades)); }

struct SliceGroup {
    Time begin, end;
    Time covered;
    SliceCategory category = SliceCategory::Compute;  ///< of what covers most of it
    std::uint32_t name = 0;                           ///< of one of those
};

class SliceRow {
public:
    static constexpr std::size_t kFan = 8;

    /// Slices [first, first + count) of the trace.
    SliceRow(const Trace& trace, std::uint32_t first, std::uint32_t count);
    /// Any slices of one track by start. REQUIRES: they do not overlap.
    SliceRow(const Trace& trace, std::vector<std::uint32_t> slices);

    std::size_t size() const { return count_; }
    std::uint32_t slice(std::size_t i) const { return slices_.empty() ? first_ + static_cast<std::uint32_t>(i) : slices_[i]; }
    /// Position of the first slice that ends after t. O(log size).
    std::size_t firstEndingAfter(const Trace& trace, Time t) const;
    /// Position of the first slice that starts at t or later. O(log size).
    std::size_t firstStartingFrom(const Trace& trace, Time t) const;
    /// Where the slice stands in this row, if it does. O(log size).
    std::optional<std::size_t> positionOf(std::uint32_t slice) const;
    /// levels()[0] has groups of 8.
    const std::vector<std::vector<SliceGroup>>& levels() const { return levels_; }

private:
    void buildPyramid(const Trace& trace);

    std::uint32_t first_ = 0, count_ = 0;
    std::vector<std::uint32_t> slices_;  ///< empty where the row is the track's whole run of slices
    std::vector<std::vector<SliceGroup>> levels_;
};

class SliceIndex {
public:
    SliceIndex() = default;
    /// O(slices × lanes); a tenth of a second for ten million.
    explicit SliceIndex(const Trace& trace);

    std::size_t rowCount(std::size_t track) const { return firstRow_[track + 1] - firstRow_[track]; }
    /// From the outermost to the innermost, then further lanes where slices overlap without nesting. At least one row per track.
    std::span<const SliceRow> rows(std::size_t track) const { return std::span(rows_).subspan(firstRow_[track], rowCount(track)); }
    /// Which of its track's rows a slice stands in.
    std::size_t rowOf(const Trace& trace, std::uint32_t slice) const;

private:
    std::vector<SliceRow> rows_;
    std::vector<std::size_t> firstRow_ = {0};
};

/// What stands for a track where there is room for one line: its outermost slices and, painted over them, what nests in those. Profilers
/// wrap kernels of collectives in an annotation; it is the kernels that one wants to see.
inline std::span<const SliceRow> outermost(std::span<const SliceRow> rows) { return rows.first(std::min<std::size_t>(2, rows.size())); }

}  // namespace ringside::gui
