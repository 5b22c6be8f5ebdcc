// HelpDialog: every command with its keys, read from the registry.
#pragma once

#include <QDialog>

#include "gui/core/command_registry.h"
#include "gui/core/theme.h"

namespace ringside::gui {

class HelpDialog : public QDialog {
    Q_OBJECT
public:
    HelpDialog(const CommandRegistry& commands, const ThemeColors& colors, QWidget* parent);
};

/// The help's text as HTML, one table per menu in two columns. Pure.
QString helpHtml(const CommandRegistry& commands, const ThemeColors& colors);

}  // namespace ringside::gui
