// DetailsPanel: everything that is known of the chosen slice.
#pragma once

#include "gui/core/panel.h"
#include "gui/core/table_view.h"

class QLabel;

namespace ringside::gui {

class DetailsPanel : public Panel {
    Q_OBJECT
public:
    explicit DetailsPanel(const GuiContext& context, QWidget* parent = nullptr);
    const TableView& table() const { return *facts_; }

protected:
    void refresh() override;

private:
    QLabel* title_;
    TableView* facts_;
    TableView* flows_;
};

}  // namespace ringside::gui
