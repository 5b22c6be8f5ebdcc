#include "gui/app/panel_list.h"

#include "gui/scenario/scenario_panel.h"
#include "gui/topology/topology_panel.h"

namespace ringside::gui {

std::vector<PanelSpec> allPanels() {
    return {
        {"scenario", "Scenario", Qt::RightDockWidgetArea, [](const GuiContext& context) { return new ScenarioPanel(context); }},
        {"topology", "Topology", Qt::BottomDockWidgetArea, [](const GuiContext& context) { return new TopologyPanel(context); }},
    };
}

}  // namespace ringside::gui
