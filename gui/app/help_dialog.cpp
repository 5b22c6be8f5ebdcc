#include "gui/app/help_dialog.h"

#include <vector>

#include <QTextBrowser>
#include <QVBoxLayout>

namespace ringside::gui {

QString helpHtml(const CommandRegistry& commands, const ThemeColors& colors) {
    QStringList menus;
    for (const Command& command : commands.all()) {
        const QString menu = command.spec.menu.isEmpty() ? "Timeline" : command.spec.menu;
        if (!menus.contains(menu) && !command.shownKeys().isEmpty()) menus << menu;
    }
    std::vector<QString> sections;
    for (const QString& menu : menus) {
        QString section = QString("<h3 style='margin:6px 0 2px 0'>%1</h3><table cellspacing='0' cellpadding='3'>").arg(menu.toHtmlEscaped());
        for (const Command& command : commands.all()) {
            const QString of = command.spec.menu.isEmpty() ? "Timeline" : command.spec.menu;
            if (of != menu || command.shownKeys().isEmpty()) continue;
            section += QString("<tr><td style='color:%1; white-space:nowrap'><b>%2</b>&nbsp;&nbsp;</td><td>%3</td></tr>")
                           .arg(colors.accent.name(), command.shownKeys().toHtmlEscaped(), command.spec.help.isEmpty() ? command.spec.title.toHtmlEscaped() : command.spec.help.toHtmlEscaped());
        }
        sections.push_back(section + "</table>");
    }
    // Two columns of about equal length.
    qsizetype total = 0;
    for (const QString& section : sections) total += section.count("<tr>") + 2;
    QString left, right;
    qsizetype rows = 0;
    for (const QString& section : sections) {
        (2 * rows < total ? left : right) += section;
        rows += section.count("<tr>") + 2;
    }
    return QString("<table width='100%'><tr><td width='50%' valign='top'>%1</td><td width='50%' valign='top'>%2</td></tr></table>").arg(left, right);
}

HelpDialog::HelpDialog(const CommandRegistry& commands, const ThemeColors& colors, QWidget* parent) : QDialog(parent) {
    setWindowTitle("Keys and commands");
    auto* text = new QTextBrowser(this);
    text->setFrameShape(QFrame::NoFrame);
    text->setHtml(helpHtml(commands, colors));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(text);
    resize(1000, 720);
}

}  // namespace ringside::gui
