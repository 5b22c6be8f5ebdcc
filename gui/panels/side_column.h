// Side column: the layout of panels that sum up at the left what their table lists at the right.
#pragma once

#include <initializer_list>

class QWidget;

namespace ringside::gui {

/// Fills `panel`: the column scrolls where it is too long, the table takes the rest.
void putBeside(QWidget* panel, std::initializer_list<QWidget*> column, QWidget* table);

}  // namespace ringside::gui
