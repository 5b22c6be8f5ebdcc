#include "gui/panels/side_column.h"

#include <QHBoxLayout>
#include <QScrollArea>
#include <QVBoxLayout>

namespace ringside::gui {

void putBeside(QWidget* panel, std::initializer_list<QWidget*> column, QWidget* table) {
    auto* side = new QWidget;
    auto* left = new QVBoxLayout(side);
    left->setContentsMargins(12, 8, 12, 8);
    for (QWidget* widget : column) left->addWidget(widget);
    left->addStretch();
    auto* scroll = new QScrollArea;
    scroll->setWidget(side);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setFixedWidth(380);
    auto* layout = new QHBoxLayout(panel);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(scroll);
    layout->addWidget(table, 1);
}

}  // namespace ringside::gui
