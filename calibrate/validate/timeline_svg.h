// Two timelines above each other as one SVG: a predicted step and a measured one, on one time axis, a lane per stream.
#pragma once

#include <string>

#include "traces/trace.h"

namespace ringside {

/// `&`, `<`, `>` and `"` as entities.
std::string escapeHtml(const std::string& text);

/// An <svg> element for an HTML page; colours come from the page (classes c-compute, c-optimizer, c-communication, c-copy, axis).
/// Draws the first ranks (two at most) of the predicted trace, without their host threads. Slices narrower than half a pixel are
/// drawn together with their neighbours of the same kind, so that its size is bounded whatever the traces hold.
std::string timelinesSvg(const Trace& predicted, const Trace& measured);

}  // namespace ringside
