// MemoryPanel: a device's memory at an instant, by category, and the tensors alive then.
#pragma once

#include "gui/core/panel.h"
#include "gui/core/table_view.h"

class QComboBox;
class QLabel;

namespace ringside::gui {

class MemoryPanel : public Panel {
    Q_OBJECT
public:
    explicit MemoryPanel(const GuiContext& context, QWidget* parent = nullptr);
    const TableView& categories() const { return *categories_; }
    const TableView& tensors() const { return *tensors_; }

protected:
    void refresh() override;

private:
    void goToPeak();

    QComboBox* rank_;
    QLabel* title_;
    TableView* categories_;
    TableView* tensors_;
};

}  // namespace ringside::gui
