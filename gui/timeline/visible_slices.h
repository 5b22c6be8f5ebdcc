// Visible slices: the rectangles of one row at one zoom. What is narrower than a pixel is merged into it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gui/timeline/slice_index.h"
#include "gui/timeline/time_axis.h"

namespace ringside::gui {

/// From x0 to x1 in pixels of the axis, cut at its borders.
struct SliceRect {
    float x0 = 0, x1 = 0;
    std::uint32_t slice = kNoSlice;  ///< kNoSlice: several slices, narrower than a pixel each
    std::uint32_t name = 0;          ///< of the slice, or of what covers most
    SliceCategory category = SliceCategory::Compute;
    std::uint8_t coverage = 255;     ///< how much of the width slices cover, 0 to 255; 255 for a single slice
};

/// Replaces `out`. Rectangles come from left to right and do not overlap; merged ones are whole pixels, and neighbours that look
/// alike are one. At most about two per pixel. O(width × 8) at any zoom.
void visibleSlices(const Trace& trace, const SliceRow& row, const TimeAxis& axis, std::vector<SliceRect>& out);

/// The slice at x, or the nearest within `reach` pixels.
std::optional<std::uint32_t> sliceAt(const Trace& trace, const SliceRow& row, const TimeAxis& axis, double x, double reach = 2);

}  // namespace ringside::gui
