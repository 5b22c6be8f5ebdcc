#include "gui/app/error_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>

namespace ringside::gui {

ErrorBar::ErrorBar(QWidget* parent) : QFrame(parent) {
    setObjectName("errorBar");
    setStyleSheet("#errorBar { background: #b3303a; } #errorBar QLabel { color: white; } #errorBar QToolButton { color: white; border: none; font-weight: bold; }");
    text_ = new QLabel;
    text_->setWordWrap(true);
    text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* close = new QToolButton;
    close->setText("✕");
    close->setToolTip("Close");
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(12, 6, 8, 6);
    layout->addWidget(text_, 1);
    layout->addWidget(close, 0, Qt::AlignTop);
    connect(close, &QToolButton::clicked, this, &QWidget::hide);
    hide();
}

void ErrorBar::show(const QString& text) {
    text_->setText(text);
    setVisible(true);
}

QString ErrorBar::text() const { return isHidden() ? QString() : text_->text(); }

}  // namespace ringside::gui
