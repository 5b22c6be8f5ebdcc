// MarkerFile: the markers of a trace, kept in a file beside it, so that they are there when it is opened again and can be handed on.
#pragma once

#include <string>
#include <vector>

#include "gui/core/view_state.h"
#include "model/base/result.h"

namespace ringside::gui {

/// "step.json.gz" → "step.json.gz.markers.json".
std::string markerFileOf(const std::string& tracePath);

/// None where there is no such file; fails where it is not one of ours.
Result<std::vector<TimeMarker>> readMarkers(const std::string& tracePath);

/// Without markers the file is removed. On failure the old one stays.
Result<void> writeMarkers(const std::string& tracePath, const std::vector<TimeMarker>& markers);

}  // namespace ringside::gui
