// Panel: a widget of the drawer that follows the current session. It works only while it is visible.
#pragma once

#include <functional>
#include <vector>

#include <QMetaObject>
#include <QString>
#include <QTimer>
#include <QWidget>

#include "gui/core/command_registry.h"
#include "gui/core/theme.h"
#include "gui/core/workspace.h"

namespace ringside::gui {

/// What parts of the window are made with. All of it outlives them.
struct GuiContext {
    Workspace& workspace;
    Theme& theme;
    CommandRegistry& commands;
};

class Panel : public QWidget {
    Q_OBJECT
public:
    explicit Panel(const GuiContext& context, QWidget* parent = nullptr);

    /// Brings the panel up to date now: for screenshots and tests.
    void refreshNow();

protected:
    /// Null where nothing is open.
    Session* session() const { return session_; }
    const GuiContext& context() const { return context_; }
    const ThemeColors& colors() const { return context_.theme.colors(); }

    /// Shows what the session says. Called (together for many changes, and only while visible) after the session, its document,
    /// the focus range, the chosen slice, the instant or the theme changed.
    virtual void refresh() = 0;
    /// Whether anybody sees what it works out.
    virtual bool isWanted() const { return isVisible(); }
    void showEvent(QShowEvent* event) override;
    /// Asks for a refresh soon.
    void outdated();

private:
    void follow(Session* session);

    GuiContext context_;
    Session* session_ = nullptr;
    std::vector<QMetaObject::Connection> connections_;
    QTimer timer_{this};
    bool stale_ = true;
};

/// A line of the list of panels (gui/app/panel_list.cpp).
struct PanelSpec {
    QString id;       ///< "range": for --panel, settings and Workspace::showPanel
    QString title;    ///< "Range"
    Qt::DockWidgetArea area = Qt::BottomDockWidgetArea;
    std::function<QWidget*(const GuiContext&)> make;
    bool visible = true;  ///< before the user moves anything
};

}  // namespace ringside::gui
