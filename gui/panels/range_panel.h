// RangePanel: where the time of the selected range went, and what ran in it by name.
#pragma once

#include "gui/core/background.h"
#include "gui/core/panel.h"
#include "gui/core/table_view.h"
#include "traces/analysis/range_statistics.h"

class QLabel;

namespace ringside::gui {

class ShareBar;

class RangePanel : public Panel {
    Q_OBJECT
public:
    explicit RangePanel(const GuiContext& context, QWidget* parent = nullptr);
    const TableView& table() const { return *table_; }
    const ShareBar& bar() const { return *bar_; }

protected:
    void refresh() override;

private:
    void show(const DocumentPtr& document, const RangeStatistics& statistics);

    QLabel* title_;
    QLabel* note_;
    ShareBar* bar_;
    TableView* table_;
    Background background_{this};
};

}  // namespace ringside::gui
