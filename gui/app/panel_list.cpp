#include "gui/app/panel_list.h"

namespace ringside::gui {

std::vector<PanelSpec> allPanels() {
    return {};
}

}  // namespace ringside::gui
