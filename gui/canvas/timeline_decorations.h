// What stands around and over the slices of a timeline: ruler, phases, headers, selection, markers, flows, critical path.
#pragma once

#include "gui/canvas/timeline_painter.h"

namespace ringside::gui {

/// Vertical lines of the ruler, below the slices; x counts from the body's left.
void paintGrid(QPainter& painter, const TimelineScene& scene);
/// All the rest, above the slices; x counts from the widget's left.
void paintDecorations(QPainter& painter, const TimelineScene& scene, const QFont& font);

/// The value at the top of a counter's row: the largest sum, reserved bytes or, if it is near, the capacity.
Bytes counterTop(const TimelineScene& scene, std::uint32_t counter);

/// Where a slice is in the widget (x from the body's left), if its row is shown. Cut at twice the body's width, at least a pixel wide.
std::optional<QRectF> rectOf(const TimelineScene& scene, std::uint32_t slice);

}  // namespace ringside::gui
