// ImportPanel: what a reader could not use or had to guess, how often, where first; and what the file says of itself.
#pragma once

#include "gui/core/panel.h"
#include "gui/core/table_view.h"

class QLabel;

namespace ringside::gui {

class ImportPanel : public Panel {
    Q_OBJECT
public:
    explicit ImportPanel(const GuiContext& context, QWidget* parent = nullptr);
    const TableView& table() const { return *table_; }

protected:
    void refresh() override;

private:
    QLabel* about_;
    TableView* table_;
};

}  // namespace ringside::gui
