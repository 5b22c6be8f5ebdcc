#include "gui/canvas/document_view.h"

#include <QLabel>
#include <QVBoxLayout>

namespace ringside::gui {

DocumentView::DocumentView(Session& session, const GuiContext&, QWidget* parent) : QWidget(parent), session_(session) {
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(new QLabel(QString::fromStdString(session.document().title)));
}

}  // namespace ringside::gui
