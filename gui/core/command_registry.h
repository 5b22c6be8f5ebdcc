// CommandRegistry: everything the program can be told to do, once. Menus, toolbar, shortcuts, palette and help are read from it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <QAction>
#include <QKeySequence>
#include <QList>
#include <QObject>
#include <QString>

class QMenuBar;
class QWidget;

namespace ringside::gui {

struct CommandSpec {
    QString id;                 ///< "view.fit": stable, for tests and settings
    QString menu;               ///< "View"; empty: only in the palette and in help
    QString title;              ///< "Fit selection"
    QString help;               ///< one sentence: tooltip and help
    QList<QKeySequence> keys = {};  ///< shortcuts; the first is shown
    std::function<void()> run = {};
    QString shownKeys = {};     ///< for keys and gestures that a widget handles itself: "W", "Ctrl+wheel"
    bool checkable = false;
    bool separatorBefore = false;
};

struct Command {
    CommandSpec spec;
    QAction* action = nullptr;
    QString shownKeys() const;  ///< of the shortcut, or as specified
};

class CommandRegistry : public QObject {
    Q_OBJECT
public:
    /// Shortcuts work wherever the focus is inside `window`.
    explicit CommandRegistry(QWidget* window);

    /// REQUIRES: no command has the id yet, nor one of the shortcuts.
    QAction* add(CommandSpec spec);
    const std::vector<Command>& all() const { return commands_; }
    /// Null if there is none.
    QAction* action(const QString& id) const;

    /// One menu per name, in the order of first mention.
    void fillMenus(QMenuBar& bar) const;

    /// Commands that can be run and match what was typed, the best first: every character in order, words' beginnings before others.
    std::vector<const Command*> matching(const QString& typed) const;

private:
    QWidget* window_;
    std::vector<Command> commands_;
};

/// How well `text` matches what was typed; negative: not at all. Pure.
int matchScore(const QString& text, const QString& typed);

}  // namespace ringside::gui
