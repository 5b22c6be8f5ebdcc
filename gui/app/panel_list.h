// The list of panels: one line per panel, in the order of their tabs.
#pragma once

#include <vector>

#include "gui/core/panel.h"

namespace ringside::gui {

std::vector<PanelSpec> allPanels();

}  // namespace ringside::gui
