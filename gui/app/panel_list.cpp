#include "gui/app/panel_list.h"

#include "gui/panels/collectives_panel.h"
#include "gui/panels/details_panel.h"
#include "gui/panels/histogram_panel.h"
#include "gui/panels/import_panel.h"
#include "gui/panels/memory_panel.h"
#include "gui/panels/path_panel.h"
#include "gui/panels/range_panel.h"
#include "gui/scenario/scenario_panel.h"
#include "gui/topology/topology_panel.h"

namespace ringside::gui {
namespace {

template <class P>
QWidget* make(const GuiContext& context) {
    return new P(context);
}

}  // namespace

std::vector<PanelSpec> allPanels() {
    return {
        {"range", "Range", Qt::BottomDockWidgetArea, make<RangePanel>},
        {"details", "Slice", Qt::BottomDockWidgetArea, make<DetailsPanel>},
        {"collectives", "Collectives", Qt::BottomDockWidgetArea, make<CollectivesPanel>},
        {"path", "Critical path", Qt::BottomDockWidgetArea, make<PathPanel>},
        {"memory", "Memory", Qt::BottomDockWidgetArea, make<MemoryPanel>},
        {"histogram", "Histogram", Qt::BottomDockWidgetArea, make<HistogramPanel>},
        {"topology", "Topology", Qt::BottomDockWidgetArea, make<TopologyPanel>},
        {"import", "Import report", Qt::BottomDockWidgetArea, make<ImportPanel>},
        {"scenario", "Scenario", Qt::RightDockWidgetArea, make<ScenarioPanel>},
    };
}

}  // namespace ringside::gui
