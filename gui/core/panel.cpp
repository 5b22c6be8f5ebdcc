#include "gui/core/panel.h"

namespace ringside::gui {

Panel::Panel(const GuiContext& context, QWidget* parent) : QWidget(parent), context_(context) {
    timer_.setSingleShot(true);
    timer_.setInterval(15);
    connect(&timer_, &QTimer::timeout, this, &Panel::refreshNow);
    connect(&context_.workspace, &Workspace::currentChanged, this, &Panel::follow);
    connect(&context_.theme, &Theme::changed, this, &Panel::outdated);
    follow(context_.workspace.current());
}

void Panel::follow(Session* session) {
    for (const QMetaObject::Connection& connection : connections_) disconnect(connection);
    connections_.clear();
    session_ = session;
    if (session_) {
        ViewState& view = session_->view();
        connections_ = {connect(session_, &Session::documentChanged, this, &Panel::outdated), connect(&view, &ViewState::selectionChanged, this, &Panel::outdated),
                        connect(&view, &ViewState::sliceChanged, this, &Panel::outdated), connect(&view, &ViewState::instantChanged, this, &Panel::outdated)};
    }
    outdated();
}

void Panel::outdated() {
    stale_ = true;
    if (isWanted()) timer_.start();
}

void Panel::refreshNow() {
    timer_.stop();
    stale_ = false;
    refresh();
}

void Panel::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (stale_) refreshNow();
}

}  // namespace ringside::gui
