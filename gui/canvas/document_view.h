// DocumentView: the tab of one session: its timeline.
#pragma once

#include <QWidget>

#include "gui/core/panel.h"

namespace ringside::gui {

class DocumentView : public QWidget {
    Q_OBJECT
public:
    DocumentView(Session& session, const GuiContext& context, QWidget* parent = nullptr);

    Session& session() { return session_; }

private:
    Session& session_;
};

}  // namespace ringside::gui
