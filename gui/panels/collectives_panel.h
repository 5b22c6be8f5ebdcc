// CollectivesPanel: the collectives of the range as a table, with the bandwidths of nccl-tests.
#pragma once

#include <memory>

#include "gui/core/background.h"
#include "gui/core/panel.h"
#include "gui/core/table_view.h"
#include "traces/analysis/collectives.h"

namespace ringside::gui {

class CollectivesPanel : public Panel {
    Q_OBJECT
public:
    explicit CollectivesPanel(const GuiContext& context, QWidget* parent = nullptr);
    const TableView& table() const { return *table_; }

protected:
    void refresh() override;

private:
    void fill();

    TableView* table_;
    DocumentPtr matchedOf_;
    std::vector<MatchedCollective> matched_;
    Background background_{this};
};

}  // namespace ringside::gui
