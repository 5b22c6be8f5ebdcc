// TrackMenu: what a click on the name of a row does, and what its right button offers.
#pragma once

#include "gui/core/session.h"
#include "gui/timeline/track_layout.h"

class QMenu;

namespace ringside::gui {

/// A rank collapses or opens, a track with nested slices folds or unfolds; others stay.
TrackOptions toggled(TrackOptions options, const SliceIndex& index, const LayoutRow& row);

/// The session outlives the menu; the row is copied.
void fillTrackMenu(QMenu& menu, Session& session, const LayoutRow& row);

}  // namespace ringside::gui
